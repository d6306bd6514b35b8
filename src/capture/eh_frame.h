/*
 * How to get from a function's frame to its caller's, as the compiler wrote it down in the .eh_frame of the
 * file (System V ABI AMD64, DWARF 5 section 6.4). Only what ordinary code does is understood; of anything
 * else it is said that it is something else. x86-64.
 */
#ifndef CAPTURE_EH_FRAME_H
#define CAPTURE_EH_FRAME_H

#include <stdint.h>

enum frame_rule_kind {
    RULE_NONE,
    RULE_UNMAPPED, /* in no file: code made at run time */
    RULE_OTHER,    /* not known, or not ordinary: signal frames, code without tables, hand-written assembly */
    RULE_OUTERMOST, /* has no caller */
    RULE_SP,        /* CFA = sp + cfa_offset */
    RULE_BP,        /* CFA = bp + cfa_offset */
    RULE_REALIGNED, /* CFA = the word at bp + cfa_offset; the caller's bp is at bp + bp_offset */
};

/* The return address is in the word below the CFA (canonical frame address: the caller's stack pointer after
 * the return), and the caller's bp, unless otherwise said, at CFA + bp_offset or, where that is 0, still in
 * bp. Offsets are in bytes and multiples of 8 of at most 2^26. */
struct frame_rule {
    enum frame_rule_kind kind;
    int32_t cfa_offset, bp_offset;
};

/* The rule that holds at the call before `return_address`. Takes the dynamic linker's lock for a moment. */
struct frame_rule eh_frame_rule(uintptr_t return_address);

/* The same for code at `address`, by the .eh_frame_hdr at `header`, which is in the segment [start, end) with
 * the .eh_frame that it is of. Reads nothing else, whatever these hold. */
struct frame_rule eh_frame_look_up(const uint8_t *header, const uint8_t *start, const uint8_t *end,
                                   uintptr_t address);

#endif
