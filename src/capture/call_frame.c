/* Runs call frame instructions (call_frame.h) as far as ordinary code needs them. */
#include "capture/call_frame.h"

#include <string.h>

enum { WORD = 8, OFFSET_MAX = 1 << 26, REMEMBERED_MAX = 8 };

uint64_t read_bytes(struct reader *in, size_t bytes)
{
    uint64_t value = 0;
    if (in->bad || (size_t)(in->end - in->at) < bytes) {
        in->bad = true;
        return 0;
    }
    memcpy(&value, in->at, bytes);
    in->at += bytes;
    return value;
}

void read_over(struct reader *in, uint64_t bytes)
{
    if (in->bad || (uint64_t)(in->end - in->at) < bytes)
        in->bad = true;
    else
        in->at += bytes;
}

uint64_t read_uleb(struct reader *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; !in->bad; shift += 7) {
        uint64_t byte = read_bytes(in, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            break;
    }
    return value;
}

int64_t read_sleb(struct reader *in)
{
    uint64_t value = 0, byte = 0;
    unsigned shift = 0;
    do {
        byte = read_bytes(in, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0 && !in->bad);
    if (shift < 64 && (byte & 0x40) != 0)
        value |= ~UINT64_C(0) << shift;
    return (int64_t)value;
}

uintptr_t read_pointer(struct reader *in, uint8_t encoding)
{
    uintptr_t place = (uintptr_t)in->at, value;
    switch (encoding & ENCODE_FORMAT) {
    case ENCODE_ABSOLUTE:
    case ENCODE_UDATA8:
    case ENCODE_SDATA8:
        value = read_bytes(in, 8);
        break;
    case ENCODE_UDATA2:
        value = read_bytes(in, 2);
        break;
    case ENCODE_UDATA4:
        value = read_bytes(in, 4);
        break;
    case ENCODE_SDATA2:
        value = (uintptr_t)(int16_t)read_bytes(in, 2);
        break;
    case ENCODE_SDATA4:
        value = (uintptr_t)(int32_t)read_bytes(in, 4);
        break;
    default:
        in->bad = true;
        return 0;
    }
    switch (encoding & ENCODE_RELATION) {
    case ENCODE_ABSOLUTE:
        return value;
    case ENCODE_PC_RELATIVE:
        return place + value;
    default:
        in->bad = true;
        return 0;
    }
}

enum place { PLACE_SAME, PLACE_AT_CFA, PLACE_AT_BP, PLACE_UNDEFINED, PLACE_OTHER };

/* Where a register of the caller is. */
struct saved {
    enum place place;
    int64_t offset;
};

enum { SAVED_BP, SAVED_RA, SAVED_REST, SAVED_COUNT };

/* One row of the table that the instructions build: how things are from one instruction of the code on. */
struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    bool cfa_is_word; /* it is not bp + cfa_offset but the word there */
    bool cfa_is_other;
    struct saved saved[SAVED_COUNT];
};

struct machine {
    const struct common *common;
    struct row row, initial, remembered[REMEMBERED_MAX];
    size_t remembered_count;
    uintptr_t location, target; /* the row wanted is the last at or before `target` */
};

/* A factored offset in bytes; whatever it is, it does not overflow. */
static int64_t scale(const struct machine *machine, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)machine->common->data_align);
}

static void set_saved(struct machine *machine, uint64_t number, enum place place, int64_t offset)
{
    int index = number == REGISTER_BP ? SAVED_BP : number == REGISTER_RA ? SAVED_RA : SAVED_REST;
    machine->row.saved[index] = (struct saved){place, offset};
}

static void restore(struct machine *machine, uint64_t number)
{
    int index = number == REGISTER_BP ? SAVED_BP : number == REGISTER_RA ? SAVED_RA : SAVED_REST;
    machine->row.saved[index] = machine->initial.saved[index];
}

