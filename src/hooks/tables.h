/*
 * What hooks must remember between calls: which handle is mapped where, which graph a node belongs to, where
 * a pool lies. Kept in small hash tables (base/hash.h) under one lock, which is never held across a call to
 * the driver, the recorder or the dynamic linker.
 *
 * A child made by fork() may find the lock held by a thread that it does not have. CUDA does not survive a
 * fork, so such a child takes the lock and starts with empty tables.
 */
#ifndef HOOKS_TABLES_H
#define HOOKS_TABLES_H

#include <stdbool.h>

/* False when this thread holds it already (a signal handler in the middle of our work): then go without. */
bool tables_lock(void);
void tables_unlock(void);

/* Under the lock. Objects of at most TABLES_ENTRY_MAX bytes, uninitialised; NULL when memory ran out. */
#define TABLES_ENTRY_MAX 208
void *tables_new(void);
void tables_delete(void *entry);

/* Each table's own: under the lock, forgets everything without touching it. */
void vmm_forget_all(void);
void mappings_forget_all(void);
void holds_forget_all(void);
void pools_forget_all(void);
void graphs_forget_all(void);

#endif
