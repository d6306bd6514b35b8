/*
 * The real function behind every hook. Each row of symbols.h has one pointer, stored atomically,
 * which comes from, the best first:
 *   - the search order after this library, where the driver itself is to be found there: whatever
 *     stands between us and the driver (another preloaded tool) keeps its place;
 *   - what the real dlsym or cuGetProcAddress returned to the program for that variant;
 *   - the export of the loaded driver.
 * It never points into this library: a driver that resolves its own exports hands our hooks back.
 *
 * A runtime's or a framework's function depends on who calls: two runtimes can live in one process, and an
 * extension module brings its own, out of reach of any global search. It is looked for once for each calling
 * file and function.
 */
#ifndef HOOKS_REAL_H
#define HOOKS_REAL_H

#include <stdbool.h>

#include "hooks/symbols.h"

/* NULL when there is none. */
void *real_driver(enum hook_id id);
/* A runtime's or a framework's. */
void *real_of_caller(enum hook_id id, const void *caller);

/* A look-up of the program returned `address` for this variant. */
void real_learn_driver(enum hook_id id, void *address);
void real_learn_runtime(enum hook_id id, void *address, const void *caller);

/* The driver's variant exported at `address` among those with this bare or exported name; HOOK_COUNT for
 * none. */
enum hook_id real_variant_at(const void *address, const char *symbol);

/* From the first sign of CUDA, where the dynamic linker may be asked: finds all of the driver's functions at
 * once, so that no hook needs it later, and lets the recorder get ready. Cheap when done already. */
void real_prepare(void);

/* After something was unloaded: forgets what is mapped no more. */
void real_forget_unmapped(void);
void real_runtime_forget_unmapped(void);

#endif
