/* Whether an address can be where a call returns to. */
#ifndef CAPTURE_CALL_SITE_H
#define CAPTURE_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

/* True when the instruction before `address`, where code can be read, may be a call. */
bool call_site_precedes(uintptr_t address);

#endif
