/*
 * The hot path (recorder.h): take the stack, find its site, and keep ledger and recording in step under one
 * lock. The stack is taken before the lock and the lock is held for the books only.
 */
#include "preload/recorder.h"

#include <errno.h>
#include <string.h>

#include "capture/capture.h"
#include "preload/learn.h"
#include "preload/marks.h"
#include "preload/sites.h"
#include "preload/state.h"
#include "preload/turns.h"

/* In a child that neither fork() nor our handlers know of (a raw system call) the state is the parent's:
 * hands off. */
static bool is_foreign_child(void)
{
    return preload.fork_mark != NULL && __atomic_load_n(preload.fork_mark, __ATOMIC_RELAXED) == 0;
}

bool hook_enter(void)
{
    return thread_state.depth++ == 0 && !thread_state.locked &&
           atomic_load_explicit(&preload.phase, memory_order_acquire) != PHASE_OFF && !is_foreign_child();
}

void hook_leave(void)
{
    thread_state.depth--;
}

bool hook_abandon(void)
{
    bool abandoned = preload_abandon();
    hook_leave();
    return abandoned;
}

/* Before the first use of the settings; false where they say to do nothing. Tests have no start. */
static bool has_started(void)
{
    if (preload_start)
        preload_start();
    return atomic_load_explicit(&preload.phase, memory_order_acquire) != PHASE_OFF;
}

bool recorder_has_begun(void)
{
    return preload.parent_recorded ||
           atomic_load_explicit(&preload.phase, memory_order_acquire) == PHASE_RECORDING;
}

static void pend_note(const char *sentence)
{
    if (!preload_lock())
        return;
    preload_note(sentence);
    preload_unlock();
}

static pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;

void recorder_after_fork(void)
{
    pthread_mutex_init(&preparing, NULL); /* another thread of the parent may have been at it */
}

void recorder_prepare(void)
{
    if (atomic_load_explicit(&preload.prepared, memory_order_acquire) || !has_started())
        return;
    /* Whoever comes second does not wait: its stacks are incomplete for a moment, and nothing can deadlock.
     */
    if (pthread_mutex_trylock(&preparing) != 0)
        return;
    if (!atomic_load_explicit(&preload.prepared, memory_order_acquire)) {
        int kept = errno;
        capture_start(preload.config.stacks, preload.config.depth, pend_note);
        atomic_store_explicit(&preload.prepared, true, memory_order_release);
        errno = kept;
    }
    pthread_mutex_unlock(&preparing);
}

void recorder_modules_changed(void)
{
    int kept = errno;
    if (atomic_load_explicit(&preload.prepared, memory_order_acquire))
        capture_modules_changed();
    errno = kept;
}

/* The catalog's stack of the calling thread; CATALOG_NONE when none could be taken. */
static uint32_t take_stack(void)
{
    struct raw_stack raw;
    recorder_prepare();
    if (preload.config.stacks == CAPTURE_NONE ||
        !atomic_load_explicit(&preload.prepared, memory_order_acquire))
        return CATALOG_NONE;
    uint32_t generation = capture_generation();
    capture_take(&raw);
    if (raw.native_count + raw.python_count == 0)
        return CATALOG_NONE;
    struct stack_table *stacks = atomic_load_explicit(&preload.stacks, memory_order_acquire);
    if (stacks == NULL)
        return CATALOG_NONE;
    if (raw.memo != NULL && raw.memo->table == stacks && raw.memo->generation == generation)
        return raw.memo->id;
    uint32_t id = stack_table_find(stacks, &raw, generation);
    if (id == CATALOG_NONE)
        id = learn_stack(&raw, generation);
    if (raw.memo != NULL && id != CATALOG_NONE)
        *raw.memo = (struct stack_memo){stacks, generation, id};
    return id;
}

/* Recording begins with the first allocation that anyone asks for. */
static bool begin_if_idle(void)
{
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) == PHASE_RECORDING)
        return true;
    if (!has_started() || !preload_lock())
        return false;
    int phase = atomic_load_explicit(&preload.phase, memory_order_acquire);
    bool recording = phase == PHASE_RECORDING || (phase == PHASE_IDLE && preload_begin());
    preload_unlock();
    return recording;
}

/* Under the lock. What the ledger could not take is not in the recording either, so that both count the same.
 */
static bool apply(const struct event *event, struct block *ended)
{
    bool applied = ledger_apply(preload.ledger, event, ended);
    if (applied) {
        trace_put_event(&preload.writer, event);
        marks_note();
    } else {
        trace_drop_event(&preload.writer);
    }
    return applied;
}

void recorder_apply(const struct event *event)
{
    apply(event, NULL);
}

/* Under the lock: a framework's block lies where the memory lies that it is a part of. */
static void place_in_driver_block(struct allocation *allocation, struct event *event)
{
    struct block around;
    if (!ledger_around(preload.ledger, allocation->key, &around))
        return;
    const struct site_key *key = catalog_site(preload.catalog, around.site);
    allocation->space = (enum space_kind)key->space;
    allocation->device = key->device;
    event->context = around.context;
}

