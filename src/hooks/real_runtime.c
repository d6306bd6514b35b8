/*
 * The runtime's and the frameworks' real functions (real.h): one table of pointers for each file that calls.
 * A table is filled as its file calls one function after the other, and never moves; the few files that call
 * them are found by a linear scan.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "hooks/loaded.h"
#include "hooks/loader.h"
#include "hooks/real.h"

#define FIRST        HOOK_cudaGetDriverEntryPoint
#define CALLER_HOOKS (HOOK_COUNT - FIRST)
#define CALLERS_MAX  128

#define OF_CALLER(name, ...) _Static_assert(HOOK_##name >= FIRST, "the driver's rows come first");
RUNTIME_SYMBOLS(OF_CALLER)
FRAMEWORK_SYMBOLS(OF_CALLER)
NVTX_SYMBOLS(OF_CALLER)
#undef OF_CALLER

struct caller {
    _Atomic uintptr_t start, end; /* of the file; start 0: nobody's */
    _Atomic(void *) functions[CALLER_HOOKS];
};

static struct caller callers[CALLERS_MAX];
static atomic_flag adding = ATOMIC_FLAG_INIT;
/* What some look-up found, for callers that nothing else is known of. */
static _Atomic(void *) learned[CALLER_HOOKS];

static struct caller *find_caller(uintptr_t address)
{
    for (int i = 0; i < CALLERS_MAX; i++) {
        uintptr_t start = atomic_load_explicit(&callers[i].start, memory_order_acquire);
        if (start != 0 && address >= start &&
            address < atomic_load_explicit(&callers[i].end, memory_order_relaxed))
            return &callers[i];
    }
    return NULL;
}

/* NULL for code outside every file, without a free slot, and for a moment while another thread adds one. */
static struct caller *add_caller(const void *address)
{
    struct loaded_range range = loaded_range_of(address, NULL);
    struct caller *free_slot = NULL;
    if (range.start == 0 || atomic_flag_test_and_set_explicit(&adding, memory_order_acquire))
        return NULL;
    for (int i = 0; i < CALLERS_MAX && free_slot == NULL; i++) {
        if (atomic_load_explicit(&callers[i].start, memory_order_relaxed) == 0)
            free_slot = &callers[i];
    }
    if (free_slot != NULL) {
        for (int i = 0; i < CALLER_HOOKS; i++)
            atomic_store_explicit(&free_slot->functions[i], NULL, memory_order_relaxed);
        atomic_store_explicit(&free_slot->end, range.end, memory_order_relaxed);
        atomic_store_explicit(&free_slot->start, range.start, memory_order_release);
    }
    atomic_flag_clear_explicit(&adding, memory_order_release);
    return free_slot;
}

/* As the caller's reference would be bound if we were not there: to another tool behind us first, then to the
 * caller's own runtime (its version tells it from another one in the global scope), then to any in the global
 * scope. Code that got the function in some other way gets what a look-up last found, or what there is. */
static void *search(enum hook_id id, const void *caller)
{
    const char *name = hook_symbols[id].name;
    void *next = loader_next(name);
    if (next != NULL && !loaded_in_runtime(next))
        return next;
    void *own = loaded_in_dependencies(caller, name);
    if (own != NULL)
        return own;
    if (next != NULL)
        return next;
    void *found = atomic_load_explicit(&learned[id - FIRST], memory_order_acquire);
    return found != NULL ? found : loaded_in_any_runtime(name);
}

/* A framework's libraries are loaded out of reach of a global search, together. This can be inside a lock of
 * theirs, which code that the dynamic linker runs under its own may want: so dlsym is not asked. */
static void *search_framework(enum hook_id id, const void *caller)
{
    const char *name = hook_symbols[id].name;
    struct elf_image own;
    void *found = loaded_image_of(caller, &own) ? elf_image_address(&own, name) : NULL;
    if (found == NULL)
        found = loaded_in_dependencies(caller, name);
    return found != NULL ? found : loaded_anywhere(name);
}

void *real_of_caller(enum hook_id id, const void *caller)
{
    struct caller *known = find_caller((uintptr_t)caller);
    void *function = NULL;
    if (known == NULL)
        known = add_caller(caller);
    if (known != NULL)
        function = atomic_load_explicit(&known->functions[id - FIRST], memory_order_acquire);
    if (function == NULL) {
        function =
            hook_symbols[id].library == HOOK_FRAMEWORK ? search_framework(id, caller) : search(id, caller);
        if (known != NULL && function != NULL)
            atomic_store_explicit(&known->functions[id - FIRST], function, memory_order_release);
    }
    return function;
}

void real_learn_runtime(enum hook_id id, void *address, const void *caller)
{
    if (address == NULL || loaded_is_ours(address))
        return;
    atomic_store_explicit(&learned[id - FIRST], address, memory_order_release);
    struct caller *known = find_caller((uintptr_t)caller);
    if (known == NULL)
        known = add_caller(caller);
    if (known != NULL)
        atomic_store_explicit(&known->functions[id - FIRST], address, memory_order_release);
}

static void forget_unmapped(_Atomic(void *) *functions)
{
    const void *addresses[CALLER_HOOKS];
    bool mapped[CALLER_HOOKS];
    for (int i = 0; i < CALLER_HOOKS; i++)
        addresses[i] = atomic_load_explicit(&functions[i], memory_order_acquire);
    loaded_which_are_mapped(addresses, mapped, CALLER_HOOKS);
    for (int i = 0; i < CALLER_HOOKS; i++) {
        if (addresses[i] != NULL && !mapped[i])
            atomic_store_explicit(&functions[i], NULL, memory_order_release);
    }
}

void real_runtime_forget_unmapped(void)
{
    forget_unmapped(learned);
    for (int i = 0; i < CALLERS_MAX; i++) {
        uintptr_t start = atomic_load_explicit(&callers[i].start, memory_order_acquire);
        if (start == 0)
            continue;
        if (loaded_range_of((const void *)start, NULL).start != start)
            atomic_store_explicit(&callers[i].start, 0, memory_order_release);
        else
            forget_unmapped(callers[i].functions);
    }
}
