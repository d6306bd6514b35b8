/* See stack_places.h. */
#include "stack_places.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <string.h>

#include "capture/native.h"

bool is_in(uintptr_t return_address, const char *function)
{
    Dl_info info;
    return dladdr((void *)(return_address - 1), &info) != 0 && info.dli_sname != NULL &&
           strcmp(info.dli_sname, function) == 0;
}

VISIBLE void taker(struct raw_stack *stack)
{
    capture_take(stack); /* NOLINT(bugprone-signal-handler): that is what is tried */
    KEEP;
}

VISIBLE void from_one_place(struct raw_stack *stack)
{
    taker(stack);
    KEEP;
}

VISIBLE void from_another(struct raw_stack *stack)
{
    taker(stack);
    KEEP;
}

VISIBLE void recursive(int levels, struct raw_stack *stack)
{
    if (levels > 1)
        recursive(levels - 1, stack);
    else
        taker(stack);
    KEEP;
}

static char notes[1000];

static void add_note(const char *sentence)
{
    strncat(notes, sentence, sizeof notes - strlen(notes) - 1);
}

int start_capture(uint32_t depth)
{
    struct raw_stack stack = {.native_count = 1};
    capture_take(&stack);
    if (stack.native_count != 0) /* nothing before the start */
        return -1;
    capture_start(CAPTURE_MIXED, depth, add_note);
    return notes[0] != '\0';
}

bool started_with_libunwind(void)
{
    return atomic_load(&native_unwinder) != backtrace;
}
