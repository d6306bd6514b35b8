/* The contexts of the process and what lies in them (context.h). Looking one up takes no lock. */
#include "hooks/context.h"

#include <stdatomic.h>

#include "hooks/ask.h"
#include "hooks/holds.h"
#include "hooks/real.h"
#include "hooks/tables.h"
#include "preload/sampling.h"

#define CONTEXTS_MAX 256

enum context_kind { CONTEXT_CREATED = 1, CONTEXT_PRIMARY, CONTEXT_GREEN };

struct place {
    CUcontext handle; /* NULL: no context is current */
    int device;
    uint32_t number; /* recorder_context() of the context that the blocks belong to */
    enum context_kind kind;
};

struct known_context {
    _Atomic(CUcontext) handle; /* NULL: a free entry */
    _Atomic int device, kind, references;
    _Atomic uint32_t number;
    /* What it has of the device itself, and as code; device_samples.h has the sums of all. */
    _Atomic bool is_counted;
    _Atomic int basis;
    _Atomic int64_t bytes, code_bytes;
    _Atomic int code_count, code_unmeasured;
};

static struct known_context contexts[CONTEXTS_MAX];
static _Atomic int context_count; /* entries ever used */
/* Of primary contexts, ever; devices that share one are only taken for retained more often. */
static _Atomic uint64_t retains[SAMPLED_DEVICES];

static struct known_context *find(CUcontext handle)
{
    int count = atomic_load_explicit(&context_count, memory_order_acquire);
    for (int i = 0; i < count; i++) {
        if (atomic_load_explicit(&contexts[i].handle, memory_order_acquire) == handle)
            return &contexts[i];
    }
    return NULL;
}

static CUcontext primary_of(CUdevice device)
{
    int count = atomic_load_explicit(&context_count, memory_order_acquire);
    for (int i = 0; i < count; i++) {
        CUcontext handle = atomic_load_explicit(&contexts[i].handle, memory_order_acquire);
        if (handle != NULL &&
            atomic_load_explicit(&contexts[i].kind, memory_order_relaxed) == CONTEXT_PRIMARY &&
            atomic_load_explicit(&contexts[i].device, memory_order_relaxed) == device)
            return handle;
    }
    return NULL;
}

static _Atomic uint64_t *retains_of(CUdevice device)
{
    return &retains[(unsigned)device % SAMPLED_DEVICES];
}

/* Under the lock. */
static void set(struct known_context *entry, const struct place *place)
{
    atomic_store_explicit(&entry->device, place->device, memory_order_relaxed);
    atomic_store_explicit(&entry->kind, place->kind, memory_order_relaxed);
    atomic_store_explicit(&entry->number, place->number, memory_order_relaxed);
    atomic_store_explicit(&entry->references, 1, memory_order_relaxed);
    atomic_store_explicit(&entry->is_counted, false, memory_order_relaxed);
    atomic_store_explicit(&entry->bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->code_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->code_count, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->code_unmeasured, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->handle, place->handle, memory_order_release);
}

/* A context too many is not remembered, only asked about each time. */
static void remember(const struct place *place)
{
    if (place->handle == NULL || !tables_lock())
        return;
    struct known_context *entry = find(place->handle);
    if (entry == NULL)
        entry = find(NULL);
    int count = atomic_load_explicit(&context_count, memory_order_relaxed);
    if (entry == NULL && count < CONTEXTS_MAX) {
        entry = &contexts[count];
        set(entry, place);
        atomic_store_explicit(&context_count, count + 1, memory_order_release);
    } else if (entry != NULL) {
        set(entry, place);
    }
    tables_unlock();
}

static void forget(CUcontext handle)
{
    if (!tables_lock())
        return;
    struct known_context *entry = find(handle);
    if (entry != NULL)
        atomic_store_explicit(&entry->handle, NULL, memory_order_release);
    tables_unlock();
}

/* The primary context of a device where it is active: the one that another reference would be to. The
 * reference is given back at once. */
static CUcontext ask_primary(CUdevice device)
{
    CUresult (*retain)(CUcontext *, CUdevice) = real_driver(HOOK_cuDevicePrimaryCtxRetain);
    CUresult (*release)(CUdevice) = real_driver(HOOK_cuDevicePrimaryCtxRelease_v2);
    CUcontext primary = NULL;
    unsigned flags = 0;
    int active = 0;
    if (retain == NULL || release == NULL ||
        ask_cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        retain(&primary, device) != CUDA_SUCCESS)
        return NULL;
    release(device);
    return primary;
}

static void add(CUcontext handle, CUdevice device, enum context_kind kind);

static const struct device_change unmeasured = {.basis = BASIS_UNKNOWN};

/* Memory of a green context belongs to the primary one, which a program may never have named. */
static uint32_t number_for(CUcontext handle, CUdevice device, enum context_kind kind)
{
    CUcontext owner = handle;
    if (kind == CONTEXT_GREEN && device != DEVICE_UNKNOWN) {
        owner = primary_of(device);
        if (owner == NULL && (owner = ask_primary(device)) != NULL) {
            add(owner, device, CONTEXT_PRIMARY);
            context_took(owner, device, unmeasured);
        }
    }
    return recorder_context(owner != NULL ? owner : handle);
}

