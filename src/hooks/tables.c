/* The lock and the memory of the hooks' tables (tables.h). */
#include "hooks/tables.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/arena.h"

#define SPINS_BEFORE_YIELD  64
#define YIELDS_BEFORE_DOUBT 64

static _Atomic pid_t holder; /* the process whose thread holds the lock; 0: free */
static __thread bool held_here __attribute__((tls_model("initial-exec")));

static struct arena arena;
static struct pool entries = {.arena = &arena, .object_bytes = TABLES_ENTRY_MAX};

/* Under a lock that was taken over from a thread of another process, half way through a change. */
static void start_empty(void)
{
    arena = (struct arena){0};
    entries = (struct pool){.arena = &arena, .object_bytes = TABLES_ENTRY_MAX};
    vmm_forget_all();
    mappings_forget_all();
    holds_forget_all();
    pools_forget_all();
    graphs_forget_all();
}

static bool try_lock(pid_t expected, pid_t self)
{
    return atomic_compare_exchange_strong_explicit(&holder, &expected, self, memory_order_acquire,
                                                   memory_order_relaxed);
}

bool tables_lock(void)
{
    static _Atomic pid_t known_self;
    if (held_here)
        return false;
    pid_t self = atomic_load_explicit(&known_self, memory_order_relaxed);
    if (self == 0) {
        self = getpid();
        atomic_store_explicit(&known_self, self, memory_order_relaxed);
    }
    for (unsigned tries = 0; !try_lock(0, self); tries++) {
        if (tries % SPINS_BEFORE_YIELD != SPINS_BEFORE_YIELD - 1)
            continue;
        sched_yield();
        pid_t seen = atomic_load_explicit(&holder, memory_order_relaxed);
        if (tries / SPINS_BEFORE_YIELD % YIELDS_BEFORE_DOUBT != 0 || seen == 0)
            continue;
        self = getpid();
        atomic_store_explicit(&known_self, self, memory_order_relaxed);
        if (seen != self && try_lock(seen, self)) {
            start_empty();
            break;
        }
    }
    held_here = true;
    return true;
}

void tables_unlock(void)
{
    held_here = false;
    atomic_store_explicit(&holder, 0, memory_order_release);
}

void *tables_new(void)
{
    return pool_get(&entries);
}

void tables_delete(void *entry)
{
    pool_put(&entries, entry);
}
