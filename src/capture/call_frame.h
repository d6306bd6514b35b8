/*
 * The instructions of call frame information, which build, for each place in a function, how to find its
 * caller's frame (DWARF 5 section 6.4, System V ABI AMD64, Linux Standard Base 5.0 section 10.6). Used by
 * eh_frame.c alone.
 */
#ifndef CAPTURE_CALL_FRAME_H
#define CAPTURE_CALL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/eh_frame.h"

/* DWARF's numbers of registers on x86-64. */
enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_RA = 16 };

/* Pointer encodings: a format, and what it is relative to. */
enum {
    ENCODE_ABSOLUTE = 0x00,
    ENCODE_UDATA2 = 0x02,
    ENCODE_UDATA4 = 0x03,
    ENCODE_UDATA8 = 0x04,
    ENCODE_SDATA2 = 0x0a,
    ENCODE_SDATA4 = 0x0b,
    ENCODE_SDATA8 = 0x0c,
    ENCODE_FORMAT = 0x0f,
    ENCODE_PC_RELATIVE = 0x10,
    ENCODE_DATA_RELATIVE = 0x30,
    ENCODE_RELATION = 0xf0,
    ENCODE_OMIT = 0xff,
};

/* Bytes to be read; `bad` once more were asked for than there are, and then all is 0. */
struct reader {
    const uint8_t *at, *end;
    bool bad;
};

uint64_t read_bytes(struct reader *in, size_t bytes);
void read_over(struct reader *in, uint64_t bytes);
uint64_t read_uleb(struct reader *in);
int64_t read_sleb(struct reader *in);
uintptr_t read_pointer(struct reader *in, uint8_t encoding);

/* What a CIE says for all its FDEs. */
struct common {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding;
    bool has_augmentation, is_signal;
    struct reader instructions;
};

/* The rule that the instructions of a function at `start` give for the code at `address`. */
struct frame_rule call_frame_rule(const struct common *common, struct reader instructions, uintptr_t start,
                                  uintptr_t address);

#endif