static void set_cfa(struct machine *machine, uint64_t number, int64_t offset)
{
    machine->row.cfa_register = number;
    machine->row.cfa_offset = offset;
    machine->row.cfa_is_word = machine->row.cfa_is_other = false;
}

/* A block that is "bp + offset", followed by `then` (0: nothing). */
static bool is_bp_expression(struct reader block, uint8_t then, int64_t *offset)
{
    enum { OP_BREG_BP = 0x70 + REGISTER_BP };
    bool matches = read_bytes(&block, 1) == OP_BREG_BP;
    *offset = read_sleb(&block);
    if (then != 0)
        matches &= read_bytes(&block, 1) == then;
    return matches && !block.bad && block.at == block.end;
}

static struct reader read_block(struct reader *in)
{
    uint64_t bytes = read_uleb(in);
    struct reader block = *in;
    read_over(in, bytes);
    block.bad = in->bad;
    block.end = in->at;
    return block;
}

/* Code that realigns its stack keeps the CFA itself in the frame. */
static void set_cfa_expression(struct machine *machine, struct reader block)
{
    enum { OP_DEREF = 0x06 };
    machine->row.cfa_is_word = is_bp_expression(block, OP_DEREF, &machine->row.cfa_offset);
    machine->row.cfa_is_other = !machine->row.cfa_is_word;
}

static void set_saved_expression(struct machine *machine, uint64_t number, struct reader block)
{
    int64_t offset;
    bool at_bp = is_bp_expression(block, 0, &offset);
    set_saved(machine, number, at_bp ? PLACE_AT_BP : PLACE_OTHER, offset);
}

/* Moves on in the code; false once the wanted row is complete. */
static bool advance(struct machine *machine, uint64_t units)
{
    machine->location += units * machine->common->code_align;
    return machine->location <= machine->target;
}

enum {
    CFA_ADVANCE_LOC = 0x40, /* with an operand in the low 6 bits, as the next two */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
};

