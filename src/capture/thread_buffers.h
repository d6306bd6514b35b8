/*
 * Room for one captured stack in each thread, straight from the kernel. Thread-local storage would take it
 * out of the threads' own stacks, which can be small, and a pthread key can make libc allocate; so a thread
 * owns its buffer by its thread id, and the buffers of threads that have ended are given to new ones.
 */
#ifndef CAPTURE_THREAD_BUFFERS_H
#define CAPTURE_THREAD_BUFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"
#include "capture/unwind.h"

/* Frames of this library above the one that asks for a stack: hooks, the recorder, capture_take itself. */
#define OWN_FRAMES_MAX 16

/* What became of the last walk that memory->last of the unwinder holds. */
struct known_stack {
    uint64_t before, hash; /* without the native half, which is 0 for no Python frames, and with it */
    uint32_t own, native_count;
    struct stack_memo memo;
};

struct thread_buffer {
    struct thread_buffer *next;
    _Atomic int64_t owner;     /* process id << 32 | thread id */
    _Atomic bool reads_python; /* see python_gate.h */
    struct unwind_memory unwinding;
    uint32_t interpreter_at; /* about how many addresses reach from here to the interpreter; 0: not known */
    struct known_stack known;
    uint32_t native_max, python_max;
    uintptr_t *native;           /* native_max of them */
    struct python_frame *python; /* python_max of them */
};

/* Before any other; `depth` bounds each half of a stack. */
void thread_buffers_start(uint32_t depth);
/* The calling thread's; NULL when the kernel has no memory. */
struct thread_buffer *thread_buffer_get(void);
/* The newest of all threads', also of those that have ended; the others follow by `next`. */
const struct thread_buffer *thread_buffers(void);
/* In a forked child: the calling thread's id has changed, the other threads are gone. */
void thread_buffers_after_fork(void);

#endif
