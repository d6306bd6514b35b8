/*
 * Calls a function on a stack of its own. The traced process may end in a thread whose stack has a few KiB,
 * and a demangler wants 70 bytes for each of a name's, of which C++ has thousands.
 */
#ifndef SYMBOLS_OWN_STACK_H
#define SYMBOLS_OWN_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct own_stack {
    void *start; /* NULL: not there yet */
    size_t bytes;
};

/* Runs function(arg) and returns true, or returns false when there is no memory for the stack. Makes the
 * stack on the first call. No malloc. Not twice at a time on one stack. */
bool own_stack_call(struct own_stack *stack, void (*function)(void *), void *arg);
void own_stack_release(struct own_stack *stack);

#endif
