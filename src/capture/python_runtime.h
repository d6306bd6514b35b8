/*
 * One interpreter found in this process: where it is, how it is laid out, what of it may be called. Filled by
 * python_find.c, put to the test by python_check.c, used by python.c.
 */
#ifndef CAPTURE_PYTHON_RUNTIME_H
#define CAPTURE_PYTHON_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/python.h"
#include "capture/python_layout.h"

/* enum _frameowner: a thread, a generator, a frame object; what is beyond is no Python function. */
enum { PYTHON_OWNER_GENERATOR = 1, PYTHON_OWNERS = 3 };

enum python_state {
    PYTHON_UNCHECKED, /* its layout is not proved yet */
    PYTHON_GOOD,
    PYTHON_UNREADABLE,
};

struct python_runtime {
    _Atomic(enum python_state) state;
    struct python_layout layout;
    struct elf_extent code; /* python_interpreter() */
    const void *dynamic;    /* of its module: tells whether that is still loaded */

    /* Of its API, what needs no GIL, takes no reference and cannot fail. */
    void *(*this_thread_state)(void);    /* PyGILState_GetThisThreadState */
    int (*is_finalizing)(void);          /* Py_IsFinalizing; _Py_IsFinalizing to 3.12 */
    const char *(*version_text)(void);   /* Py_GetVersion */
    int (*code_line)(const void *, int); /* PyCode_Addr2Line */
    const unsigned long *version;        /* Py_Version, from 3.11 */
    const void *runtime;                 /* _PyRuntime */
    const char *code_type, *frame_type;  /* PyCode_Type, PyFrame_Type */
};

/* A member at `offset` of a structure of the interpreter's. */
#define PYTHON_FIELD(type, start, offset) (*(type const *)((const char *)(start) + (offset)))

/* Tells a code object from a later one at its address: no two living ones share all of these. Multipliers are
 * odd and otherwise arbitrary. */
static inline uint64_t python_fingerprint(const struct python_layout *layout, const void *code)
{
    uint64_t mixed = (uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15) +
                     PYTHON_FIELD(uint64_t, code, layout->code_filename) * UINT64_C(0xc2b2ae3d27d4eb4f) +
                     PYTHON_FIELD(uint64_t, code, layout->code_name) * UINT64_C(0x165667b19e3779f9) +
                     PYTHON_FIELD(uint64_t, code, layout->code_lines) * UINT64_C(0xd6e8feb86659fd93) +
                     PYTHON_FIELD(uint32_t, code, layout->code_first_line) * UINT64_C(0xa0761d6478bd642f);
    if (layout->code_version != 0)
        mixed += PYTHON_FIELD(uint32_t, code, layout->code_version) * UINT64_C(0xe7037ed1a0b428db);
    return mixed ^ mixed >> 32;
}

/* Where the bytecode begins that this frame runs: free-threaded builds give each thread its copy. */
static inline uintptr_t python_bytecode(const struct python_layout *layout, const void *frame,
                                        const void *code)
{
    if (layout->code_tlbc != 0) {
        const void *copies = PYTHON_FIELD(const void *, code, layout->code_tlbc);
        int32_t index = PYTHON_FIELD(int32_t, frame, layout->frame_tlbc);
        if (copies != NULL && index >= 0 && index < PYTHON_FIELD(int64_t, copies, 0))
            return PYTHON_FIELD(uintptr_t, copies, sizeof(int64_t) + sizeof(void *) * (size_t)index);
    }
    return (uintptr_t)code + layout->code_bytecode;
}

/* False for a frame that is not a running Python function: the interpreter's own, or one that is being set
 * up. */
static inline bool python_read_frame(const struct python_runtime *python, const void *frame,
                                     struct python_frame *read)
{
    const struct python_layout *layout = &python->layout;
    const void *code = (const void *)(PYTHON_FIELD(uintptr_t, frame, layout->frame_code) & ~layout->tag_mask);
    if (layout->object_frames) {
        int32_t last = PYTHON_FIELD(int32_t, frame, layout->frame_instruction);
        read->byte_offset = last < 0 ? -1 : last * layout->lasti_scale;
    } else {
        uint8_t owner = PYTHON_FIELD(uint8_t, frame, layout->frame_owner);
        if (owner >= PYTHON_OWNERS || code == NULL ||
            PYTHON_FIELD(const char *, code, layout->object_type) != python->code_type)
            return false;
        int64_t offset = (int64_t)(PYTHON_FIELD(uintptr_t, frame, layout->frame_instruction) -
                                   python_bytecode(layout, frame, code));
        if (owner != PYTHON_OWNER_GENERATOR &&
            offset < 2 * (int64_t)PYTHON_FIELD(int32_t, code, layout->code_first_traceable))
            return false;
        read->byte_offset = offset < 0 ? -1 : (int32_t)offset;
    }
    read->code = code;
    read->fingerprint = python_fingerprint(layout, code);
    return true;
}

/* An interpreter that has been initialised, or NULL. Cheap when there is one, and when nothing has changed.
 */
struct python_runtime *python_find(void);
/* The one that python_find() last returned, even if it cannot be read. */
struct python_runtime *python_found(void);
void python_find_again(void);

/* Puts the layout to the test on the calling thread's frames, reading nothing that might not be there: every
 * object must be of the type it is taken for and every line the one PyCode_Addr2Line tells. Returns the
 * state, which stays PYTHON_UNCHECKED while there are no frames. */
enum python_state python_check(struct python_runtime *python, const void *thread_state);

#endif
