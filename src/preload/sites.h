/*
 * Which site an allocation belongs to: its stack, and what was called for what kind of memory, on which
 * device. Under the lock.
 */
#ifndef PRELOAD_SITES_H
#define PRELOAD_SITES_H

#include <stdint.h>

#include "preload/recorder.h"

/* The catalog's number; CATALOG_NONE when there is no memory for a new one. `stack` is the catalog's, too. */
uint32_t sites_find(const struct allocation *allocation, uint32_t stack);

/* Forgets which API names are known, when their memory goes. */
void sites_forget(void);

#endif
