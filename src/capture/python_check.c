/* The proof of a layout on living frames (python_runtime.h). Runs once; slow and careful. */
#include "capture/python_runtime.h"

#include "capture/readable.h"

enum {
    FRAMES_CHECKED = 64,
    FRAME_BYTES = 128, /* at least what is read of a frame, of a code object, … */
    CODE_BYTES = 256,
    THREAD_BYTES = 256,
    TYPE_BYTES = 192,
    TYPE_IS_BYTES = 1u << 27, /* Py_TPFLAGS_BYTES_SUBCLASS */
    TYPE_IS_TEXT = 1u << 28,  /* Py_TPFLAGS_UNICODE_SUBCLASS */
};

/* Objects are aligned to words at least. */
static bool readable(const void *start, size_t bytes)
{
    return start != NULL && (uintptr_t)start % sizeof(void *) == 0 && is_readable(start, bytes);
}

static const void *pointer_at(const void *start, size_t offset)
{
    return PYTHON_FIELD(const void *, start, offset);
}

static bool has_type(const struct python_layout *layout, const void *object, unsigned long flag)
{
    if (!readable(object, 64))
        return false;
    const void *type = pointer_at(object, layout->object_type);
    return readable(type, TYPE_BYTES) && (PYTHON_FIELD(unsigned long, type, layout->type_flags) & flag);
}

static bool code_agrees(const struct python_runtime *python, const void *code, int32_t offset)
{
    const struct python_layout *layout = &python->layout;
    if (!has_type(layout, pointer_at(code, layout->code_filename), TYPE_IS_TEXT) ||
        !has_type(layout, pointer_at(code, layout->code_name), TYPE_IS_TEXT) ||
        (layout->code_qualname && !has_type(layout, pointer_at(code, layout->code_qualname), TYPE_IS_TEXT)) ||
        !has_type(layout, pointer_at(code, layout->code_lines), TYPE_IS_BYTES))
        return false;
    const void *lines = pointer_at(code, layout->code_lines);
    size_t bytes = PYTHON_FIELD(size_t, lines, layout->bytes_size);
    if (bytes > INT32_MAX || !readable(lines, bytes + layout->bytes_data))
        return false;
    if (python->code_line == NULL)
        return true;
    int32_t line = python_line((enum python_line_format)layout->line_format,
                               &PYTHON_FIELD(uint8_t, lines, layout->bytes_data), bytes,
                               PYTHON_FIELD(int32_t, code, layout->code_first_line), offset);
    int told = python->code_line(code, offset);
    return line == (told < 0 ? 0 : told);
}

static const void *first_frame(const struct python_layout *layout, const void *thread_state)
{
    if (!readable(thread_state, THREAD_BYTES))
        return NULL;
    const void *frame = pointer_at(thread_state, layout->thread_frame);
    if (frame != NULL && layout->via_cframe)
        frame = readable(frame, 64) ? pointer_at(frame, layout->cframe_frame) : NULL;
    return frame;
}

enum verdict { AGREES, DIFFERS, PASSED_OVER };

static enum verdict check_frame(const struct python_runtime *python, const void *frame)
{
    const struct python_layout *layout = &python->layout;
    struct python_frame read;
    if (!readable(frame, FRAME_BYTES))
        return DIFFERS;
    if (layout->object_frames && pointer_at(frame, layout->object_type) != (const void *)python->frame_type)
        return DIFFERS;
    const void *code =
        (const void *)(PYTHON_FIELD(uintptr_t, frame, layout->frame_code) & ~(uintptr_t)layout->tag_mask);
    if (!layout->object_frames && PYTHON_FIELD(uint8_t, frame, layout->frame_owner) >= PYTHON_OWNERS)
        return PASSED_OVER;
    if (code == NULL && !layout->object_frames)
        return PASSED_OVER;
    if (!readable(code, CODE_BYTES))
        return DIFFERS;
    if (pointer_at(code, layout->object_type) != (const void *)python->code_type)
        return layout->object_frames ? DIFFERS : PASSED_OVER;
    if (!python_read_frame(python, frame, &read))
        return PASSED_OVER;
    return code_agrees(python, code, read.byte_offset) ? AGREES : DIFFERS;
}

enum python_state python_check(struct python_runtime *python, const void *thread_state)
{
    const struct python_layout *layout = &python->layout;
    const void *frame = first_frame(layout, thread_state);
    enum python_state state = PYTHON_UNCHECKED;
    for (int i = 0; i < FRAMES_CHECKED && frame != NULL && state != PYTHON_UNREADABLE; i++) {
        switch (check_frame(python, frame)) {
        case AGREES:
            state = PYTHON_GOOD;
            break;
        case DIFFERS:
            state = PYTHON_UNREADABLE;
            break;
        case PASSED_OVER:
            break;
        }
        if (state != PYTHON_UNREADABLE)
            frame = pointer_at(frame, layout->frame_previous);
    }
    if (state != PYTHON_UNCHECKED)
        atomic_store_explicit(&python->state, state, memory_order_release);
    if (state == PYTHON_GOOD)
        atomic_store_explicit(&python_ready, python, memory_order_release);
    return state;
}
