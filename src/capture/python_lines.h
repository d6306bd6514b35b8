/*
 * From an instruction's offset to a line, by the line tables of code objects. Pure functions on bytes:
 * whatever these hold, nothing beyond them is read.
 */
#ifndef CAPTURE_PYTHON_LINES_H
#define CAPTURE_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum python_line_format {
    PYTHON_LNOTAB,    /* to 3.9: co_lnotab, Objects/lnotab_notes.txt */
    PYTHON_LINETABLE, /* 3.10: co_linetable, PEP 626 */
    PYTHON_LOCATIONS, /* from 3.11: co_linetable, Objects/locations.md */
};

/* The line of the instruction at byte `offset` (negative: not started yet); 0 when there is none. */
int32_t python_line(enum python_line_format format, const uint8_t *table, size_t bytes, int32_t first_line,
                    int32_t offset);

#endif
