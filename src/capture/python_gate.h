/*
 * Keeps walks over Python's frames apart from Python's end, which frees the frames of all threads but one
 * while these may be in the middle of a walk: a walk happens inside the gate, and whoever ends Python closes
 * it and waits for those inside. Nobody ever waits for long.
 */
#ifndef CAPTURE_PYTHON_GATE_H
#define CAPTURE_PYTHON_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "capture/thread_buffers.h"

/* The thread that closed the gate; NULL while it is open. */
extern _Atomic(const struct thread_buffer *) python_gate_closed_by;

/* Around everything that reads the interpreter's memory, with the calling thread's buffer; does not nest. No
 * lock of ours may be waited for inside; Python's own for its pending calls is, when it is asked for its end.
 * False when another thread has closed the gate: then there is nothing to read and nothing to leave. */
static inline void python_gate_leave(struct thread_buffer *mine)
{
    atomic_store_explicit(&mine->reads_python, false, memory_order_release);
}

static inline bool python_gate_enter(struct thread_buffer *mine)
{
    /* Either this thread sees that the gate is closed, or the closing thread sees this one inside. */
    atomic_store(&mine->reads_python, true);
    const struct thread_buffer *closer = atomic_load(&python_gate_closed_by);
    if (__builtin_expect(closer == NULL || closer == mine, 1))
        return true;
    python_gate_leave(mine);
    return false;
}

/* Closes it to all but the calling thread, and waits until the others are out, a second at most. */
void python_gate_close(void);
void python_gate_open(void);

#endif
