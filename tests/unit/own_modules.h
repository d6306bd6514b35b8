/* The modules mapped into a test program itself, as a recording would describe them. */
#ifndef TESTS_OWN_MODULES_H
#define TESTS_OWN_MODULES_H

#include "catalog/catalog.h"

/* The module that holds `address`; the test fails when none does. Without build-id, size and time: whoever
 * wants those checked fills them in. `path` must have room for PATH_MAX bytes. */
struct module own_module(const void *address, char *path);

/* Functions as assembly may have them: without a size, without a type, and a label within one that has both.
 */
extern const char sizeless[], untyped[], sized_one[], label_within[];

#endif
