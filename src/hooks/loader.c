/*
 * dlsym and dlclose. The exported dlsym is a trampoline (dlsym.S) that asks loader_answer() and then either
 * returns what it says or jumps on to the next dlsym with everything as the caller left it, so that RTLD_NEXT
 * and RTLD_DEFAULT still mean the caller's place in the search order.
 *
 * Works before any constructor ran, inside an allocator that is just being set up, and next to another tool's
 * dlsym: the one behind us is called, the one in front of us calls us.
 */
#include "hooks/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "hooks/export.h"
#include "hooks/loaded.h"
#include "hooks/real.h"
#include "hooks/symbols.h"
#include "preload/recorder.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef int dlclose_function(void *handle);

struct answer {
    void *address;
    uintptr_t is_final; /* 0: `address` is the dlsym to jump on to */
};

/* From dlsym.S, and in registers back to it. `caller` is the return address of the dlsym call. */
__attribute__((visibility("hidden"))) struct answer loader_answer(void *handle, const char *name,
                                                                  const void *caller);

static _Atomic(dlsym_function *) libc_dlsym, next_dlsym;
static _Atomic(dlclose_function *) next_dlclose;

/* dlsym of libc itself, whoever else exports one: only libc's has a version. A version it lacks costs an
 * error string from malloc, so the likely one is asked for first. */
static dlsym_function *find_libc_dlsym(void)
{
#if defined(__x86_64__)
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5"};
#else
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17"};
#endif
    const char *libc = gnu_get_libc_version();
    bool has_merged_libdl = strverscmp(libc, "2.34") >= 0;
    void *found = dlvsym(RTLD_NEXT, "dlsym", versions[has_merged_libdl ? 0 : 1]);
    if (found == NULL)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[has_merged_libdl ? 1 : 0]);
    if (found == NULL)
        found = loaded_in_file("libc.so.6", "dlsym");
    return (dlsym_function *)found;
}

static dlsym_function *dlsym_of_libc(void)
{
    dlsym_function *function = atomic_load_explicit(&libc_dlsym, memory_order_acquire);
    if (function == NULL) {
        function = find_libc_dlsym();
        atomic_store_explicit(&libc_dlsym, function, memory_order_release);
    }
    return function;
}

/* libc's, or that of another tool behind us. */
static dlsym_function *dlsym_behind_us(void)
{
    dlsym_function *function = atomic_load_explicit(&next_dlsym, memory_order_acquire);
    if (function == NULL) {
        dlsym_function *libc = dlsym_of_libc();
        function = libc == NULL ? NULL : (dlsym_function *)libc(RTLD_NEXT, "dlsym");
        if (function == NULL || loaded_is_ours((const void *)function))
            function = libc;
        atomic_store_explicit(&next_dlsym, function, memory_order_release);
    }
    return function;
}

void *loader_next(const char *name)
{
    dlsym_function *libc = dlsym_of_libc();
    void *found = libc == NULL ? NULL : libc(RTLD_NEXT, name);
    if (found == NULL)
        dlerror();
    return found;
}

static void learn(enum hook_id id, void *address, const void *caller)
{
    if (hook_symbols[id].library == HOOK_DRIVER)
        real_learn_driver(id, address);
    else
        real_learn_runtime(id, address, caller);
    real_prepare();
    dlerror(); /* what getting ready may have looked for in vain is not the program's business */
}

/* A global search found our own hook. Without us it would have gone on; so there is something to find only if
 * that finds something, behind us or, as the dynamic linker does last, among the caller's own dependencies.
 */
static void *answer_of_global_search(enum hook_id id, const void *caller)
{
    const char *name = hook_symbols[id].name;
    void *found = dlsym_of_libc()(RTLD_NEXT, name);
    if (found == NULL && caller != NULL) {
        found = loaded_in_dependencies(caller, name);
        if (found != NULL)
            dlerror();
    }
    if (found == NULL)
        return NULL; /* and dlerror() says why */
    learn(id, found, caller);
    return hook_symbols[id].hook;
}

/* In the tool whose dlsym is behind ours: it handed out a hook of its own. */
static bool is_of_tool_behind_us(const void *found)
{
    const void *tool = (const void *)dlsym_behind_us();
    if (tool == (const void *)dlsym_of_libc())
        return false;
    struct loaded_range range = loaded_range_of(tool, NULL);
    return (uintptr_t)found >= range.start && (uintptr_t)found < range.end;
}

/* Whether a hook of ours may stand in for `found`, which a look-up through a handle returned: the library's
 * function, or that of whoever stands behind us. A tool in front of us comes to us by itself, and a library
 * that merely has a function of that name keeps it. */
static bool stands_for_real(enum hook_id id, const void *found)
{
    bool of_library =
        hook_symbols[id].library == HOOK_DRIVER ? loaded_in_driver(found) : loaded_in_runtime(found);
    return of_library || is_of_tool_behind_us(found) || loader_next(hook_symbols[id].name) == found;
}

static void *answer_for_handle(void *handle, enum hook_id id, const void *caller)
{
    void *found = dlsym_behind_us()(handle, hook_symbols[id].name);
    if (found == NULL)
        return NULL;
    if (loaded_is_ours(found))
        return answer_of_global_search(id, handle == RTLD_DEFAULT ? caller : NULL);
    if (handle == RTLD_DEFAULT || !stands_for_real(id, found))
        return found;
    learn(id, found, caller);
    return hook_symbols[id].hook;
}

struct answer loader_answer(void *handle, const char *name, const void *caller)
{
    enum hook_id id = symbol_find(name);
    int kept = errno;
    /* Who asks for the next one behind us, or has another one before us, never sees ours. */
    if (id == HOOK_COUNT || (handle == RTLD_NEXT && !loaded_meets_us(caller, name))) {
        errno = kept;
        return (struct answer){(void *)dlsym_behind_us(), 0};
    }
    void *address =
        handle == RTLD_NEXT ? answer_of_global_search(id, NULL) : answer_for_handle(handle, id, caller);
    errno = kept;
    return (struct answer){address, 1};
}

static dlclose_function *dlclose_behind_us(void)
{
    dlclose_function *function = atomic_load_explicit(&next_dlclose, memory_order_acquire);
    if (function == NULL) {
        function = (dlclose_function *)loader_next("dlclose");
        atomic_store_explicit(&next_dlclose, function, memory_order_release);
    }
    return function;
}

EXPORT int dlclose(void *handle)
{
    dlclose_function *real = dlclose_behind_us();
    uint64_t before = loaded_unloads();
    int rc = real(handle);
    int kept = errno;
    if (loaded_unloads() != before) {
        real_forget_unmapped();
        recorder_modules_changed();
    }
    errno = kept;
    return rc;
}
