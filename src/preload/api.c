/* The functions that programs call (gpumemtrace.h), but for phases. */
#define GPUMEMTRACE_LIBRARY
#include "gpumemtrace.h"

#include <string.h>

#include "preload/marks.h"
#include "preload/recorder.h"
#include "preload/state.h"

#define ALLOCATORS (KEY_ALLOCATOR_LAST - KEY_ALLOCATOR) /* with a key space of their own */
#define NAME_BYTES 256

/* Filled one after the other, under the lock; what is filled never changes. */
static char allocators[ALLOCATORS][NAME_BYTES];
static _Atomic uint32_t allocator_count;

int gpumemtrace_active(void)
{
    return atomic_load_explicit(&preload.phase, memory_order_acquire) == PHASE_OFF ? 0 : GPUMEMTRACE_API;
}

static uint32_t find_allocator(const char *name)
{
    uint32_t count = atomic_load_explicit(&allocator_count, memory_order_acquire);
    uint32_t i = 0;
    while (i < count && strcmp(allocators[i], name) != 0)
        i++;
    return i;
}

/* The key space of an allocator's blocks; all for whom there is none of their own share the last. */
static enum key_space key_space_of(const char *name)
{
    uint32_t index = find_allocator(name);
    if (index == atomic_load_explicit(&allocator_count, memory_order_acquire) && index < ALLOCATORS &&
        preload_lock()) {
        index = find_allocator(name);
        if (index == atomic_load_explicit(&allocator_count, memory_order_relaxed) && index < ALLOCATORS) {
            memcpy(allocators[index], name, strlen(name) + 1);
            atomic_store_explicit(&allocator_count, index + 1, memory_order_release);
        }
        preload_unlock();
    }
    return (enum key_space)(KEY_ALLOCATOR + (index < ALLOCATORS ? index : ALLOCATORS));
}

static void copy_name(char *copy, const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, NAME_BYTES - 1);
    memcpy(copy, name == NULL ? "" : name, length);
    copy[length] = '\0';
}

void gpumemtrace_block_begin(const char *allocator, const void *address, size_t bytes, int device)
{
    char name[NAME_BYTES];
    if (address == NULL)
        return;
    if (hook_enter()) {
        copy_name(name, allocator);
        record_allocation(&(struct allocation){.allocator = name,
                                               .family = FAMILY_ALLOCATOR,
                                               .space = SPACE_DEVICE,
                                               .device = device < 0 || device > INT16_MAX ? -1 : device,
                                               .key_space = key_space_of(name),
                                               .key = (uintptr_t)address,
                                               .size = bytes});
    }
    hook_leave();
}

void gpumemtrace_block_end(const char *allocator, const void *address)
{
    char name[NAME_BYTES];
    struct block ended;
    if (address == NULL)
        return;
    if (hook_enter()) {
        copy_name(name, allocator);
        record_free(key_space_of(name), (uintptr_t)address, &ended);
    }
    hook_leave();
}

int gpumemtrace_mark(void)
{
    int mark = 0;
    if (gpumemtrace_active() != 0 && preload_lock()) {
        mark = marks_set();
        preload_unlock();
    }
    return mark;
}

void gpumemtrace_unmark(int mark)
{
    if (mark != 0 && preload_lock()) {
        marks_take(mark);
        preload_unlock();
    }
}

int gpumemtrace_get_usage(int mark, int layer, int device, struct gpumemtrace_usage *usage)
{
    bool known = false;
    memset(usage, 0, sizeof *usage);
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) == PHASE_RECORDING && preload_lock()) {
        known = marks_usage(mark, layer, device, usage);
        preload_unlock();
    }
    return known;
}
