/*
 * The native half of a stack: return addresses, by libunwind's unw_backtrace or, where there is no libunwind,
 * by the C library's backtrace(). Neither needs a symbol at link time: a libunwind that is linked in takes
 * the place of the traced program's own C++ unwinder, one opened RTLD_LOCAL does not.
 */
#ifndef CAPTURE_NATIVE_H
#define CAPTURE_NATIVE_H

#include <stdint.h>

/* May call the dynamic linker. Says through `note` what cannot be had. */
void native_start(void (*note)(const char *sentence));

/* Up to `max` return addresses, from a function near the caller outwards; ends where there is no more to
 * find. Changes errno. */
uint32_t native_walk(uintptr_t *addresses, uint32_t max);

/* After modules were unloaded: forget what is known about addresses. */
void native_modules_changed(void);

#endif
