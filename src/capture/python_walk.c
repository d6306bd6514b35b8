/*
 * The walk over the calling thread's frames, and what tells code objects apart (python_runtime.h). This runs
 * in every capture: a loop is compiled for each known layout, with the offsets as constants, and one for any
 * other.
 */
#include "capture/python_runtime.h"

#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { TEXT_KIND = 7, TEXT_IS_COMPACT = 8, TEXT_IS_ASCII = 16, WORD = sizeof(uint64_t) };

/* Odd and otherwise arbitrary multipliers. */
#define MIX_1 UINT64_C(0x9e3779b97f4a7c15)
#define MIX_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define MIX_3 UINT64_C(0x165667b19e3779f9)
#define MIX_4 UINT64_C(0xd6e8feb86659fd93)

ALWAYS_INLINE uint64_t load_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The last 8 bytes of a str, or the first 8 of its memory where it is shorter. */
ALWAYS_INLINE uint64_t text_tail(const struct python_layout *layout, const char *text)
{
    uint32_t state = PYTHON_FIELD(uint32_t, text, layout->text_state) >> layout->text_state_shift;
    uint64_t bytes = PYTHON_FIELD(uint64_t, text, layout->text_length);
    const char *data = text + layout->text_ascii_data;
    if (__builtin_expect((state & (TEXT_IS_ASCII | TEXT_IS_COMPACT)) != (TEXT_IS_ASCII | TEXT_IS_COMPACT),
                         0)) {
        if ((state & TEXT_IS_COMPACT) == 0) /* of a class derived from str: kept elsewhere */
            return 0;
        bytes *= state & TEXT_KIND;
        data = text + layout->text_compact_data;
    }
    return load_word(bytes >= WORD ? data + bytes - WORD : data);
}

/*
 * Tells a code object from a later one at its address. From 3.12 each has a number of its own. Before, all
 * its parts can be where another's were too, as happens when functions are made and dropped in a loop, so
 * their contents count: the hash of the name, which is interned and therefore has one, the end of the file's
 * name, the size and beginning of the line table.
 */
ALWAYS_INLINE uint64_t fingerprint(const struct python_layout *layout, const void *code)
{
    uint64_t mixed = (uintptr_t)code * MIX_1;
    if (layout->code_version != 0)
        return mixed + PYTHON_FIELD(uint32_t, code, layout->code_version) * MIX_2;
    const char *name = PYTHON_FIELD(const char *, code, layout->code_name);
    const char *file = PYTHON_FIELD(const char *, code, layout->code_filename);
    const char *lines = PYTHON_FIELD(const char *, code, layout->code_lines);
    mixed += PYTHON_FIELD(uint64_t, name, layout->text_hash) * MIX_2;
    mixed += (text_tail(layout, file) ^ PYTHON_FIELD(uint64_t, lines, layout->bytes_size) << 48) * MIX_3;
    mixed += (load_word(lines + layout->bytes_data) ^ PYTHON_FIELD(uint32_t, code, layout->code_first_line)) *
             MIX_4;
    return mixed ^ mixed >> 32;
}

/* Where the bytecode begins that this frame runs: free-threaded builds give each thread its copy. */
ALWAYS_INLINE uintptr_t bytecode(const struct python_layout *layout, const void *frame, const void *code)
{
    if (layout->code_tlbc != 0) {
        const void *copies = PYTHON_FIELD(const void *, code, layout->code_tlbc);
        int32_t index = PYTHON_FIELD(int32_t, frame, layout->frame_tlbc);
        if (copies != NULL && index >= 0 && index < PYTHON_FIELD(int64_t, copies, 0))
            return PYTHON_FIELD(uintptr_t, copies, sizeof(int64_t) + sizeof(void *) * (size_t)index);
    }
    return (uintptr_t)code + layout->code_bytecode;
}

/* False for the interpreter's own frames, and for one that is being set up. */
ALWAYS_INLINE bool read_frame(const struct python_layout *layout, const struct python_runtime *python,
                              const void *frame, struct python_frame *read)
{
    const void *code =
        (const void *)(PYTHON_FIELD(uintptr_t, frame, layout->frame_code) & ~(uintptr_t)layout->tag_mask);
    if (layout->object_frames) {
        int32_t last = PYTHON_FIELD(int32_t, frame, layout->frame_instruction);
        read->byte_offset = last < 0 ? -1 : last * layout->lasti_scale;
    } else {
        uint8_t owner = PYTHON_FIELD(uint8_t, frame, layout->frame_owner);
        if (owner >= PYTHON_OWNERS || code == NULL ||
            PYTHON_FIELD(const char *, code, layout->object_type) != python->code_type)
            return false;
        int64_t offset = (int64_t)(PYTHON_FIELD(uintptr_t, frame, layout->frame_instruction) -
                                   bytecode(layout, frame, code));
        if (owner != PYTHON_OWNER_GENERATOR &&
            offset < 2 * (int64_t)PYTHON_FIELD(int32_t, code, layout->code_first_traceable))
            return false;
        read->byte_offset = offset < 0 ? -1 : (int32_t)offset;
    }
    read->code = code;
    read->fingerprint = fingerprint(layout, code);
    return true;
}

ALWAYS_INLINE uint32_t walk(const struct python_layout *layout, const struct python_runtime *python,
                            const void *thread_state, struct python_frame *frames, uint32_t max,
                            uint64_t *hash)
{
    const void *frame = PYTHON_FIELD(const void *, thread_state, layout->thread_frame);
    if (layout->via_cframe && frame != NULL)
        frame = PYTHON_FIELD(const void *, frame, layout->cframe_frame);
    uint64_t mixed = *hash;
    uint32_t count = 0;
    for (; frame != NULL && count < max; frame = PYTHON_FIELD(const void *, frame, layout->frame_previous)) {
        struct python_frame *read = &frames[count];
        if (!read_frame(layout, python, frame, read))
            continue;
        mixed = (mixed ^ read->fingerprint ^ (uint64_t)(uint32_t)read->byte_offset << 32) * MIX_1;
        count++;
    }
    *hash = mixed ^ mixed >> 32;
    return count;
}

#define AS_WALKER(minor, ...)                                                                                \
    static const struct python_layout layout_##minor = PYTHON_LAYOUT(minor, __VA_ARGS__);                    \
    static uint32_t walk_##minor(const struct python_runtime *python, const void *thread_state,              \
                                 struct python_frame *frames, uint32_t max, uint64_t *hash)                  \
    {                                                                                                        \
        return walk(&layout_##minor, python, thread_state, frames, max, hash);                               \
    }
PYTHON_LAYOUTS(AS_WALKER)

static uint32_t walk_other(const struct python_runtime *python, const void *thread_state,
                           struct python_frame *frames, uint32_t max, uint64_t *hash)
{
    return walk(&python->layout, python, thread_state, frames, max, hash);
}

python_walker *python_walker_for(const struct python_layout *layout)
{
#define AS_CHOICE(minor, ...) {&layout_##minor, walk_##minor},
    static const struct {
        const struct python_layout *layout;
        python_walker *walk;
    } choices[] = {PYTHON_LAYOUTS(AS_CHOICE)};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (memcmp(layout, choices[i].layout, sizeof *layout) == 0)
            return choices[i].walk;
    return walk_other;
}

bool python_read_frame(const struct python_runtime *python, const void *frame, struct python_frame *read)
{
    return read_frame(&python->layout, python, frame, read);
}
