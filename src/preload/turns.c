/* Errands that wait for the lock, and who does them (turns.h). */
#include "preload/turns.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "preload/state.h"

#define LINE       64
#define SLOTS      64 /* a bit each */
#define SLOT_TRIES 8
/* A spin takes 14 ns, on other processors 10 to 45. Who had the lock last, and has its lines at hand, has
 * three times as long as an event takes before it is taken over; and whoever holds it for 14 us does not run:
 * then the mutex lets us sleep.
 */
#define SPINS_A_TRY 60
#define SPINS       1000
/* For how many events without an errand it is believed that more will come. */
#define CROWD_EVENTS 16

enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_DONE };

/* In static memory: a thread may be gone by a jump out of a signal handler while its errand is done. */
struct slot {
    alignas(LINE) _Atomic int state;
    void (*run)(void *errand);
    alignas(LINE) unsigned char errand[ERRAND_BYTES_MAX];
};

static struct slot slots[SLOTS];
static struct {
    alignas(LINE) _Atomic uint64_t slots; /* whose errands are still to be done */
    _Atomic(const void *) owner;          /* the thread that had the lock last */
    _Atomic uint32_t crowd;               /* above 0: it did errands of others, a few events ago */
} waiting;

static inline void pause_a_little(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most */
#endif
}

/* Under the lock. What is asked for next is on its way while the caller does its own work. */
static void look_ahead(void)
{
    uint64_t bits = atomic_load_explicit(&waiting.slots, memory_order_relaxed);
    for (uint64_t left = bits; __builtin_expect(left != 0, 0); left &= left - 1) {
        const struct slot *slot = &slots[__builtin_ctzll(left)];
        for (size_t at = 0; at < sizeof *slot; at += LINE)
            __builtin_prefetch((const char *)slot + at, 1);
    }
}

static void expect_errands(uint32_t events)
{
    atomic_store_explicit(&waiting.crowd, events, memory_order_relaxed);
}

/* Under the lock. `own` is the bit of the caller's slot, which is no crowd: two threads that merely take
 * turns would wait for each other ever after. */
static void run_waiting(uint64_t own)
{
    uint64_t bits = atomic_load_explicit(&waiting.slots, memory_order_relaxed);
    if (__builtin_expect(bits == 0, 1)) {
        uint32_t crowd = atomic_load_explicit(&waiting.crowd, memory_order_relaxed);
        if (crowd > 0)
            expect_errands(crowd - 1);
        return;
    }
    bits = atomic_exchange_explicit(&waiting.slots, 0, memory_order_acquire);
    expect_errands((bits & ~own) != 0 ? CROWD_EVENTS : 0);
    for (; bits != 0; bits &= bits - 1) {
        struct slot *slot = &slots[__builtin_ctzll(bits)];
        slot->run(slot->errand);
        atomic_store_explicit(&slot->state, SLOT_DONE, memory_order_release);
    }
}

static void run_locked(void (*run)(void *), void *errand)
{
    if (atomic_load_explicit(&waiting.owner, memory_order_relaxed) != &thread_state)
        atomic_store_explicit(&waiting.owner, &thread_state, memory_order_relaxed);
    look_ahead();
    run(errand);
    run_waiting(0);
    preload_let_go();
}

static struct slot *take_slot(void)
{
    uint32_t home = (uint32_t)((uintptr_t)&thread_state * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    for (uint32_t i = 0; i < SLOT_TRIES; i++) {
        struct slot *slot = &slots[(home + i) % SLOTS];
        int state = SLOT_FREE;
        if (atomic_compare_exchange_strong_explicit(&slot->state, &state, SLOT_TAKEN, memory_order_acquire,
                                                    memory_order_relaxed))
            return slot;
    }
    return NULL;
}

static bool is_done(const struct slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire) == SLOT_DONE;
}

static uint64_t bit_of(const struct slot *slot)
{
    return UINT64_C(1) << (slot - slots);
}

/* Whoever has the lock leaves no errand behind that it found, so that with the lock ours is done or is found.
 */
static void wait_for(const struct slot *slot)
{
    for (int i = 1; i <= SPINS && !is_done(slot); i++) {
        pause_a_little();
        if (i % SPINS_A_TRY == 0 && preload_try_hold()) {
            atomic_store_explicit(&waiting.owner, &thread_state, memory_order_relaxed);
            run_waiting(bit_of(slot));
            preload_let_go();
        }
    }
    if (is_done(slot))
        return;
    preload_hold();
    run_waiting(bit_of(slot));
    preload_let_go();
}

static void leave_to_others(void (*run)(void *), void *errand, size_t bytes)
{
    struct slot *slot = bytes <= ERRAND_BYTES_MAX ? take_slot() : NULL;
    if (slot == NULL) {
        preload_hold();
        run_locked(run, errand);
        return;
    }
    slot->run = run;
    memcpy(slot->errand, errand, bytes);
    atomic_fetch_or_explicit(&waiting.slots, bit_of(slot), memory_order_release);
    wait_for(slot);
    memcpy(errand, slot->errand, bytes);
    atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
}

bool turns_run(void (*run)(void *errand), void *errand, size_t bytes)
{
    if (thread_state.locked)
        return false;
    thread_state.locked = true;
    thread_state.cancel_state = CANCEL_STATE_KEPT;
    bool mine = atomic_load_explicit(&waiting.crowd, memory_order_relaxed) == 0 ||
                atomic_load_explicit(&waiting.owner, memory_order_relaxed) == &thread_state;
    if (mine && preload_try_hold())
        run_locked(run, errand);
    else
        leave_to_others(run, errand, bytes);
    thread_state.locked = false;
    return true;
}

void turns_after_fork(void)
{
    atomic_store(&waiting.slots, 0);
    for (int i = 0; i < SLOTS; i++)
        atomic_store(&slots[i].state, SLOT_FREE);
}
