/* Walking and naming Python frames (python.h). */
#include "capture/python.h"

#include <stddef.h>
#include <stdio.h>

#include "capture/python_end.h"
#include "capture/python_gate.h"
#include "capture/python_names.h"
#include "capture/python_runtime.h"

static void (*say)(const char *sentence);
static atomic_flag said = ATOMIC_FLAG_INIT;

void python_start(void (*note)(const char *sentence))
{
    say = note;
    python_find();
}

static void say_unreadable(int minor)
{
    char sentence[160];
    if (say == NULL || atomic_flag_test_and_set(&said))
        return;
    if (minor >= 0 && (minor < PYTHON_OLDEST_MINOR || minor > PYTHON_NEWEST_MINOR))
        snprintf(sentence, sizeof sentence,
                 "Python 3.%d is not supported (3.%d to 3.%d are): stacks have no Python frames", minor,
                 PYTHON_OLDEST_MINOR, PYTHON_NEWEST_MINOR);
    else
        snprintf(sentence, sizeof sentence,
                 "this build of Python 3.%d keeps its frames in a way that is not known: stacks have no "
                 "Python frames",
                 minor);
    say(sentence);
}

/* The interpreter when it is, or now turns out to be, readable. */
static struct python_runtime *make_ready(struct thread_buffer *mine)
{
    struct python_runtime *python = python_find();
    if (python == NULL)
        return NULL;
    enum python_state state = atomic_load_explicit(&python->state, memory_order_acquire);
    if (state == PYTHON_UNCHECKED && python_gate_enter(mine)) {
        const void *thread_state = python->is_finalizing() ? NULL : python->this_thread_state();
        if (thread_state != NULL)
            state = python_check(python, thread_state);
        python_gate_leave(mine);
    }
    if (state == PYTHON_UNREADABLE)
        say_unreadable(python->minor);
    return state == PYTHON_GOOD ? python : NULL;
}

uint32_t python_walk(struct thread_buffer *mine, uint64_t *hash, struct elf_extent *interpreter)
{
    const struct python_runtime *python = atomic_load_explicit(&python_ready, memory_order_acquire);
    if (__builtin_expect(python == NULL, 0))
        python = make_ready(mine);
    if (python == NULL || !python_gate_enter(mine))
        return 0;
    const void *thread_state = python->is_finalizing() ? NULL : python->this_thread_state();
    uint32_t count = 0;
    if (thread_state != NULL)
        count = python->walk(python, thread_state, mine->python, mine->python_max, hash);
    if (count != 0)
        python_end_expect(python);
    python_gate_leave(mine);
    if (count != 0)
        *interpreter = python->code;
    return count;
}

void python_modules_changed(void)
{
    python_find_again();
}

static void read_name(const struct python_layout *layout, const struct python_frame *frame,
                      struct python_name *name)
{
    size_t function = layout->code_qualname != 0 ? layout->code_qualname : layout->code_name;
    python_text(layout, PYTHON_FIELD(const void *, frame->code, function), name->function,
                sizeof name->function);
    python_text(layout, PYTHON_FIELD(const void *, frame->code, layout->code_filename), name->file,
                sizeof name->file);
    const void *lines = PYTHON_FIELD(const void *, frame->code, layout->code_lines);
    if (lines != NULL)
        name->line = python_line(
            (enum python_line_format)layout->line_format, &PYTHON_FIELD(uint8_t, lines, layout->bytes_data),
            PYTHON_FIELD(size_t, lines, layout->bytes_size),
            PYTHON_FIELD(int32_t, frame->code, layout->code_first_line), frame->byte_offset);
}

bool capture_python_name(const struct python_frame *frame, struct python_name *name)
{
    const struct python_runtime *python = atomic_load_explicit(&python_ready, memory_order_acquire);
    struct thread_buffer *mine = thread_buffer_get();
    name->function[0] = name->file[0] = '\0';
    name->line = 0;
    if (python == NULL || mine == NULL || !python_gate_enter(mine))
        return false;
    bool there = !python->is_finalizing();
    if (there)
        read_name(&python->layout, frame, name);
    python_gate_leave(mine);
    return there;
}
