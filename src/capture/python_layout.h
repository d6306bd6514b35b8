/*
 * Where CPython keeps what a stack walk reads: offsets in bytes, for one minor version. Up to 3.12 they are
 * constants, checked against every patch release that could be had; from 3.13 the interpreter publishes its
 * own (_Py_DebugOffsets in Include/internal/pycore_debug_offsets.h), which also tell apart the free-threaded
 * builds.
 */
#ifndef CAPTURE_PYTHON_LAYOUT_H
#define CAPTURE_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/python_lines.h"

#define PYTHON_OLDEST_MINOR 8
#define PYTHON_NEWEST_MINOR 15 /* that was checked; a later one is tried as if it were this */

struct python_layout {
    int minor;
    bool object_frames; /* to 3.10: frames are PyFrameObject */
    bool via_cframe;    /* 3.11, 3.12: the thread state points to a _PyCFrame that points to the frame */
    bool free_threaded;
    uintptr_t tag_mask;   /* low bits of a frame's code pointer that are not part of it */
    uint16_t lasti_scale; /* object frames: bytes in a unit of f_lasti */
    enum python_line_format line_format;

    uint16_t thread_frame; /* PyThreadState: frame, cframe or current_frame */
    uint16_t cframe_frame; /* _PyCFrame.current_frame */

    uint16_t frame_previous, frame_code;
    uint16_t frame_instruction; /* object frames: int f_lasti; else a pointer to the instruction */
    uint16_t frame_owner;       /* char, enum _frameowner */
    uint16_t frame_tlbc;        /* int32_t tlbc_index: which thread's copy of the bytecode runs */

    uint16_t code_filename, code_name;
    uint16_t code_qualname; /* 0: before 3.11 there is none */
    uint16_t code_first_line, code_lines;
    uint16_t code_version; /* uint32_t co_version; 0: before 3.12 there is none */
    uint16_t code_bytecode;
    uint16_t code_first_traceable; /* int _co_firsttraceable, in code units */
    uint16_t code_tlbc;            /* co_tlbc: { Py_ssize_t size; char *entries[] }; 0: there is none */

    uint16_t object_type;
    uint16_t bytes_size, bytes_data;
    uint16_t text_length, text_state, text_state_shift, text_ascii_data, text_compact_data;
    uint16_t type_flags;
};

/* Fills `layout` for CPython 3.`minor`. `runtime` is the address of _PyRuntime, or NULL. False when the
 * version is not one that can be read. */
bool python_layout_get(struct python_layout *layout, int minor, const void *runtime);

#endif
