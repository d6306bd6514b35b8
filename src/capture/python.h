/*
 * The Python half of a stack: the calling thread's frames, read from the interpreter's own structures without
 * the GIL. A thread inside a C call cannot have its frames changed by others and they keep their code objects
 * alive, so nothing is locked, written or counted; all but Python's end, for which there are python_end.h and
 * python_gate.h. The interpreter may come at any time, in any library, or never.
 */
#ifndef CAPTURE_PYTHON_H
#define CAPTURE_PYTHON_H

#include <stdint.h>

#include "capture/capture.h"
#include "capture/elf_image.h"
#include "capture/thread_buffers.h"

/* `note` gets one sentence when there is a Python whose frames cannot be read; it is called inside
 * python_walk(). */
void python_start(void (*note)(const char *sentence));

/* Fills the calling thread's buffer, innermost frame first, as far as it goes; mixes the frames into *hash.
 * With at least one, `interpreter` gets where the interpreter's machine code lies, as far as it can be told
 * from the program that embeds it, or 0 bytes: native frames from there on are the interpreter's own
 * business. */
uint32_t python_walk(struct thread_buffer *mine, uint64_t *hash, struct elf_extent *interpreter);

/* After modules were unloaded: the interpreter may be one of them. */
void python_modules_changed(void);

#endif
