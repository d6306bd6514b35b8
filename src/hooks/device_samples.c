/* Sampling devices (device_samples.h). Lock-free: totals are sums, and a sum that is recorded a moment late
 * is recorded again. */
#include "hooks/device_samples.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "hooks/ask.h"
#include "hooks/context.h"
#include "hooks/nvml.h"
#include "hooks/pool_samples.h"
#include "preload/recorder.h"
#include "preload/sampling.h"

/* Time for questions around loading code: this at once, and a part of the run beyond. */
#define SPEND_NS   UINT64_C(50000000)
#define SPEND_PART 256

#define PROCESSES_INTERVAL_NS UINT64_C(1000000000)

int __cxa_atexit(void (*function)(void *), void *arg, void *dso_handle);

/* What contexts, or code, have. */
struct total {
    _Atomic int64_t count, bytes;
    _Atomic int unmeasured;
    _Atomic int basis; /* the least sure of those that were measured */
    _Atomic bool is_news;
};

struct device {
    struct total contexts, code;
    _Atomic uint64_t start_total, start_free; /* before the first context; 0: not known */
    _Atomic bool started, was_used;
    _Atomic int open_windows;
    _Atomic uint64_t windows;  /* ever opened */
    _Atomic uint64_t asked_ns; /* about its processes; 0: never */
};

/* Whether the process that NVML lists by our number is this one. In a container numbers are not what they are
 * outside; ours appears in the list with our first context. */
enum { NOT_KNOWN_YET, IS_OURS, IS_ANOTHERS };

static struct device devices[SAMPLED_DEVICES];
static _Atomic int number;
static _Atomic uint64_t first_ns, spent_ns;
static _Atomic pid_t exit_pid; /* whose end is to be told of */

static struct device *device_of(int device)
{
    return device >= 0 && device < SAMPLED_DEVICES ? &devices[device] : NULL;
}

bool device_samples_affordable(void)
{
    uint64_t none = 0, now = clock_monotonic_ns();
    atomic_compare_exchange_strong(&first_ns, &none, now);
    uint64_t ran = now - atomic_load_explicit(&first_ns, memory_order_relaxed);
    return atomic_load_explicit(&spent_ns, memory_order_relaxed) <= SPEND_NS + ran / SPEND_PART;
}

/* ---- windows ---- */

/* The calling thread's: there is never a second one, since only its outermost call opens any. Volatile: a
 * signal handler is where a program jumps away from. */
static __thread struct {
    volatile int device; /* one more than its number; 0: none is open */
    volatile uint64_t number;
} mine __attribute__((tls_model("initial-exec")));

