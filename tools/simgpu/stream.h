/* Streams: everything completes at once, in the order it was given; a capturing stream only writes it down.
 */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "simgpu.h"

struct capture;
struct node;

struct node_list {
    struct node **nodes;
    size_t count, room;
};

struct stream {
    struct handle handle;
    unsigned flags;
    int priority;
    unsigned long long id;
    bool legacy; /* the default stream that waits for all others */
    struct context *context;
    struct capture *capture; /* NULL: not capturing */
    struct node_list tail;   /* while capturing: what the next node comes behind */
    struct stream *next_captured;
    struct green *green; /* made in this green context */
    bool orphan;         /* which is gone */
};

struct stream *stream_new(struct context *context, unsigned flags, int priority);
/* The stream behind a handle, the default ones included. */
CUresult stream_get(CUstream handle, struct stream **out);
/* The same, for work that is about to be given to it: fails where a capture forbids that. */
CUresult stream_for_work(CUstream handle, struct stream **out);

/* The functions with _ptsz in their names mean this by stream 0. */
static inline CUstream per_thread(CUstream stream)
{
    return stream ? stream : CU_STREAM_PER_THREAD;
}

#endif
