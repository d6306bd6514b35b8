/* The gate of fork_gate.h: a count of those inside, and a flag that keeps others out. */
#include "capture/fork_gate.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define STEP_NS 50000
#define STEPS_MAX                                                                                            \
    20000 /* a second and more: so long can the fork of a large process take, or a turn on a                 \
             processor that many wait for */

static atomic_int inside;
static atomic_bool closed;
static __thread int depth;
static __thread bool is_closer;

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

void fork_gate_enter(void)
{
    if (depth++ != 0 || is_closer)
        return;
    atomic_fetch_add(&inside, 1);
    for (int i = 0; i < STEPS_MAX && atomic_load(&closed); i++) {
        atomic_fetch_sub(&inside, 1);
        rest();
        atomic_fetch_add(&inside, 1);
    }
}

void fork_gate_leave(void)
{
    if (--depth == 0 && !is_closer)
        atomic_fetch_sub(&inside, 1);
}

void fork_gate_close(void)
{
    atomic_store(&closed, true);
    int own = depth != 0;
    is_closer = true;
    for (int i = 0; i < STEPS_MAX && atomic_load(&inside) > own; i++)
        rest();
}

void fork_gate_open(void)
{
    is_closer = false;
    atomic_store(&closed, false);
}

void fork_gate_reset(void)
{
    is_closer = false;
    atomic_store(&inside, depth != 0);
    atomic_store(&closed, false);
}
