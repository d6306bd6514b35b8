/*
 * The fast way through ordinary native frames: rules for return addresses are looked up once a process, and
 * what the thread's last walk found is kept, so that the part of the stack that is still the same is only
 * compared. Gives up at anything unusual, for which there is native.h. x86-64; elsewhere it always gives up.
 */
#ifndef CAPTURE_UNWIND_H
#define CAPTURE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/elf_image.h"

/* A frame as its callee returns to it. */
struct unwind_frame {
    uintptr_t pc, sp, bp;
    uintptr_t bp_at; /* where bp was read; 0 when the callee had left it alone */
};

/* One walk, innermost frame first, from index `first` on: the members of unwind_frame, each in an array of
 * its own. */
struct unwind_trail {
    uintptr_t *pc, *sp, *bp, *bp_at;
    uint32_t first, count;
    bool complete; /* it ended by itself, not for want of room */
};

/* A thread's last walk, and room for the next. */
struct unwind_memory {
    struct unwind_trail last, next;
    uint32_t max;        /* frames in a walk */
    bool unchanged;      /* the last walk found what the one before it had found, to the last frame */
    uint32_t generation; /* of the rules that the last walk went by */
    struct elf_extent stop;
};

/* Bytes that unwind_memory_init() wants behind `memory`, aligned to a word. */
size_t unwind_memory_bytes(uint32_t max);
void unwind_memory_init(struct unwind_memory *memory, uint32_t max, void *room);

/* Walks from `start` outwards, over at most memory->max frames, up to and with the first return address that
 * lies in `stop`. False when it had to give up; else memory->last is the walk. */
bool unwind_walk(struct unwind_memory *memory, struct unwind_frame start, struct elf_extent stop);

/* For another thread's stack, which may lie where the last one lay. */
void unwind_forget(struct unwind_memory *memory);

/* An unwinder can only guess how to get past code made at run time, of which no table tells. Returns how many
 * of these addresses can be trusted: all, or those up to such code and what after it still looks like calls.
 */
uint32_t unwind_trusted(const uintptr_t *addresses, uint32_t count);

/* After modules were unloaded: forget all rules. */
void unwind_modules_changed(void);

#endif
