/* The driver's real functions (real.h). Lock-free: pointers are only ever replaced by better ones. */
#include "hooks/real.h"

#include <stdatomic.h>
#include <string.h>

#include "hooks/ask.h"
#include "hooks/loaded.h"
#include "hooks/loader.h"
#include "preload/recorder.h"

enum rank { RANK_NONE, RANK_EXPORT, RANK_PROGRAM, RANK_NEXT };

struct real {
    _Atomic(void *) address;
    _Atomic(void *) export; /* in the loaded driver */
    _Atomic int rank;       /* enum rank */
};

static struct real reals[HOOK_COUNT];
static _Atomic bool prepared;

static void offer(enum hook_id id, void *address, enum rank rank)
{
    struct real *real = &reals[id];
    if (address == NULL || loaded_is_ours(address))
        return;
    if (atomic_load_explicit(&real->address, memory_order_acquire) != NULL &&
        (int)rank <= atomic_load_explicit(&real->rank, memory_order_relaxed))
        return;
    atomic_store_explicit(&real->address, address, memory_order_release);
    atomic_store_explicit(&real->rank, rank, memory_order_relaxed);
}

void real_learn_driver(enum hook_id id, void *address)
{
    offer(id, address, RANK_PROGRAM);
}

/* The driver under its own name, or else wherever the functions that the program found came from. */
static bool find_driver(struct elf_image *image)
{
    struct loaded_range range;
    if (loaded_driver(image, &range))
        return true;
    for (int i = 0; i < HOOK_COUNT; i++) {
        const void *known = atomic_load_explicit(&reals[i].address, memory_order_acquire);
        if (hook_symbols[i].library == HOOK_DRIVER && known != NULL && loaded_image_of(known, image))
            return elf_image_address(image, "cuInit") != NULL;
    }
    return false;
}

/* A tool that stands behind us and finds the driver by RTLD_NEXT works only when the driver is behind it in
 * turn. */
static bool is_in_search_order(const struct elf_image *image)
{
    void *probe = elf_image_address(image, "cuGetErrorName");
    return probe != NULL && loader_next("cuGetErrorName") == probe;
}

static void find_all(const struct elf_image *image)
{
    bool searchable = is_in_search_order(image);
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (hook_symbols[i].library != HOOK_DRIVER)
            continue;
        void *address = elf_image_address(image, hook_symbols[i].name);
        if (address == NULL)
            continue;
        atomic_store_explicit(&reals[i].export, address, memory_order_relaxed);
        offer((enum hook_id)i, address, RANK_EXPORT);
        if (searchable)
            offer((enum hook_id)i, loader_next(hook_symbols[i].name), RANK_NEXT);
    }
    ask_find_all(image);
}

void real_prepare(void)
{
    if (atomic_load_explicit(&prepared, memory_order_acquire))
        return;
    struct elf_image image;
    if (find_driver(&image)) {
        find_all(&image);
        atomic_store_explicit(&prepared, true, memory_order_release);
    }
    recorder_prepare();
}

void *real_driver(enum hook_id id)
{
    void *address = atomic_load_explicit(&reals[id].address, memory_order_acquire);
    if (address != NULL)
        return address;
    real_prepare();
    address = atomic_load_explicit(&reals[id].address, memory_order_acquire);
    if (address != NULL)
        return address;
    offer(id, loader_next(hook_symbols[id].name), RANK_PROGRAM);
    return atomic_load_explicit(&reals[id].address, memory_order_acquire);
}

enum hook_id real_variant_at(const void *address, const char *symbol)
{
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (hook_symbols[i].library == HOOK_DRIVER &&
            atomic_load_explicit(&reals[i].export, memory_order_relaxed) == address &&
            (strcmp(hook_symbols[i].bare, symbol) == 0 || strcmp(hook_symbols[i].name, symbol) == 0))
            return (enum hook_id)i;
    }
    return HOOK_COUNT;
}

void real_forget_unmapped(void)
{
    const void *addresses[2 * HOOK_COUNT];
    bool mapped[2 * HOOK_COUNT];
    for (int i = 0; i < HOOK_COUNT; i++) {
        addresses[2 * i] = atomic_load_explicit(&reals[i].address, memory_order_acquire);
        addresses[2 * i + 1] = atomic_load_explicit(&reals[i].export, memory_order_relaxed);
    }
    loaded_which_are_mapped(addresses, mapped, 2 * HOOK_COUNT);
    bool lost = false;
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (addresses[2 * i] != NULL && !mapped[2 * i]) {
            atomic_store_explicit(&reals[i].rank, RANK_NONE, memory_order_relaxed);
            atomic_store_explicit(&reals[i].address, NULL, memory_order_release);
            lost = true;
        }
        if (addresses[2 * i + 1] != NULL && !mapped[2 * i + 1]) {
            atomic_store_explicit(&reals[i].export, NULL, memory_order_relaxed);
            lost = true;
        }
    }
    if (lost) {
        ask_forget_all();
        atomic_store_explicit(&prepared, false, memory_order_release);
    }
    real_runtime_forget_unmapped();
}
