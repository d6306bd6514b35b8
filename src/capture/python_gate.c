/* The slow side of the gate of python_gate.h: it can look into every thread's buffer, so that entering and
 * leaving touch no memory that threads share. */
#include "capture/python_gate.h"

#include <time.h>

#define STEP_NS   50000
#define STEPS_MAX 20000 /* a second and more */

_Atomic(const struct thread_buffer *) python_gate_closed_by;

void python_gate_close(void)
{
    static const struct thread_buffer nobody; /* for a thread that cannot have a buffer */
    const struct thread_buffer *mine = thread_buffer_get();
    atomic_store(&python_gate_closed_by, mine != NULL ? mine : &nobody);
    int steps = 0;
    for (const struct thread_buffer *other = thread_buffers(); other != NULL; other = other->next)
        for (; other != mine && atomic_load(&other->reads_python) && steps < STEPS_MAX; steps++)
            nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

void python_gate_open(void)
{
    atomic_store(&python_gate_closed_by, NULL);
}