/* Under the lock, after an allocation. */
static bool is_time_to_sample(const struct allocation *allocation, const struct event *event)
{
    int device = allocation->device;
    return event->type == EVENT_ALLOC && allocation->space == SPACE_DEVICE && device >= 0 &&
           device < SAMPLED_DEVICES && family_infos[allocation->family].layer == LAYER_DRIVER &&
           sampling_due(&preload.sampling[device], event->time_ns, ledger_live_on(preload.ledger, device));
}

struct site_errand {
    struct allocation allocation;
    struct event event;
    uint32_t stack;
    bool due; /* the driver may be asked again */
};
_Static_assert(sizeof(struct site_errand) <= ERRAND_BYTES_MAX, "it can be left to another thread");

/* Under the lock. Another thread may have finished the recording since. */
static void apply_at_site(void *arg)
{
    struct site_errand *errand = arg;
    struct allocation *allocation = &errand->allocation;
    struct event *event = &errand->event;
    if (atomic_load_explicit(&preload.phase, memory_order_relaxed) != PHASE_RECORDING)
        return;
    if (event->type == EVENT_ALLOC && family_infos[allocation->family].layer == LAYER_FRAMEWORK)
        place_in_driver_block(allocation, event);
    event->site = sites_find(allocation, errand->stack);
    apply(event, NULL); /* without a site it counts as dropped */
    errand->due = is_time_to_sample(allocation, event);
}

/* An event of a site: an allocation, or one that was refused. True: the driver may be asked again. */
static bool record_at_site(struct site_errand *errand)
{
    int kept = errno;
    errand->due = false;
    if (begin_if_idle()) {
        errand->stack = take_stack();
        errand->event.time_ns = preload_now_ns();
        if (errand->allocation.allocator == NULL) {
            turns_run(apply_at_site, errand, sizeof *errand);
        } else if (preload_lock()) { /* its name lies on this thread's stack, which another must not read */
            apply_at_site(errand);
            preload_unlock();
        }
    }
    errno = kept;
    return errand->due;
}

/* Errands are filled in field by field: to set so much to zero takes as long as half a look-up. */
bool record_allocation(const struct allocation *allocation)
{
    struct site_errand errand;
    errand.allocation = *allocation;
    errand.event = (struct event){.type = EVENT_ALLOC,
                                  .key = block_key(allocation->key_space, allocation->key),
                                  .size = allocation->size,
                                  .context = allocation->context};
    return record_at_site(&errand);
}

void record_failure(const struct allocation *allocation, int error)
{
    struct site_errand errand;
    errand.allocation = *allocation;
    errand.event = (struct event){.type = EVENT_FAILED, .size = allocation->size, .error = error};
    record_at_site(&errand);
}

void record_out_of_memory(const struct allocation *allocation, int error, uint64_t free_bytes,
                          uint64_t total_bytes)
{
    struct site_errand errand;
    errand.allocation = *allocation;
    errand.event = (struct event){.type = EVENT_OOM,
                                  .size = allocation->size,
                                  .error = error,
                                  .free_bytes = free_bytes,
                                  .total_bytes = total_bytes};
    record_at_site(&errand);
}

/* Under the lock. A free of something never seen is an event of its own, unless it is a framework's; a
 * reference to it is nothing. */
static bool apply_to_block(struct event *event, struct block *ended)
{
    if (ledger_find(preload.ledger, event->key) != NULL)
        return apply(event, ended);
    if (event->type == EVENT_FREE && block_key_space(event->key) < KEY_FRAMEWORK) {
        event->type = EVENT_FOREIGN_FREE;
        apply(event, NULL);
    }
    return false;
}

struct plain_errand {
    struct event event;
    bool applied;
    struct block ended;
};
_Static_assert(sizeof(struct plain_errand) <= ERRAND_BYTES_MAX, "it can be left to another thread");

/* Under the lock. */
static void apply_plain(void *arg)
{
    struct plain_errand *errand = arg;
    struct event *event = &errand->event;
    if (atomic_load_explicit(&preload.phase, memory_order_relaxed) != PHASE_RECORDING)
        return;
    errand->applied = event->type == EVENT_FREE || event->type == EVENT_RETAIN || event->type == EVENT_RESIZE
                          ? apply_to_block(event, &errand->ended)
                          : apply(event, &errand->ended);
}

/* Takes the lock for an event of now. Before the first allocation there is nothing it could be about: false.
 */
static bool begin_plain(struct event *event)
{
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) != PHASE_RECORDING)
        return false;
    event->time_ns = preload_now_ns();
    if (!preload_lock())
        return false;
    if (atomic_load_explicit(&preload.phase, memory_order_relaxed) == PHASE_RECORDING)
        return true;
    preload_unlock();
    return false;
}

