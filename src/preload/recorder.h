/*
 * The recorder: what hooks call. It takes the stack, keeps catalog, ledger and recording in step under one
 * lock, and never lets the traced program see a thing: errno is kept, nothing fails, what could not be
 * recorded is counted.
 *
 * No function here calls the CUDA driver, and none may be called with a lock held that a hook could want.
 */
#ifndef PRELOAD_RECORDER_H
#define PRELOAD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "ledger/event.h"
#include "ledger/ledger.h"

/* An allocation that the driver granted or refused. */
struct allocation {
    const char *api;       /* a string literal: the outermost API's name without version and _ptsz suffixes */
    const char *allocator; /* where not NULL, in place of `api`: a name in memory of the caller's */
    enum family family;
    enum space_kind space;
    int device;       /* ordinal; -1 when the space is not tied to a device */
    uint32_t context; /* recorder_context() of the context whose end takes it along; 0 for none */
    bool of_pool;     /* belongs to a memory pool, whatever its family: no context's end takes it along */
    enum key_space key_space;
    uint64_t key;  /* address or handle */
    uint64_t size; /* bytes, by design's accounting: asked, pitch × height, … */
};

/* Hooked calls nest (cudaMalloc calls cuMemAlloc): only the outermost one of a thread is recorded. Every hook
 * brackets its real call; hook_enter() tells whether this is the outermost and we are recording. */
bool hook_enter(void);
void hook_leave(void);
/* In the place of hook_leave(), when it turns out that the program has jumped out of the call. False: in a
 * handler on a stack of its own, from which it may come back. */
bool hook_abandon(void);
/* In a child. */
void recorder_after_fork(void);

/* Whether anything has been recorded in this process, or in the one that it was forked from; what is recorded
 * first makes its files. */
bool recorder_has_begun(void);

/* After the real call returned success. A block of a framework's allocator is recorded with that allocator's
 * lock held; its space, device and context become those of the driver's block around it, where there is one.
 * True when this is a moment to ask the driver how much of the allocation's device is free (sampling.h).
 */
bool record_allocation(const struct allocation *allocation);
/* After it returned an error; `key` is ignored. Pass free and total only for an error that means "no memory",
 * as the driver tells them (0, 0 when it would not). */
void record_failure(const struct allocation *allocation, int error);
void record_out_of_memory(const struct allocation *allocation, int error, uint64_t free_bytes,
                          uint64_t total_bytes);

/* Before the real call, or before a framework's allocator can hand the address out again. The block, as it
 * was, goes to *ended, for record_unfree() when the driver refuses. False when no such block lives: do not
 * call record_unfree() then. Unless it would be a framework's, a foreign free is counted. */
bool record_free(enum key_space key_space, uint64_t key, struct block *ended);
void record_unfree(const struct block *ended);
/* One more reference to a living block: it takes one more record_free() to end it. False, and nothing is
 * recorded, when no such block lives. */
bool record_retain(enum key_space key_space, uint64_t key);
/* The living memory behind a handle turns out to be that large. */
void record_size(uint64_t handle, uint64_t bytes);

/* After a handle's memory was mapped at an address: nothing for a handle that no block lives under. Before it
 * is unmapped there. */
void record_map(uint64_t address, uint64_t bytes, uint64_t handle);
void record_unmap(uint64_t address);

/* A small number for a context handle, from 1; the same handle gives the same number until the context ends.
 */
uint32_t recorder_context(const void *context);
/* Before the real call that is sure to end a context, or after one that did: every block of it ends as
 * teardown, and its handle may come to mean another context. Nothing happens for one that no block was
 * recorded in. */
void record_teardown(const void *context);
/* Where it is not sure: before the real call, the handle means another context from now on. Gives the number
 * of this one, 0 where no block was recorded in it. Afterwards either every block of it ends, or the handle
 * means it again. */
uint32_t recorder_context_parts(const void *context);
void record_teardown_of(uint32_t number);
void recorder_context_stays(const void *context, uint32_t number);

/* The driver's own figures for a device. False when nothing is recorded yet, or any more. */
struct driver_figures {
    uint64_t free_bytes, total_bytes;
    uint64_t graph_bytes; /* reserved for the memory of graphs */
    uint64_t took_ns;     /* to ask for them */
};
bool record_sample(int device, enum sample_reason reason, const struct driver_figures *figures);
/* What contexts (EVENT_CONTEXTS), or code (EVENT_CODE), have on a device from now on. False as above. */
bool record_held(enum event_type of, int device, const struct held *held);
/* NVML's figures: what this process uses, 0 when it is not listed, and all processes. False as above. */
bool record_processes(int device, uint64_t own_bytes, uint64_t all_bytes);
/* Whether the user lets us load NVML. */
bool recorder_may_use_nvml(void);
/* What is tracked on a device: living bytes of the driver layer's device space. */
uint64_t recorder_tracked(int device);
/* … for a memory pool; device -1 for one of host memory. */
void record_pool(uint64_t handle, int device, uint64_t reserved_bytes, uint64_t used_bytes,
                 uint64_t threshold_bytes);

/* Under the lock of state.h, while recording: an event of no site and no block, to the books and the
 * recording.
 */
void recorder_apply(const struct event *event);

/* Loads what may need the dynamic linker before the first allocation (libunwind): called from the first sign
 * of CUDA, cuInit, where the program holds no allocator's lock. Cheap when done already. */
void recorder_prepare(void);
/* The dynamic linker unloaded something. */
void recorder_modules_changed(void);

#endif
