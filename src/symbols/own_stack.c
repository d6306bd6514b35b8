/* Switching stacks with the C library's contexts; see own_stack.h. */
#include "symbols/own_stack.h"

#include <stdint.h>
#include <ucontext.h>

#include "base/arena.h"

/* Address space; only what is used becomes memory. */
#define STACK_BYTES ((size_t)8 << 20)

struct call {
    void (*function)(void *);
    void *arg;
};

/* makecontext() hands on int arguments only. */
static void enter(unsigned high, unsigned low)
{
    const struct call *call = (const struct call *)((uintptr_t)high << 32 | low);
    call->function(call->arg);
}

#if defined(__SANITIZE_ADDRESS__)
#define CAN_SWITCH 0
#elif defined(__has_feature)
#define CAN_SWITCH (!__has_feature(address_sanitizer))
#else
#define CAN_SWITCH 1
#endif

bool own_stack_call(struct own_stack *stack, void (*function)(void *), void *arg)
{
    ucontext_t here, there;
    struct call call = {function, arg};
    uint64_t address = (uintptr_t)&call;
    if (!CAN_SWITCH) { /* AddressSanitizer warns of every switch, on the program's stderr */
        function(arg);
        return true;
    }
    if (!stack->start) {
        stack->start = pages_alloc(STACK_BYTES);
        stack->bytes = STACK_BYTES;
    }
    if (!stack->start || getcontext(&there) != 0)
        return false;
    there.uc_stack.ss_sp = stack->start;
    there.uc_stack.ss_size = stack->bytes;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))enter, 2, (unsigned)(address >> 32), (unsigned)address);
    return swapcontext(&here, &there) == 0;
}

void own_stack_release(struct own_stack *stack)
{
    pages_free(stack->start, stack->bytes);
    stack->start = NULL;
}
