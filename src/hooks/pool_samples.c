/* Samples of memory pools (pool_samples.h): a small table that is only ever filled and emptied entry by
 * entry. */
#include "hooks/pool_samples.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "hooks/ask.h"
#include "preload/recorder.h"

#define WATCHED_MAX 64
#define DEVICES_MAX 64
#define INTERVAL_NS 1000000
#define FIRST_FEW   64 /* samples that are taken without regard to the interval */
#define PATIENCE    100000

struct watched {
    _Atomic(CUmemoryPool) pool; /* NULL: free */
    _Atomic int device;
    _Atomic int askers; /* threads that are asking the driver about it */
    _Atomic uint64_t due_ns;
    _Atomic uint32_t samples;
    _Atomic uint64_t reserved, used, threshold; /* as recorded last */
};

static struct watched watched[WATCHED_MAX];
static _Atomic int watched_count; /* entries ever used */
static _Atomic uint64_t current_due_ns[DEVICES_MAX];
static _Atomic(CUmemoryPool) current_pools[DEVICES_MAX];

static bool ask_about(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t *value)
{
    cuuint64_t answer = 0;
    bool answered = ask_cuMemPoolGetAttribute(pool, attribute, &answer) == CUDA_SUCCESS;
    *value = answer;
    return answered;
}

static void sample(struct watched *entry, CUmemoryPool pool)
{
    uint64_t reserved, used, threshold;
    struct asking asking = ask_begin();
    bool answered = ask_about(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
                    ask_about(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) &&
                    ask_about(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    ask_end(&asking);
    if (!answered)
        return;
    bool is_first = atomic_fetch_add_explicit(&entry->samples, 1, memory_order_relaxed) == 0;
    bool is_same = atomic_exchange_explicit(&entry->reserved, reserved, memory_order_relaxed) == reserved;
    is_same &= atomic_exchange_explicit(&entry->used, used, memory_order_relaxed) == used;
    is_same &= atomic_exchange_explicit(&entry->threshold, threshold, memory_order_relaxed) == threshold;
    if (is_first || !is_same)
        record_pool((uintptr_t)pool, atomic_load_explicit(&entry->device, memory_order_relaxed), reserved,
                    used, threshold);
}

/* A pool that is being forgotten is not asked about any more, and one that is being asked about not yet gone.
 */
static void visit(struct watched *entry)
{
    atomic_fetch_add(&entry->askers, 1);
    CUmemoryPool pool = atomic_load(&entry->pool);
    if (pool != NULL)
        sample(entry, pool);
    atomic_fetch_sub(&entry->askers, 1);
}

static struct watched *find(CUmemoryPool pool)
{
    int count = atomic_load_explicit(&watched_count, memory_order_acquire);
    for (int i = 0; i < count && i < WATCHED_MAX; i++) {
        if (atomic_load_explicit(&watched[i].pool, memory_order_acquire) == pool)
            return &watched[i];
    }
    return NULL;
}

/* NULL when all are in use. Two threads that meet a pool for the first time at once may both add it: it is
 * then asked about twice, and the second answer is no news. */
static struct watched *add(CUmemoryPool pool, int device)
{
    struct watched *entry = find(NULL);
    if (entry == NULL) {
        int index = atomic_fetch_add(&watched_count, 1);
        if (index >= WATCHED_MAX) {
            atomic_store(&watched_count, WATCHED_MAX);
            return NULL;
        }
        entry = &watched[index];
    }
    CUmemoryPool none = NULL;
    atomic_store_explicit(&entry->samples, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->due_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->device, device, memory_order_relaxed);
    return atomic_compare_exchange_strong(&entry->pool, &none, pool) ? entry : NULL;
}

static void visit_if_due(struct watched *entry, uint64_t now)
{
    if (now < atomic_load_explicit(&entry->due_ns, memory_order_relaxed) &&
        atomic_load_explicit(&entry->samples, memory_order_relaxed) >= FIRST_FEW)
        return;
    atomic_store_explicit(&entry->due_ns, now + INTERVAL_NS, memory_order_relaxed);
    visit(entry);
}

void pool_samples_watch(CUmemoryPool pool, int device)
{
    struct watched *entry = find(pool);
    if (pool == NULL || (entry == NULL && (entry = add(pool, device)) == NULL))
        return;
    visit_if_due(entry, clock_monotonic_ns());
}

void pool_samples_watch_current(int device)
{
    CUmemoryPool pool = NULL;
    if (device < 0 || device >= DEVICES_MAX)
        return;
    uint64_t now = clock_monotonic_ns();
    if (now >= atomic_load_explicit(&current_due_ns[device], memory_order_relaxed)) {
        if (ask_cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)
            return;
        atomic_store_explicit(&current_pools[device], pool, memory_order_relaxed);
        atomic_store_explicit(&current_due_ns[device], now + INTERVAL_NS, memory_order_relaxed);
    } else {
        /* Only what is still watched is sure to exist. */
        pool = atomic_load_explicit(&current_pools[device], memory_order_relaxed);
        if (pool != NULL && find(pool) == NULL)
            return;
    }
    pool_samples_watch(pool, device);
}

bool pool_samples_forget(CUmemoryPool pool, int *device, uint64_t *used)
{
    struct watched *entry = pool == NULL ? NULL : find(pool);
    if (entry == NULL)
        return false;
    visit(entry);
    *device = atomic_load_explicit(&entry->device, memory_order_relaxed);
    *used = atomic_load_explicit(&entry->used, memory_order_relaxed);
    atomic_store(&entry->pool, NULL);
    for (int i = 0; atomic_load(&entry->askers) > 0 && i < PATIENCE; i++)
        sched_yield();
    return true;
}

void pool_samples_forget_all(void)
{
    for (int i = 0; i < WATCHED_MAX; i++) {
        atomic_store(&watched[i].pool, NULL);
        atomic_store(&watched[i].askers, 0);
    }
    atomic_store(&watched_count, 0);
    for (int i = 0; i < DEVICES_MAX; i++)
        atomic_store(&current_due_ns[i], 0);
}

void pool_samples_catch_up(void)
{
    int count = atomic_load_explicit(&watched_count, memory_order_acquire);
    uint64_t now = count == 0 ? 0 : clock_monotonic_ns();
    for (int i = 0; i < count && i < WATCHED_MAX; i++)
        visit_if_due(&watched[i], now);
}

void pool_samples_take(void)
{
    int count = atomic_load_explicit(&watched_count, memory_order_acquire);
    for (int i = 0; i < count && i < WATCHED_MAX; i++)
        visit(&watched[i]);
}
