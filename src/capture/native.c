/* Finding and calling an unwinder (native.h). */
#include "capture/native.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "capture/elf_image.h"

#if defined(__x86_64__)
#define UNWIND_PREFIX       "_Ux86_64_"
#define UNWIND_LOCAL_PREFIX "_ULx86_64_"
#elif defined(__aarch64__)
#define UNWIND_PREFIX       "_Uaarch64_"
#define UNWIND_LOCAL_PREFIX "_ULaarch64_"
#else
#error "no libunwind names for this processor"
#endif

/* libunwind's end of a thread comes after ThreadSanitizer's, which that does not survive. */
#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define WITH_LIBUNWIND 0
#else
#define WITH_LIBUNWIND 1
#endif

/* Where our own walk (capture/unwind.h) does not go on: at unusual frames, and everywhere but on x86-64. */
static const char WITHOUT_LIBUNWIND[] = "libunwind.so.8 was not found (package libunwind8): "
                                        "native stacks that hold unusual frames take longer";
static const char WITHOUT_UNWINDER[] =
    "neither libunwind.so.8 (package libunwind8) nor libgcc_s.so.1 was found: "
    "native stacks are missing where they hold unusual frames";

typedef void flush_function(void *address_space, uintptr_t low, uintptr_t high);

_Atomic(native_backtrace *) native_unwinder;

/* Of libunwind; NULL without. */
static flush_function *flush;
static void **address_space;

/* libc's own function, past anything put in front of it: which symbol version carries it depends on the libc.
 */
static void *libc_function(const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        void *found = dlvsym(RTLD_NEXT, name, versions[i]);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Those of 1.3, as Ubuntu 22.04 has it, are addresses inside the calls, not behind them: sites would be
 * counted twice, by who took the stack. */
static __attribute__((noinline)) bool gives_return_addresses(native_backtrace *unwinder)
{
    void *found[4];
    return unwinder(found, 4) > 1 && found[1] == __builtin_return_address(0);
}

static native_backtrace *open_libunwind(void)
{
    void *(*open)(const char *, int) = libc_function("dlopen");
    if (open == NULL)
        open = dlopen;
    const struct link_map *map = open("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    struct elf_image image;
    if (map == NULL || !elf_image_open(&image, map->l_addr, map->l_ld))
        return NULL;
    native_backtrace *unwinder = elf_image_address(&image, "unw_backtrace");
    flush = elf_image_address(&image, UNWIND_PREFIX "flush_cache");
    address_space = elf_image_address(&image, UNWIND_LOCAL_PREFIX "local_addr_space");
    return unwinder;
}

/* libc loads its unwinder (libgcc_s), and allocates, in the first call: have that behind us, here where it is
 * allowed. Without it there is no address in the answer: NULL. */
static native_backtrace *libc_unwinder(void)
{
    native_backtrace *unwinder = libc_function("backtrace");
    void *first[4];
    return unwinder != NULL && unwinder(first, 4) > 0 ? unwinder : NULL;
}

void native_start(void (*note)(const char *sentence))
{
    native_backtrace *unwinder = WITH_LIBUNWIND ? open_libunwind() : NULL;
    bool is_missing = unwinder == NULL;
    if (unwinder != NULL && !gives_return_addresses(unwinder)) { /* nothing that a person could mend */
        unwinder = NULL;
        flush = NULL;
    }
    if (unwinder == NULL) {
        unwinder = libc_unwinder();
        if (WITH_LIBUNWIND && (is_missing || unwinder == NULL))
            note(unwinder != NULL ? WITHOUT_LIBUNWIND : WITHOUT_UNWINDER);
    }
    atomic_store_explicit(&native_unwinder, unwinder, memory_order_release);
}

/* libunwind keeps, in each thread, how frames were laid out at each address, which cannot be flushed: where
 * other code comes to lie at an address, it goes astray, up to reading where nothing is. libc's backtrace()
 * keeps nothing. */
void native_modules_changed(void)
{
    if (flush != NULL && address_space != NULL)
        flush(*address_space, 0, 0);
    native_backtrace *unwinder = libc_unwinder();
    if (unwinder != NULL)
        atomic_store_explicit(&native_unwinder, unwinder, memory_order_release);
}
