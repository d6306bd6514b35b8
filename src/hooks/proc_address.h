/* Puts our hook in the place of what a look-up by name, version and flags returned. */
#ifndef HOOKS_PROC_ADDRESS_H
#define HOOKS_PROC_ADDRESS_H

#include <stdint.h>

/* A version that the caller did not name. */
#define PROC_ADDRESS_ANY_VERSION 0

/* After a look-up that succeeded: *function is what the driver returned, and is left as it is unless we hook
 * exactly that variant. */
void proc_address_replace(const char *symbol, void **function, int version, uint64_t flags);

#endif