static uint64_t total_of(int device)
{
    size_t total = 0;
    return ask_cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS ? total : 0;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void note_start(int device, uint64_t free_bytes)
{
    struct device *state = device_of(device);
    if (state == NULL || atomic_exchange(&state->started, true))
        return;
    atomic_store(&state->start_free, free_bytes);
    atomic_store(&state->start_total, total_of(device)); /* says that both are there */
}

static void look(const struct device_window *window, struct usage *usage)
{
    struct nvml_figures figures;
    size_t free_bytes = 0, total_bytes = 0;
    *usage = (struct usage){0};
    if (window->has_nvml && nvml_ask(window->device, &figures)) {
        usage->known[BY_NVML] = true;
        usage->used_bytes[BY_NVML] = less(total_of(window->device), figures.free_bytes);
        usage->known[BY_PROCESS] = figures.processes_known;
        usage->used_bytes[BY_PROCESS] = figures.own_bytes;
    } else if (place_current_device() == window->device) {
        place_memory_info(&free_bytes, &total_bytes);
        usage->known[BY_DRIVER] = total_bytes != 0;
        usage->used_bytes[BY_DRIVER] = less(total_bytes, free_bytes);
    }
}

void device_window_open(struct device_window *window, int device, bool asks_nvml)
{
    *window = (struct device_window){.device = DEVICE_UNKNOWN};
    struct device *state = device_of(device);
    if (state == NULL)
        return;
    uint64_t begun_ns = clock_monotonic_ns();
    window->device = device;
    window->number = ++mine.number;
    window->is_overlapped = atomic_fetch_add(&state->open_windows, 1) > 0;
    mine.device = device + 1;
    window->opened = atomic_fetch_add(&state->windows, 1) + 1;
    window->has_nvml = asks_nvml && nvml_open();
    window->counts_as_cost = !asks_nvml;
    window->tracked_bytes = recorder_tracked(device);
    look(window, &window->before);
    bool is_first = !window->is_overlapped && atomic_load(&state->contexts.count) == 0;
    int none = NOT_KNOWN_YET;
    if (is_first && window->before.used_bytes[BY_PROCESS] > 0)
        atomic_compare_exchange_strong(&number, &none, IS_ANOTHERS);
    if (is_first && window->before.known[BY_NVML])
        note_start(device, less(total_of(device), window->before.used_bytes[BY_NVML]));
    window->took_ns = clock_monotonic_ns() - begun_ns;
}

void device_window_abandon(bool jumped)
{
    struct device *state = device_of(mine.device - 1);
    mine.device = 0;
    if (state != NULL)
        atomic_fetch_sub(&state->open_windows, 1);
    nvml_abandon(jumped);
}

/* A call that was taken for abandoned may go on all the same, and its window is closed already then. */
static bool is_open(const struct device_window *window)
{
    return window->device != DEVICE_UNKNOWN && mine.device == window->device + 1 &&
           mine.number == window->number;
}

struct device_change device_window_close(struct device_window *window)
{
    struct device_change change = {.basis = BASIS_UNKNOWN};
    struct usage after;
    if (!is_open(window))
        return change;
    uint64_t begun_ns = clock_monotonic_ns();
    look(window, &after);
    struct device *state = device_of(window->device);
    bool is_alone = !window->is_overlapped && atomic_load(&state->windows) == window->opened;
    int64_t allocated = (int64_t)(recorder_tracked(window->device) - window->tracked_bytes);
    int none = NOT_KNOWN_YET;
    if (window->before.known[BY_PROCESS] && after.used_bytes[BY_PROCESS] > 0)
        atomic_compare_exchange_strong(&number, &none, IS_OURS);
    mine.device = 0;
    atomic_fetch_sub(&state->open_windows, 1); /* whoever opens the next one knows the number */
    after.known[BY_PROCESS] &= atomic_load(&number) == IS_OURS;
    for (int by = 0; by < MEASURE_COUNT && is_alone && change.basis == BASIS_UNKNOWN; by++) {
        if (!window->before.known[by] || !after.known[by])
            continue;
        change.basis = by == BY_PROCESS ? BASIS_PROCESS : BASIS_DEVICE;
        change.bytes = (int64_t)(after.used_bytes[by] - window->before.used_bytes[by]) - allocated;
    }
    if (window->has_nvml)
        nvml_close();
    if (window->counts_as_cost)
        atomic_fetch_add_explicit(&spent_ns, window->took_ns + clock_monotonic_ns() - begun_ns,
                                  memory_order_relaxed);
    window->device = DEVICE_UNKNOWN;
    return change;
}

/* ---- totals ---- */

static struct held held_of(const struct total *total)
{
    int64_t count = atomic_load(&total->count), bytes = atomic_load(&total->bytes);
    int unmeasured = atomic_load(&total->unmeasured);
    struct held held = {.count = count > 0 ? (uint64_t)count : 0,
                        .bytes = bytes > 0 ? (uint64_t)bytes : 0,
                        .basis = (enum basis)atomic_load(&total->basis)};
    if (unmeasured > 0)
        held.basis = held.bytes > 0 ? BASIS_PART : BASIS_UNKNOWN;
    return held;
}

static void record_total(int device, enum event_type of, struct total *total)
{
    struct held held = held_of(total);
    if (atomic_exchange(&total->is_news, false) && !record_held(of, device, &held))
        atomic_store(&total->is_news, true);
}

static void lower_basis(struct total *total, enum basis basis)
{
    int known = atomic_load(&total->basis);
    while ((known == BASIS_UNKNOWN || known > (int)basis) &&
           !atomic_compare_exchange_weak(&total->basis, &known, (int)basis))
        ;
}

void device_holds(int device, enum event_type of, int count, int unmeasured, struct device_change change)
{
    struct device *state = device_of(device);
    if (state == NULL)
        return;
    struct total *total = of == EVENT_CONTEXTS ? &state->contexts : &state->code;
    atomic_store(&state->was_used, true);
    atomic_fetch_add(&total->count, count);
    atomic_fetch_add(&total->bytes, change.bytes);
    atomic_fetch_add(&total->unmeasured, unmeasured);
    if (change.basis != BASIS_UNKNOWN)
        lower_basis(total, change.basis);
    atomic_store(&total->is_news, true);
    record_total(device, of, total);
}

/* ---- samples ---- */

static void record_start(int device, struct device *state)
{
    struct driver_figures figures = {0};
    figures.total_bytes = atomic_exchange(&state->start_total, 0);
    figures.free_bytes = atomic_load(&state->start_free);
    if (figures.total_bytes != 0 && !record_sample(device, SAMPLE_START, &figures))
        atomic_store(&state->start_total, figures.total_bytes);
}

static uint64_t graph_bytes_on(int device)
{
    cuuint64_t reserved = 0;
    struct asking asking = ask_begin();
    bool told = ask_cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) ==
                CUDA_SUCCESS;
    ask_end(&asking);
    return told ? reserved : 0;
}

