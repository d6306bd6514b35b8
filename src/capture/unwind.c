/* Rules, and walks by them (unwind.h). Nothing here takes a lock but the look-up of a rule for a new address.
 */
#include "capture/unwind.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "capture/call_site.h"
#include "capture/eh_frame.h"
#include "capture/fork_gate.h"
#include "capture/readable.h"

/*
 * The rules found so far, by return address, in words that are written without a lock: an entry is good when
 * its key, which is the address combined with the rule, fits the rule that is there. A rule is packed as kind
 * : 3, generation : 13, CFA offset / 8 : 24, bp offset / 8 : 24.
 */
#define RULE_SLOTS      (1u << 15)
#define RULE_PROBES     4
#define GENERATION_MASK 0x1fffu

struct slot {
    _Atomic uint64_t key, rule;
};

static struct slot slots[RULE_SLOTS];
static _Atomic uint32_t current_generation = 1;

static uint64_t pack(struct frame_rule rule, uint32_t generation)
{
    return (uint64_t)rule.kind | (uint64_t)(generation & GENERATION_MASK) << 3 |
           ((uint64_t)(rule.cfa_offset / 8) & 0xffffff) << 16 | (uint64_t)(rule.bp_offset / 8) << 40;
}

static inline unsigned kind_of(uint64_t rule)
{
    return rule & 7;
}

static inline intptr_t cfa_offset_of(uint64_t rule)
{
    return ((int64_t)(rule << 24) >> 40) * 8;
}

static inline intptr_t bp_offset_of(uint64_t rule)
{
    return ((int64_t)rule >> 40) * 8;
}

static inline uint32_t slot_of(uintptr_t pc)
{
    return (uint32_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) % RULE_SLOTS;
}

static __attribute__((noinline)) uint64_t learn_rule(uintptr_t pc, uint32_t generation)
{
    fork_gate_enter();
    uint64_t rule = pack(eh_frame_rule(pc), generation);
    fork_gate_leave();
    uint32_t home = slot_of(pc), chosen = home;
    for (uint32_t i = 0; i < RULE_PROBES; i++) {
        uint32_t at = (home + i) % RULE_SLOTS;
        uint64_t old = atomic_load_explicit(&slots[at].rule, memory_order_relaxed);
        if (old == 0 || (old >> 3 & GENERATION_MASK) != (generation & GENERATION_MASK)) {
            chosen = at;
            break;
        }
    }
    atomic_store_explicit(&slots[chosen].rule, rule, memory_order_relaxed);
    atomic_store_explicit(&slots[chosen].key, pc ^ rule, memory_order_relaxed);
    return rule;
}

static inline uint64_t find_rule(uintptr_t pc, uint32_t generation)
{
    uint32_t home = slot_of(pc);
    for (uint32_t i = 0; i < RULE_PROBES; i++) {
        const struct slot *slot = &slots[(home + i) % RULE_SLOTS];
        uint64_t rule = atomic_load_explicit(&slot->rule, memory_order_relaxed);
        if ((atomic_load_explicit(&slot->key, memory_order_relaxed) ^ rule) == pc &&
            (rule >> 3 & GENERATION_MASK) == (generation & GENERATION_MASK) && rule != 0)
            return rule;
    }
    return learn_rule(pc, generation);
}

static inline uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

/* In bp_at, beside an address: the CFA was read from memory as well; it was counted from bp. */
#define CFA_WAS_READ 1u
#define CFA_BY_BP    2u
#define BP_AT_FLAGS  7u

enum step { STEP_OK, STEP_END, STEP_GIVE_UP };