/* A context that we did not see made, or a green one that is seen in use for the first time. It is current.
 */
static struct place learn(CUcontext handle, enum context_kind kind)
{
    struct place place = {.handle = handle, .device = DEVICE_UNKNOWN, .kind = kind};
    CUdevice device;
    if (ask_cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        place.device = device;
        if (kind != CONTEXT_GREEN && ask_primary(device) == handle)
            place.kind = CONTEXT_PRIMARY;
    }
    place.number = number_for(handle, place.device, place.kind);
    if (place.device != DEVICE_UNKNOWN) {
        remember(&place);
        if (kind != CONTEXT_GREEN)
            context_took(handle, place.device, unmeasured);
    }
    return place;
}

static struct place current(void)
{
    CUcontext handle = NULL;
    if (ask_cuCtxGetCurrent(&handle) != CUDA_SUCCESS || handle == NULL)
        return (struct place){.device = DEVICE_UNKNOWN};
    const struct known_context *entry = find(handle);
    if (entry == NULL)
        return learn(handle, CONTEXT_CREATED);
    struct place place = {.handle = handle,
                          .device = atomic_load_explicit(&entry->device, memory_order_relaxed),
                          .number = atomic_load_explicit(&entry->number, memory_order_relaxed),
                          .kind =
                              (enum context_kind)atomic_load_explicit(&entry->kind, memory_order_relaxed)};
    return place.device != DEVICE_UNKNOWN ? place : learn(handle, place.kind);
}

int place_current_device(void)
{
    return current().device;
}

static bool lives_without_context(const struct allocation *allocation)
{
    return allocation->family == FAMILY_POOL || allocation->family == FAMILY_GRAPH ||
           allocation->family == FAMILY_VMM || allocation->of_pool ||
           (allocation->family == FAMILY_IPC && allocation->key_space == KEY_HANDLE);
}

void place_fill(struct allocation *allocation)
{
    struct place place = current();
    if (!space_infos[allocation->space].per_device)
        allocation->device = -1;
    else if (allocation->device == DEVICE_UNKNOWN)
        allocation->device = place.device;
    allocation->context = lives_without_context(allocation) ? 0 : place.number;
}

void place_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    struct asking asking = ask_begin();
    if (ask_cuMemGetInfo_v2(free_bytes, total_bytes) != CUDA_SUCCESS)
        *free_bytes = *total_bytes = 0;
    ask_end(&asking);
}

static void add(CUcontext handle, CUdevice device, enum context_kind kind)
{
    struct place place = {
        .handle = handle, .device = device, .kind = kind, .number = number_for(handle, device, kind)};
    remember(&place);
}

void context_created(CUcontext context, CUdevice device)
{
    add(context, device, CONTEXT_CREATED);
}

static int change_references(CUcontext context, int by)
{
    struct known_context *entry = find(context);
    return entry == NULL ? 1 : atomic_fetch_add_explicit(&entry->references, by, memory_order_relaxed) + by;
}

bool context_is_primary(CUcontext context, CUdevice device)
{
    const struct known_context *known = find(context);
    atomic_fetch_add_explicit(retains_of(device), 1, memory_order_relaxed);
    if (known != NULL && atomic_load_explicit(&known->kind, memory_order_relaxed) == CONTEXT_PRIMARY) {
        change_references(context, 1);
        return false;
    }
    add(context, device, CONTEXT_PRIMARY);
    return true;
}

