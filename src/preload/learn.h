/* Turns a captured stack into a catalog stack: the cold half of a capture (capture/capture.h). */
#ifndef PRELOAD_LEARN_H
#define PRELOAD_LEARN_H

#include <stdint.h>

#include "capture/capture.h"

/* The catalog's id of `raw`, the calling thread's newest capture; new strings, modules, frames and the stack
 * itself are recorded on the way. CATALOG_NONE without memory, or where Python came to its end in the
 * meantime. Call without the lock: it asks the dynamic linker. */
uint32_t learn_stack(const struct raw_stack *raw, uint32_t generation);
/* Under the lock: gives back the hash table, whose entries go with the arena. */
void learn_reset(void);

/* Under the lock: the catalog's id of a string, recorded when it is new. */
uint32_t learn_string(const char *text);

#endif
