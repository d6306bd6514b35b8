/*
 * Takes the calling thread's stack inside a hook: native return addresses by the compilers' unwind tables, or
 * by libunwind's unw_backtrace where a frame is unusual, and Python frames read straight from the
 * interpreter's structures.
 *
 * The hot half (capture_take) holds no lock, allocates nothing and takes neither the GIL nor a reference
 * count. It calls nothing but the interpreter's Py_IsFinalizing and PyGILState_GetThisThreadState,
 * Py_AddPendingCall (once, or again when Python had no room or no time for it), and at addresses it meets for
 * the first time dl_iterate_phdr or libunwind. The cold half (capture_python_name, modules_find) runs once
 * for each stack that was never seen before, in the same hook, while the frames are still on the stack and so
 * keep their code objects alive.
 */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/catalog.h"

#define CAPTURE_DEPTH_DEFAULT 64
#define CAPTURE_DEPTH_MAX     1024

enum capture_mode {
    CAPTURE_NONE = 0,
    CAPTURE_NATIVE = 1,
    CAPTURE_PYTHON = 2,
    CAPTURE_MIXED = CAPTURE_NATIVE | CAPTURE_PYTHON,
};

struct python_frame {
    const void *code;     /* PyCodeObject, borrowed */
    uint64_t fingerprint; /* of what tells this code object from a later one at its address */
    int32_t byte_offset;  /* of the instruction; -1: before the first */
};

/* What a caller noted of a stack, for the next time that its thread takes the very same one. */
struct stack_memo {
    const void *table;
    uint32_t generation, id;
};

/* One captured stack, innermost frames first. The arrays belong to the thread and are overwritten by its next
 * capture. In a thread with Python frames the native part ends where the interpreter begins. */
struct raw_stack {
    uint64_t hash; /* of all below */
    uint32_t native_count, python_count;
    uintptr_t *native; /* return addresses, so usually one past the call */
    struct python_frame *python;
    struct stack_memo *memo; /* of the caller, or zeroed; NULL when this stack is not kept */
};

/* Once, before the first capture, from a place that may call the dynamic linker: opens libunwind. Sentences
 * about what cannot be had go to `note`, each at most once, here or later inside capture_take(), with no lock
 * held. `depth` bounds each half. */
void capture_start(enum capture_mode mode, uint32_t depth, void (*note)(const char *sentence));

/* Fills `stack` with the calling thread's frames, from the first outside this library; where it is linked
 * into the program itself, from its caller on. Keeps errno. With nothing to be had, both counts are 0. */
void capture_take(struct raw_stack *stack);

/* UTF-8 names of a frame that capture_take() just returned in this thread. Cut to the buffers' sizes, always
 * NUL-terminated. False when Python has come to its end since, and the frame is gone. */
struct python_name {
    char function[512]; /* the qualified name from 3.11 on, the name before */
    char file[4096];
    int32_t line; /* 0: unknown */
};
bool capture_python_name(const struct python_frame *frame, struct python_name *name);

/* After a dlclose, addresses may mean something else. Where something was really unloaded, forgets what is
 * known about them and changes capture_generation(). Calls the dynamic linker; async-signal-unsafe. */
void capture_modules_changed(void);
uint32_t capture_generation(void);

/* Around a fork: no thread may be in the middle of what takes locks of libc's or libunwind's, which a child
 * would inherit locked. Before it, waits for those that are (a moment, never for good); after it, in the
 * parent and in the child before its first capture. */
void capture_before_fork(void);
void capture_after_fork_in_parent(void);
void capture_after_fork(void);

#endif