bool context_primary_is_active(CUdevice device)
{
    unsigned flags;
    int active = 0;
    return ask_cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

/* A context that there was no room to remember is not counted: nobody would know when it ends. */
void context_took(CUcontext context, CUdevice device, struct device_change change)
{
    struct known_context *entry = context == NULL ? NULL : find(context);
    if (entry == NULL || atomic_exchange(&entry->is_counted, true))
        return;
    atomic_store(&entry->basis, (int)change.basis);
    atomic_fetch_add(&entry->bytes, change.bytes);
    device_holds(device, EVENT_CONTEXTS, 1, change.basis == BASIS_UNKNOWN, change);
}

/* The entry of the current context, or for a green one of the primary that it is a part of. */
static struct known_context *current_entry(void)
{
    struct place place = current();
    CUcontext primary = place.kind == CONTEXT_GREEN ? primary_of(place.device) : NULL;
    CUcontext handle = primary != NULL ? primary : place.handle;
    return handle == NULL ? NULL : find(handle);
}

void context_grew(struct device_change change)
{
    struct known_context *entry = change.bytes == 0 ? NULL : current_entry();
    if (entry == NULL)
        return;
    atomic_fetch_add(&entry->bytes, change.bytes);
    device_holds(atomic_load(&entry->device), EVENT_CONTEXTS, 0, 0, change);
}

void context_holds_code(int count, struct device_change change)
{
    struct known_context *entry = current_entry();
    /* What is unloaded may have been loaded with no context, where nothing was counted. */
    if (entry == NULL || (count < 0 && atomic_load(&entry->code_count) <= 0))
        return;
    /* Of an unloading that was not measured, too: what the code had is still in the sum. */
    int untold = change.basis == BASIS_UNKNOWN;
    atomic_fetch_add(&entry->code_bytes, change.bytes);
    atomic_fetch_add(&entry->code_count, count);
    atomic_fetch_add(&entry->code_unmeasured, untold);
    device_holds(atomic_load(&entry->device), EVENT_CODE, count, untold, change);
}

/* What it had goes with it. */
static void give_back(struct known_context *entry)
{
    int device = atomic_load(&entry->device);
    int count = atomic_exchange(&entry->code_count, 0), untold = atomic_exchange(&entry->code_unmeasured, 0);
    struct device_change code = {BASIS_UNKNOWN, -atomic_exchange(&entry->code_bytes, 0)};
    if (count != 0 || untold != 0 || code.bytes != 0)
        device_holds(device, EVENT_CODE, -count, -untold, code);
    if (atomic_exchange(&entry->is_counted, false))
        device_holds(device, EVENT_CONTEXTS, -1, -(atomic_load(&entry->basis) == BASIS_UNKNOWN),
                     (struct device_change){BASIS_UNKNOWN, -atomic_exchange(&entry->bytes, 0)});
}

void context_is_green(CUcontext context)
{
    /* Its device is asked for when it is current. */
    if (find(context) == NULL)
        add(context, DEVICE_UNKNOWN, CONTEXT_GREEN);
}

void context_attached(CUcontext context)
{
    change_references(context, 1);
}

bool context_detaching(CUcontext context)
{
    return change_references(context, -1) <= 0;
}

void context_ended(CUcontext context)
{
    struct known_context *entry = context == NULL ? NULL : find(context);
    holds_context_ended(context);
    record_teardown(context);
    if (entry != NULL)
        give_back(entry);
    forget(context);
}

bool context_ending(CUcontext context)
{
    const struct known_context *known = find(context);
    if (context == NULL || known == NULL ||
        atomic_load_explicit(&known->kind, memory_order_relaxed) != CONTEXT_CREATED)
        return false;
    context_ended(context);
    return true;
}

void context_primary_ending(CUdevice device)
{
    CUcontext primary = primary_of(device);
    if (primary != NULL)
        context_ended(primary);
}

static void set_number(CUcontext context, uint32_t number)
{
    struct known_context *entry = find(context);
    if (entry != NULL)
        atomic_store_explicit(&entry->number, number, memory_order_relaxed);
}

void context_primary_releasing(CUdevice device, struct primary_release *release)
{
    *release = (struct primary_release){.primary = primary_of(device)};
    if (release->primary == NULL || change_references(release->primary, 0) > 1)
        return;
    release->looks_last = true;
    release->retains = atomic_load_explicit(retains_of(device), memory_order_relaxed);
    release->number = recorder_context_parts(release->primary);
    set_number(release->primary, recorder_context(release->primary));
}

/* Somebody has retained it anew: another context has the handle. */
static void ended_and_back(CUdevice device, const struct primary_release *release)
{
    struct known_context *entry = find(release->primary);
    if (entry != NULL)
        give_back(entry);
    change_references(release->primary, -1);
    context_took(release->primary, device, unmeasured);
}

static void last_released(CUdevice device, const struct primary_release *release)
{
    bool is_back = atomic_load_explicit(retains_of(device), memory_order_relaxed) != release->retains;
    if (!is_back && context_primary_is_active(device)) {
        /* Somebody else has a reference, as green contexts do. */
        recorder_context_stays(release->primary, release->number);
        set_number(release->primary, release->number);
        return;
    }
    record_teardown_of(release->number);
    if (is_back)
        ended_and_back(device, release);
    else
        context_ended(release->primary);
}

void context_primary_released(CUdevice device, CUresult rc, const struct primary_release *release)
{
    if (release->looks_last && rc == CUDA_SUCCESS) {
        last_released(device, release);
    } else if (release->looks_last) {
        recorder_context_stays(release->primary, release->number);
        set_number(release->primary, release->number);
    } else if (rc == CUDA_SUCCESS) {
        if (release->primary != NULL)
            change_references(release->primary, -1);
        context_primaries_checked();
    }
}

void context_primaries_checked(void)
{
    int count = atomic_load_explicit(&context_count, memory_order_acquire);
    for (int i = 0; i < count; i++) {
        CUcontext handle = atomic_load_explicit(&contexts[i].handle, memory_order_acquire);
        CUdevice device = atomic_load_explicit(&contexts[i].device, memory_order_relaxed);
        unsigned flags;
        int active = 1;
        if (handle != NULL &&
            atomic_load_explicit(&contexts[i].kind, memory_order_relaxed) == CONTEXT_PRIMARY &&
            ask_cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
            context_ended(handle);
    }
}