/* An event without a site. */
static bool record_plain(struct event *event, struct block *ended)
{
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) != PHASE_RECORDING)
        return false;
    struct plain_errand errand;
    int kept = errno;
    event->time_ns = preload_now_ns();
    errand.event = *event;
    errand.applied = false;
    turns_run(apply_plain, &errand, sizeof errand);
    if (ended != NULL && errand.applied)
        *ended = errand.ended;
    errno = kept;
    return errand.applied;
}

bool record_free(enum key_space key_space, uint64_t key, struct block *ended)
{
    struct event event = {.type = EVENT_FREE, .key = block_key(key_space, key)};
    return record_plain(&event, ended);
}

void record_unfree(const struct block *ended)
{
    struct event event = {.type = EVENT_UNFREE,
                          .key = ended->key,
                          .site = ended->site,
                          .size = ended->size,
                          .context = ended->context,
                          .born_ns = ended->born_ns};
    record_plain(&event, NULL);
}

bool record_retain(enum key_space key_space, uint64_t key)
{
    struct event event = {.type = EVENT_RETAIN, .key = block_key(key_space, key)};
    return record_plain(&event, NULL);
}

void record_size(uint64_t handle, uint64_t bytes)
{
    struct event event = {.type = EVENT_RESIZE, .key = block_key(KEY_HANDLE, handle), .size = bytes};
    record_plain(&event, NULL);
}

/* Under the lock: the site that memory behind a handle was created at; CATALOG_NONE for another's memory. */
static uint32_t site_of_handle(uint64_t handle)
{
    const struct block *block = ledger_find(preload.ledger, block_key(KEY_HANDLE, handle));
    const struct site_key *key = block == NULL ? NULL : catalog_site(preload.catalog, block->site);
    return key != NULL && family_infos[key->family].owned ? block->site : CATALOG_NONE;
}

void record_map(uint64_t address, uint64_t bytes, uint64_t handle)
{
    struct event event = {.type = EVENT_MAP, .key = block_key(KEY_ADDRESS, address), .size = bytes};
    int kept = errno;
    if (begin_plain(&event)) {
        event.site = site_of_handle(handle);
        if (event.site != CATALOG_NONE)
            apply(&event, NULL);
        preload_unlock();
    }
    errno = kept;
}

void record_unmap(uint64_t address)
{
    struct event event = {.type = EVENT_UNMAP, .key = block_key(KEY_ADDRESS, address)};
    record_plain(&event, NULL);
}

bool record_sample(int device, enum sample_reason reason, const struct driver_figures *figures)
{
    struct event event = {.type = EVENT_SAMPLE,
                          .device = device,
                          .size = figures->graph_bytes,
                          .free_bytes = figures->free_bytes,
                          .total_bytes = figures->total_bytes,
                          .detail = reason};
    bool recorded = false;
    int kept = errno;
    if (begin_plain(&event)) {
        recorded = apply(&event, NULL);
        if (recorded && device >= 0 && device < SAMPLED_DEVICES)
            sampling_took(&preload.sampling[device], event.time_ns, figures->took_ns);
        preload_unlock();
    }
    errno = kept;
    return recorded;
}

bool record_held(enum event_type of, int device, const struct held *held)
{
    struct event event = {.type = of,
                          .device = device,
                          .size = held->bytes,
                          .count = held->count < UINT32_MAX ? (uint32_t)held->count : UINT32_MAX,
                          .detail = held->basis};
    return record_plain(&event, NULL);
}

bool record_processes(int device, uint64_t own_bytes, uint64_t all_bytes)
{
    struct event event = {
        .type = EVENT_PROCESSES, .device = device, .size = own_bytes, .total_bytes = all_bytes};
    return record_plain(&event, NULL);
}

bool recorder_may_use_nvml(void)
{
    return preload.config.nvml;
}

uint64_t recorder_tracked(int device)
{
    uint64_t tracked = 0;
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) == PHASE_RECORDING && preload_lock()) {
        if (preload.ledger != NULL)
            tracked = ledger_live_on(preload.ledger, device);
        preload_unlock();
    }
    return tracked;
}

void record_pool(uint64_t handle, int device, uint64_t reserved_bytes, uint64_t used_bytes,
                 uint64_t threshold_bytes)
{
    struct event event = {.type = EVENT_POOL,
                          .key = block_key(KEY_POOL, handle),
                          .device = device,
                          .size = threshold_bytes,
                          .free_bytes = reserved_bytes > used_bytes ? reserved_bytes - used_bytes : 0,
                          .total_bytes = reserved_bytes};
    record_plain(&event, NULL);
}

void record_teardown_of(uint32_t number)
{
    struct event event = {.type = EVENT_TEARDOWN, .context = number};
    if (number != 0)
        record_plain(&event, NULL);
}

void record_teardown(const void *context)
{
    record_teardown_of(recorder_context_parts(context));
}
