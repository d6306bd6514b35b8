/*
 * Which mapped file holds an address. Asks the dynamic linker's list by dl_iterate_phdr, which, unlike
 * dladdr, does not wait for a dlopen that is running constructors in another thread. Call without any lock of
 * ours held.
 */
#ifndef CAPTURE_MODULES_H
#define CAPTURE_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/catalog.h"

struct loaded_module {
    struct module module; /* .path points at path */
    char path[4096];      /* absolute; "[vdso]" for the kernel's */
};

/* False when no mapped file holds `address`. */
bool modules_find(uintptr_t address, struct loaded_module *found);

#endif