static inline enum step step(struct unwind_frame *frame, uint32_t generation)
{
    uint64_t rule = find_rule(frame->pc, generation);
    uintptr_t cfa, bp_at = 0;
    switch (kind_of(rule)) {
    case RULE_SP:
        cfa = frame->sp + (uintptr_t)cfa_offset_of(rule);
        break;
    case RULE_BP:
        cfa = frame->bp + (uintptr_t)cfa_offset_of(rule);
        break;
    case RULE_REALIGNED:
        cfa = word_at(frame->bp + (uintptr_t)cfa_offset_of(rule));
        bp_at = frame->bp + (uintptr_t)bp_offset_of(rule);
        break;
    case RULE_OUTERMOST:
        return STEP_END;
    default:
        return STEP_GIVE_UP;
    }
    /* Stacks grow down: a caller's frame lies above. */
    if (cfa <= frame->sp || cfa % 8 != 0)
        return STEP_GIVE_UP;
    if (kind_of(rule) != RULE_REALIGNED && bp_offset_of(rule) != 0)
        bp_at = cfa + (uintptr_t)bp_offset_of(rule);
    frame->pc = word_at(cfa - 8);
    if (bp_at != 0)
        frame->bp = word_at(bp_at);
    frame->bp_at = bp_at | (kind_of(rule) == RULE_REALIGNED ? CFA_WAS_READ
                            : kind_of(rule) == RULE_BP      ? CFA_BY_BP
                                                            : 0);
    frame->sp = cfa;
    return frame->pc != 0 ? STEP_OK : STEP_END;
}

static inline bool lies_in(struct elf_extent extent, uintptr_t address)
{
    return address - extent.start < extent.bytes;
}

static inline struct unwind_frame frame_at(const struct unwind_trail *trail, uint32_t i)
{
    return (struct unwind_frame){trail->pc[i], trail->sp[i], trail->bp[i], trail->bp_at[i]};
}

static inline void put_frame(struct unwind_trail *trail, uint32_t i, const struct unwind_frame *frame)
{
    trail->pc[i] = frame->pc;
    trail->sp[i] = frame->sp;
    trail->bp[i] = frame->bp;
    trail->bp_at[i] = frame->bp_at;
}

static void copy_frames(struct unwind_trail *to, uint32_t at, const struct unwind_trail *from, uint32_t first,
                        uint32_t count)
{
    memmove(to->pc + at, from->pc + first, count * sizeof *to->pc);
    memmove(to->sp + at, from->sp + first, count * sizeof *to->sp);
    memmove(to->bp + at, from->bp + first, count * sizeof *to->bp);
    memmove(to->bp_at + at, from->bp_at + first, count * sizeof *to->bp_at);
}

/* How many frames from `from` on, whose sp and pc are known to be on the stack, up to `end` still are. A
 * frame's caller is the same when the frame is and so are the words that lead to the caller. bp, which is a
 * loop's counter as often as not where there are no frame pointers, matters only to who finds its caller by
 * it; it is brought up to date. */
static inline uint32_t count_same(const struct unwind_trail *trail, uint32_t from, uint32_t end, uintptr_t bp)
{
    const uintptr_t *pc = trail->pc, *sp = trail->sp, *bp_at = trail->bp_at;
    uintptr_t *known_bp = trail->bp;
    uint32_t i = from;
    for (;;) {
        uintptr_t leaves_off = CFA_WAS_READ;
        if (known_bp[i] != bp) {
            known_bp[i] = bp;
            leaves_off |= CFA_BY_BP;
        }
        if (++i >= end || (bp_at[i] & leaves_off) != 0 || word_at(sp[i] - 8) != pc[i])
            return i - from;
        if (bp_at[i] > BP_AT_FLAGS)
            bp = word_at(bp_at[i] & ~(uintptr_t)BP_AT_FLAGS);
    }
}

/* Makes the last walk, from index `at` on, the end of this one, whose first `count` frames are in `next`. */
static inline void join(struct unwind_memory *memory, uint32_t at, uint32_t shared, uint32_t count)
{
    struct unwind_trail *last = &memory->last;
    if (at < count) { /* no room in front of it */
        copy_frames(last, memory->max, last, at, shared);
        at = memory->max;
    }
    if (count != 0)
        copy_frames(last, at - count, &memory->next, memory->max, count);
    last->first = at - count;
    last->count = count + shared;
}

