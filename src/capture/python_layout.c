/*
 * The layouts of CPython's structures, one row a version (python_layout.h). x86-64 and AArch64 lay them out
 * alike.
 */
#include "capture/python_layout.h"

#include <stddef.h>
#include <string.h>

#define AS_ELEMENT(...) PYTHON_LAYOUT(__VA_ARGS__),
static const struct python_layout known_layouts[] = {PYTHON_LAYOUTS(AS_ELEMENT)};

/* From 3.13: where in _Py_DebugOffsets, which begins with 8 bytes of cookie, the version and whether it is
 * free-threaded, an offset is found. X(member of python_layout, in 3.13, in 3.14, in 3.15) */
#define PUBLISHED_OFFSETS(X)                                                                                 \
    X(thread_frame, 184, 208, 208)                                                                           \
    X(frame_previous, 232, 256, 320)                                                                         \
    X(frame_code, 240, 264, 328)                                                                             \
    X(frame_instruction, 248, 272, 336)                                                                      \
    X(frame_owner, 264, 288, 352)                                                                            \
    X(frame_tlbc, 0, 304, 368)                                                                               \
    X(code_filename, 280, 320, 384)                                                                          \
    X(code_name, 288, 328, 392)                                                                              \
    X(code_qualname, 296, 336, 400)                                                                          \
    X(code_lines, 304, 344, 408)                                                                             \
    X(code_first_line, 312, 352, 416)                                                                        \
    X(code_bytecode, 344, 384, 448)                                                                          \
    X(code_tlbc, 0, 392, 456)                                                                                \
    X(object_type, 360, 408, 472)                                                                            \
    X(type_flags, 392, 440, 504)                                                                             \
    X(bytes_size, 520, 600, 696)                                                                             \
    X(bytes_data, 528, 608, 704)                                                                             \
    X(text_state, 544, 624, 720)                                                                             \
    X(text_length, 552, 632, 728)                                                                            \
    X(text_ascii_data, 560, 640, 736)

#define AS_ROW(name, in_13, in_14, in_15) {offsetof(struct python_layout, name), {in_13, in_14, in_15}},

static const struct {
    uint16_t member, position[3];
} published_offsets[] = {PUBLISHED_OFFSETS(AS_ROW)};

enum {
    FIRST_PUBLISHED_MINOR = 13,
    OFFSET_LIMIT = 4096,        /* no structure here is that large: beyond it, it is no offset */
    FIRST_LINE_TO_VERSION = 24, /* co_version follows co_firstlineno at this distance in 3.13 to 3.15 */
    TRACEABLE_TO_BYTECODE = 16, /* _co_firsttraceable lies this far before what comes first behind it */
};

static uint64_t published(const uint8_t *runtime, size_t position)
{
    uint64_t value;
    memcpy(&value, runtime + position, sizeof value);
    return value;
}

static bool read_published(struct python_layout *layout, int minor, const uint8_t *runtime)
{
    if (runtime == NULL || memcmp(runtime, "xdebugpy", 8) != 0 ||
        (published(runtime, 8) >> 16 & 0xff) != (unsigned)minor)
        return false;
    int column = (minor > PYTHON_NEWEST_MINOR ? PYTHON_NEWEST_MINOR : minor) - FIRST_PUBLISHED_MINOR;
    *layout = (struct python_layout){
        .minor = (uint16_t)minor,
        .free_threaded = published(runtime, 16) != 0,
        .line_format = PYTHON_LOCATIONS,
    };
    for (size_t i = 0; i < sizeof published_offsets / sizeof *published_offsets; i++) {
        size_t position = published_offsets[i].position[column];
        uint64_t offset = position == 0 ? 0 : published(runtime, position);
        if (offset >= OFFSET_LIMIT)
            return false;
        *(uint16_t *)((char *)layout + published_offsets[i].member) = (uint16_t)offset;
    }
    if (!layout->free_threaded)
        layout->frame_tlbc = layout->code_tlbc = 0;
    layout->tag_mask = minor >= 14 ? 3 : 0;
    layout->text_state_shift = layout->free_threaded && minor >= 14 ? 8 : 2;
    layout->text_hash = layout->text_length + sizeof(int64_t);
    layout->text_compact_data = layout->text_ascii_data + 2 * sizeof(void *);
    layout->code_version = layout->code_first_line + FIRST_LINE_TO_VERSION;
    layout->code_first_traceable =
        (layout->code_tlbc != 0 ? layout->code_tlbc : layout->code_bytecode) - TRACEABLE_TO_BYTECODE;
    return true;
}

bool python_layout_get(struct python_layout *layout, int minor, const void *runtime)
{
    if (minor >= FIRST_PUBLISHED_MINOR)
        return read_published(layout, minor, runtime);
    if (minor < PYTHON_OLDEST_MINOR)
        return false;
    *layout = known_layouts[minor - PYTHON_OLDEST_MINOR];
    return true;
}
