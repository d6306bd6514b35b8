/*
 * A recording as PyTorch's memory page tells such stories: segments that the driver gave, blocks inside them,
 * and what happened to both, in order. The driver's blocks that PyTorch's cache asked for are segments; any
 * other is a segment and the one block in it, so that any program's memory can be looked at.
 */
#ifndef EXPORT_TORCH_REPLAY_H
#define EXPORT_TORCH_REPLAY_H

#include "base/hash.h"
#include "base/list.h"
#include "export/export.h"

/* X(symbol, the page's name for it) */
#define TORCH_ACTIONS(X)                                                                                     \
    X(SEGMENT_ALLOC, "segment_alloc")                                                                        \
    X(SEGMENT_FREE, "segment_free")                                                                          \
    X(ALLOC, "alloc")                                                                                        \
    X(FREE_REQUESTED, "free_requested")                                                                      \
    X(FREE_COMPLETED, "free_completed")                                                                      \
    X(OOM, "oom")

#define AS_ACTION(symbol, name) TORCH_##symbol,
enum torch_action { TORCH_ACTIONS(AS_ACTION) TORCH_ACTION_COUNT };
#undef AS_ACTION

struct torch_event {
    enum torch_action action;
    int device;
    uint32_t site; /* the catalog's */
    uint64_t time_ns, address, size, free_bytes;
};

/* Alive: a segment, a block, or both in one. */
struct torch_item {
    uint64_t key, address, size;
    uint32_t site, context;
    int device;
    bool is_segment, is_block;
    UT_hash_handle hh;
};

/* The page draws each event; of more than that the newest are kept. */
#define TORCH_EVENTS_MAX 200000

struct torch_replay {
    const struct report *report;
    struct arena arena;
    struct pool items;
    struct torch_item *alive; /* by key */
    struct torch_event *ring; /* TORCH_EVENTS_MAX */
    uint64_t event_count;     /* all; the ring has the last */
    uint64_t next_made_up;    /* address for memory that has none */
    bool is_begun, failed;
};

/* 0, or -1 with a sentence and nothing to release. */
int torch_replay_read(struct torch_replay *replay, const struct export_request *request, char *error,
                      size_t error_bytes);
void torch_replay_release(struct torch_replay *replay);

#endif