static void swap(struct unwind_memory *memory)
{
    struct unwind_trail last = memory->last;
    memory->last = memory->next;
    memory->next = last;
}

bool unwind_walk(struct unwind_memory *memory, struct unwind_frame start, struct elf_extent stop)
{
#ifndef __x86_64__
    return false;
#endif
    uint32_t generation = atomic_load_explicit(&current_generation, memory_order_acquire);
    struct unwind_trail *last = &memory->last, *next = &memory->next;
    if (memory->generation != generation || memory->stop.start != stop.start ||
        memory->stop.bytes != stop.bytes)
        last->count = 0;
    memory->unchanged = false;
    memory->generation = generation;
    memory->stop = stop;

    const uint32_t base = memory->max; /* leaves room in front */
    uint32_t at = last->first, end = at + last->count, count = 0;
    struct unwind_frame frame = start;
    enum step result = STEP_OK;
    while (result == STEP_OK && count < memory->max) {
        while (at < end && last->sp[at] < frame.sp)
            at++;
        if (at < end && last->sp[at] == frame.sp && last->pc[at] == frame.pc) {
            uint32_t shared = count_same(last, at, end, frame.bp);
            if (at + shared == end && last->complete && shared <= memory->max - count) {
                last->bp_at[at] = frame.bp_at;
                memory->unchanged = count == 0 && at == last->first;
                join(memory, at, shared, count);
                return true;
            }
            shared = shared < memory->max - count ? shared : memory->max - count;
            copy_frames(next, base + count, last, at, shared);
            next->bp_at[base + count] = frame.bp_at;
            count += shared;
            at += shared;
            frame = frame_at(last, at - 1);
        } else {
            put_frame(next, base + count++, &frame);
        }
        result = lies_in(stop, frame.pc) ? STEP_END : step(&frame, generation);
    }
    if (result == STEP_GIVE_UP) {
        /* Its frames may have this walk's rbp by now, beside their own callers. */
        unwind_forget(memory);
        return false;
    }
    next->first = base;
    next->count = count;
    next->complete = result == STEP_END;
    swap(memory);
    return true;
}

uint32_t unwind_trusted(const uintptr_t *addresses, uint32_t count)
{
#ifdef __x86_64__
    enum { CALL_BYTES = 8 };
    uint32_t generation = atomic_load_explicit(&current_generation, memory_order_acquire);
    bool guessed = false;
    for (uint32_t i = 0; i < count; i++) {
        bool unmapped = kind_of(find_rule(addresses[i], generation)) == RULE_UNMAPPED;
        if (guessed && unmapped && !is_readable((const void *)(addresses[i] - CALL_BYTES), CALL_BYTES))
            return i;
        if (guessed && !call_site_precedes(addresses[i]))
            return i;
        guessed |= unmapped;
    }
#else
    (void)addresses;
#endif
    return count;
}

void unwind_forget(struct unwind_memory *memory)
{
    memory->last.count = 0;
}

size_t unwind_memory_bytes(uint32_t max)
{
    return 2 * 4 * 2 * max * sizeof(uintptr_t);
}

void unwind_memory_init(struct unwind_memory *memory, uint32_t max, void *room)
{
    uintptr_t *words = room;
    *memory = (struct unwind_memory){.max = max};
    struct unwind_trail *trails[] = {&memory->last, &memory->next};
    for (int i = 0; i < 2; i++) {
        uintptr_t **arrays[] = {&trails[i]->pc, &trails[i]->sp, &trails[i]->bp, &trails[i]->bp_at};
        for (int k = 0; k < 4; k++, words += 2 * max)
            *arrays[k] = words;
    }
}

void unwind_modules_changed(void)
{
    atomic_fetch_add_explicit(&current_generation, 1, memory_order_release);
}
