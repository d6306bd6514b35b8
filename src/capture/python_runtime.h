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

struct python_runtime;

/* Up to `max` frames of a thread, mixed into *hash. */
typedef uint32_t python_walker(const struct python_runtime *python, const void *thread_state,
                               struct python_frame *frames, uint32_t max, uint64_t *hash);

struct python_runtime {
    _Atomic(enum python_state) state;
    int minor; /* 3.minor; -1: not to be told */
    struct python_layout layout;
    python_walker *walk;
    struct elf_extent code; /* for python_walk() */
    const void *dynamic;    /* of its module: tells whether that is still loaded */
    struct elf_image image; /* of its module */

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

/* The interpreter, once it is found, initialised and proved readable. */
extern _Atomic(struct python_runtime *) python_ready;

/* An interpreter that has been initialised, or NULL. Cheap when nothing has changed. */
struct python_runtime *python_find(void);
void python_find_again(void);

/* The walker for a layout: one with its offsets compiled in where it is a known one. */
python_walker *python_walker_for(const struct python_layout *layout);
/* One frame; false when it is not that of a running Python function. */
bool python_read_frame(const struct python_runtime *python, const void *frame, struct python_frame *read);

/* Puts the layout to the test on the calling thread's frames, reading nothing that might not be there: every
 * object must be of the type it is taken for and every line the one PyCode_Addr2Line tells. Makes it
 * python_ready, or unreadable, or leaves it be while there are no frames. Returns the state. */
enum python_state python_check(struct python_runtime *python, const void *thread_state);

#endif