/* False: the driver would not tell, or the current context is another device's. */
static bool ask_driver(int device, struct driver_figures *figures)
{
    size_t free_bytes = 0, total_bytes = 0;
    uint64_t begun_ns = clock_monotonic_ns();
    if (place_current_device() != device)
        return false;
    place_memory_info(&free_bytes, &total_bytes);
    *figures = (struct driver_figures){.free_bytes = free_bytes, .total_bytes = total_bytes};
    figures->graph_bytes = total_bytes != 0 ? graph_bytes_on(device) : 0;
    figures->took_ns = clock_monotonic_ns() - begun_ns;
    return total_bytes != 0;
}

static void sample_at_exit(void *ignored);

/* Runs before the driver ends itself, since it is registered after the driver was initialised. */
static void see_to_the_exit(void)
{
    pid_t none = 0;
    if (atomic_compare_exchange_strong(&exit_pid, &none, getpid()))
        __cxa_atexit(sample_at_exit, NULL, NULL);
}

static void record_news(int device)
{
    struct device *state = device_of(device);
    if (state == NULL)
        return;
    record_start(device, state);
    record_total(device, EVENT_CONTEXTS, &state->contexts);
    record_total(device, EVENT_CODE, &state->code);
}

void device_sample(int device, enum sample_reason reason)
{
    struct driver_figures figures;
    record_news(device);
    if (ask_driver(device, &figures) && record_sample(device, reason, &figures))
        see_to_the_exit();
}

/* ---- processes ---- */

static void record_listed(int device, const struct nvml_figures *figures)
{
    if (figures->processes_known)
        record_processes(device, atomic_load(&number) == IS_OURS ? figures->own_bytes : 0,
                         figures->all_bytes);
}

void device_refusing(int device)
{
    struct device *state = device_of(device);
    struct nvml_figures figures;
    if (state == NULL)
        return;
    uint64_t asked = atomic_load(&state->asked_ns),
             now = clock_monotonic_ns(); /* in this order: never less */
    if (now - asked < PROCESSES_INTERVAL_NS || !atomic_compare_exchange_strong(&state->asked_ns, &asked, now))
        return;
    if (!nvml_open())
        return;
    if (nvml_ask(device, &figures))
        record_listed(device, &figures);
    nvml_close();
}

void device_refused(int device)
{
    record_news(device);
    if (device_of(device) != NULL)
        see_to_the_exit();
}

/* ---- the exit ---- */

static void sample_last(int device, bool has_nvml)
{
    struct driver_figures figures;
    struct nvml_figures nvml = {0};
    bool told = has_nvml && nvml_ask(device, &nvml);
    record_news(device);
    if (told)
        record_listed(device, &nvml);
    if (!ask_driver(device, &figures)) {
        figures =
            (struct driver_figures){.free_bytes = nvml.free_bytes, .graph_bytes = graph_bytes_on(device)};
        figures.total_bytes = told ? total_of(device) : 0;
    }
    if (figures.total_bytes != 0)
        record_sample(device, SAMPLE_EXIT, &figures);
}

/* Not in a child, which has no driver, nor where exit() was called from inside a hooked call. */
static void sample_at_exit(void *ignored)
{
    (void)ignored;
    if (atomic_load(&exit_pid) != getpid())
        return;
    if (hook_enter()) {
        bool has_nvml = nvml_open();
        pool_samples_take();
        for (int i = 0; i < SAMPLED_DEVICES; i++)
            if (atomic_load(&devices[i].was_used))
                sample_last(i, has_nvml);
        if (has_nvml)
            nvml_close();
    }
    hook_leave();
}
