/*
 * Has Python tell of its end, before that frees what walks read. Asks once, by a pending call, which its main
 * thread makes in its own time; that registers a function with the `atexit` module, which does nothing, and
 * whose destruction, after the last of the program's own functions, tells that the end begins. All that a
 * program can see of it is that `atexit` is loaded (a profiler sees it being imported, if it was not) and has
 * one function more.
 */
#ifndef CAPTURE_PYTHON_END_H
#define CAPTURE_PYTHON_END_H

#include "capture/python_runtime.h"

/* What a thread that has walked does before it leaves the gate: Python is still there. Never waits for the
 * GIL; nothing happens where Python already knows. */
void python_end_ask(const struct python_runtime *python);

enum python_end_state {
    PYTHON_END_UNKNOWN,  /* Python was not asked, or has forgotten */
    PYTHON_END_ASKING,   /* a thread is about to */
    PYTHON_END_ASKED,    /* its main thread has not come to it yet */
    PYTHON_END_EXPECTED, /* it will tell */
    PYTHON_END_UNTOLD,   /* this Python cannot */
};
extern _Atomic(enum python_end_state) python_end_state;

static inline void python_end_expect(const struct python_runtime *python)
{
    if (__builtin_expect(atomic_load_explicit(&python_end_state, memory_order_relaxed) == PYTHON_END_UNKNOWN,
                         0))
        python_end_ask(python);
}

/* In a forked child: what was asked may be lost, and who had closed the gate may be gone. */
void python_end_after_fork(void);
/* The interpreter was unloaded. */
void python_end_forget(void);

#endif