/* One that changes where a register is saved, or nothing. False when it is not known. */
static bool run_saving(struct machine *machine, struct reader *in, unsigned code)
{
    uint64_t number;
    switch (code) {
    case CFA_NOP:
        return true;
    case CFA_GNU_ARGS_SIZE:
        read_uleb(in);
        return true;
    case CFA_RESTORE_EXTENDED:
        restore(machine, read_uleb(in));
        return true;
    case CFA_UNDEFINED:
        set_saved(machine, read_uleb(in), PLACE_UNDEFINED, 0);
        return true;
    case CFA_SAME_VALUE:
        set_saved(machine, read_uleb(in), PLACE_SAME, 0);
        return true;
    case CFA_OFFSET_EXTENDED:
        number = read_uleb(in);
        set_saved(machine, number, PLACE_AT_CFA, scale(machine, read_uleb(in)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        number = read_uleb(in);
        set_saved(machine, number, PLACE_AT_CFA, scale(machine, (uint64_t)read_sleb(in)));
        return true;
    case CFA_EXPRESSION:
        number = read_uleb(in);
        set_saved_expression(machine, number, read_block(in));
        return true;
    case CFA_REGISTER:
    case CFA_VAL_OFFSET:
    case CFA_VAL_OFFSET_SF: /* as many bytes, whatever the sign */
        number = read_uleb(in);
        read_uleb(in);
        set_saved(machine, number, PLACE_OTHER, 0);
        return true;
    case CFA_VAL_EXPRESSION:
        number = read_uleb(in);
        read_block(in);
        set_saved(machine, number, PLACE_OTHER, 0);
        return true;
    default:
        return false;
    }
}

/* One that changes the CFA or the whole row. False when it is not known. */
static bool run_defining(struct machine *machine, struct reader *in, unsigned code)
{
    struct row *row = &machine->row;
    uint64_t number;
    switch (code) {
    case CFA_DEF_CFA:
        number = read_uleb(in);
        set_cfa(machine, number, (int64_t)read_uleb(in));
        return true;
    case CFA_DEF_CFA_SF:
        number = read_uleb(in);
        set_cfa(machine, number, scale(machine, (uint64_t)read_sleb(in)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        set_cfa(machine, read_uleb(in), row->cfa_offset);
        return true;
    case CFA_DEF_CFA_OFFSET:
        set_cfa(machine, row->cfa_register, (int64_t)read_uleb(in));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        set_cfa(machine, row->cfa_register, scale(machine, (uint64_t)read_sleb(in)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(machine, read_block(in));
        return true;
    case CFA_REMEMBER_STATE:
        if (machine->remembered_count == REMEMBERED_MAX)
            return false;
        machine->remembered[machine->remembered_count++] = *row;
        return true;
    case CFA_RESTORE_STATE:
        if (machine->remembered_count == 0)
            return false;
        *row = machine->remembered[--machine->remembered_count];
        return true;
    default:
        return run_saving(machine, in, code);
    }
}

/* Runs instructions up to the wanted row. False when one is not known or they are not well-formed. */
static bool run(struct machine *machine, struct reader in)
{
    bool on = true;
    while (on && !in.bad && in.at < in.end) {
        unsigned code = (unsigned)read_bytes(&in, 1), operand = code & 0x3f;
        switch (code & 0xc0) {
        case CFA_ADVANCE_LOC:
            on = advance(machine, operand);
            continue;
        case CFA_OFFSET:
            set_saved(machine, operand, PLACE_AT_CFA, scale(machine, read_uleb(&in)));
            continue;
        case CFA_RESTORE:
            restore(machine, operand);
            continue;
        }
        if (code >= CFA_ADVANCE_LOC1 && code <= CFA_ADVANCE_LOC4) {
            on = advance(machine, read_bytes(&in, (size_t)1 << (code - CFA_ADVANCE_LOC1)));
        } else if (code == CFA_SET_LOC) {
            machine->location = read_pointer(&in, machine->common->pointer_encoding);
            on = machine->location <= machine->target;
        } else if (!run_defining(machine, &in, code)) {
            return false;
        }
    }
    return !in.bad;
}

static bool fits(int64_t offset)
{
    return offset % WORD == 0 && offset <= OFFSET_MAX && offset >= -OFFSET_MAX;
}

static struct frame_rule rule_of(const struct row *row)
{
    const struct saved *bp = &row->saved[SAVED_BP], *ra = &row->saved[SAVED_RA];
    struct frame_rule rule = {RULE_OTHER, (int32_t)row->cfa_offset, (int32_t)bp->offset};
    if (ra->place == PLACE_UNDEFINED)
        return (struct frame_rule){.kind = RULE_OUTERMOST};
    if (row->cfa_is_other || ra->place != PLACE_AT_CFA || ra->offset != -WORD || !fits(row->cfa_offset) ||
        !fits(bp->offset))
        return rule;
    if (bp->place == PLACE_SAME)
        rule.bp_offset = 0;
    if (row->cfa_is_word)
        rule.kind = bp->place == PLACE_AT_BP ? RULE_REALIGNED : RULE_OTHER;
    else if (bp->place != PLACE_SAME && (bp->place != PLACE_AT_CFA || bp->offset == 0))
        rule.kind = RULE_OTHER;
    else if (row->cfa_register == REGISTER_SP)
        rule.kind = RULE_SP;
    else if (row->cfa_register == REGISTER_BP)
        rule.kind = RULE_BP;
    return rule;
}

struct frame_rule call_frame_rule(const struct common *common, struct reader instructions, uintptr_t start,
                                  uintptr_t address)
{
    struct machine machine = {.common = common, .location = start, .target = UINTPTR_MAX};
    if (!run(&machine, common->instructions))
        return (struct frame_rule){.kind = RULE_OTHER};
    machine.initial = machine.row;
    machine.location = start;
    machine.target = address;
    return run(&machine, instructions) ? rule_of(&machine.row) : (struct frame_rule){.kind = RULE_OTHER};
}
