/*
 * Return addresses through frames of any kind: by libunwind's unw_backtrace or, where there is no libunwind,
 * by the C library's backtrace(). Neither needs a symbol at link time: a libunwind that is linked in takes
 * the place of the traced program's own C++ unwinder, one opened RTLD_LOCAL does not.
 */
#ifndef CAPTURE_NATIVE_H
#define CAPTURE_NATIVE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef int native_backtrace(void **addresses, int max);

extern _Atomic(native_backtrace *) native_unwinder; /* NULL: there is none */

/* May call the dynamic linker. Says through `note` what cannot be had. */
void native_start(void (*note)(const char *sentence));

/* Up to `max` return addresses, from the calling function outwards; ends where there is no more to find.
 * Changes errno. Inline, so as not to be a frame itself. */
static inline uint32_t native_walk(uintptr_t *addresses, uint32_t max)
{
    native_backtrace *unwinder = atomic_load_explicit(&native_unwinder, memory_order_acquire);
    int count = unwinder != NULL ? unwinder((void **)addresses, (int)max) : 0;
    return count < 0 ? 0 : (uint32_t)count;
}

/* After modules were unloaded, from a place that may call the dynamic linker. */
void native_modules_changed(void);

#endif
