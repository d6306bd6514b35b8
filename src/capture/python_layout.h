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

/* Of 16-bit members alone, so that two layouts can be compared as bytes. */
struct python_layout {
    uint16_t minor;
    uint16_t object_frames; /* to 3.10: frames are PyFrameObject */
    uint16_t via_cframe;    /* 3.11, 3.12: the thread state points to a _PyCFrame that points to the frame */
    uint16_t free_threaded;
    uint16_t tag_mask;    /* low bits of a frame's code pointer that are not part of it */
    uint16_t lasti_scale; /* object frames: bytes in a unit of f_lasti */
    uint16_t line_format; /* enum python_line_format */

    uint16_t thread_frame; /* PyThreadState: frame, cframe or current_frame */
    uint16_t cframe_frame; /* _PyCFrame.current_frame */

    uint16_t frame_previous, frame_code;
    uint16_t frame_instruction; /* object frames: int f_lasti; else a pointer to the instruction */
    uint16_t frame_owner;       /* char, enum _frameowner */
    uint16_t frame_tlbc;        /* int32_t tlbc_index: which thread's copy of the bytecode runs */

    uint16_t code_filename, code_name;
    uint16_t code_qualname; /* 0: before 3.11 there is none */
    uint16_t code_first_line, code_lines;
    uint16_t
        code_version; /* uint32_t co_version, another for every code object; 0: before 3.12 there is none */
    uint16_t code_bytecode;
    uint16_t code_first_traceable; /* int _co_firsttraceable, in code units */
    uint16_t code_tlbc;            /* co_tlbc: { Py_ssize_t size; char *entries[] }; 0: there is none */

    uint16_t object_type;
    uint16_t bytes_size, bytes_data;
    uint16_t text_length, text_hash, text_state, text_state_shift, text_ascii_data, text_compact_data;
    uint16_t type_flags;
};

/* What is known of the layouts in advance. X(minor, thread frame, cframe frame,
 *     frame: previous, code, instruction, owner,
 *     code: filename, name, qualname, first line, lines, version, first traceable, bytecode,
 *     str: ASCII data, other compact data) */
#define PYTHON_LAYOUTS(X)                                                                                    \
    X(8, 24, 0, 24, 32, 104, 0, 104, 112, 0, 40, 120, 0, 0, 0, 48, 72)                                       \
    X(9, 24, 0, 24, 32, 104, 0, 104, 112, 0, 40, 120, 0, 0, 0, 48, 72)                                       \
    X(10, 24, 0, 24, 32, 96, 0, 104, 112, 0, 40, 120, 0, 0, 0, 48, 72)                                       \
    X(11, 56, 8, 48, 32, 56, 69, 112, 120, 128, 72, 136, 0, 168, 184, 48, 72)                                \
    X(12, 56, 0, 8, 0, 56, 70, 112, 120, 128, 68, 136, 92, 176, 192, 40, 56)                                 \
    X(13, 72, 0, 8, 0, 56, 70, 112, 120, 128, 68, 136, 92, 184, 200, 40, 56)                                 \
    X(14, 72, 0, 8, 0, 56, 74, 112, 120, 128, 68, 136, 92, 192, 208, 40, 56)                                 \
    X(15, 72, 0, 8, 0, 56, 74, 112, 120, 128, 68, 136, 92, 192, 208, 40, 56)

/* A row of PYTHON_LAYOUTS as an initialiser. */
#define PYTHON_LAYOUT(version, thread, cframe, previous, code, instruction, owner, filename, name, qualname, \
                      first, lines, co_version, traceable, bytecode, ascii, compact)                         \
    {                                                                                                        \
        .minor = (version), .object_frames = (version) <= 10,                                                \
        .via_cframe = (version) == 11 || (version) == 12, .tag_mask = (version) >= 14 ? 3 : 0,               \
        .lasti_scale = (version) > 10    ? 0                                                                 \
                       : (version) == 10 ? 2                                                                 \
                                         : 1,                                                                \
        .line_format = (version) >= 11   ? PYTHON_LOCATIONS                                                  \
                       : (version) == 10 ? PYTHON_LINETABLE                                                  \
                                         : PYTHON_LNOTAB,                                                    \
        .thread_frame = (thread), .cframe_frame = (cframe), .frame_previous = (previous),                    \
        .frame_code = (code), .frame_instruction = (instruction), .frame_owner = (owner),                    \
        .code_filename = (filename), .code_name = (name), .code_qualname = (qualname),                       \
        .code_first_line = (first), .code_lines = (lines), .code_version = (co_version),                     \
        .code_first_traceable = (traceable), .code_bytecode = (bytecode), .object_type = 8,                  \
        .bytes_size = 16, .bytes_data = 32, .text_length = 16, .text_hash = 24, .text_state = 32,            \
        .text_state_shift = 2, .text_ascii_data = (ascii), .text_compact_data = (compact), .type_flags = 168 \
    }

/* Fills `layout` for CPython 3.`minor`. `runtime` is the address of _PyRuntime, or NULL. False when the
 * version is not one that can be read. */
bool python_layout_get(struct python_layout *layout, int minor, const void *runtime);

#endif
