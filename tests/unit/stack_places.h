/* Functions to take native stacks in, by names that dladdr() knows. */
#ifndef UNIT_STACK_PLACES_H
#define UNIT_STACK_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/capture.h"

/* Visible, so that dladdr() knows them; the work after a call keeps it from being a jump. */
#define VISIBLE __attribute__((noinline, visibility("default")))
#define KEEP    __asm__ volatile("" : : : "memory")

/* Whether a call that returns there was made in the function of that name. */
bool is_in(uintptr_t return_address, const char *function);

/* Takes the stack. All others call it. */
VISIBLE void taker(struct raw_stack *stack);
VISIBLE void from_one_place(struct raw_stack *stack);
VISIBLE void from_another(struct raw_stack *stack);
/* Calls itself until it is on the stack so many times. */
VISIBLE void recursive(int levels, struct raw_stack *stack);

/* Starts capture, at most so many frames deep; the set-up of a group of tests. Not 0 where it does not start
 * well. */
int start_capture(uint32_t depth);

/* Whether it uses libunwind: only that passes code without tables by its frame pointers. */
bool started_with_libunwind(void);

#endif
