/*
 * Reads .eh_frame by way of .eh_frame_hdr (eh_frame.h). The tables are those of a loaded file and so can be
 * trusted to describe its code, but not to be well-formed: every read is within the segment they are in.
 */
#include "capture/eh_frame.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "capture/call_frame.h"

/* The bytes of one entry, after its length. */
static struct reader entry_at(const uint8_t *at, const uint8_t *end)
{
    struct reader in = {at, end, at >= end};
    uint64_t bytes = read_bytes(&in, 4);
    if (bytes == 0 || bytes == UINT32_MAX || in.bad || bytes > (size_t)(end - in.at))
        in.bad = true;
    else
        in.end = in.at + bytes;
    return in;
}

static bool read_common(const uint8_t *at, const uint8_t *end, struct common *common)
{
    struct reader in = entry_at(at, end);
    *common = (struct common){.pointer_encoding = ENCODE_ABSOLUTE};
    uint64_t id = read_bytes(&in, 4), version = read_bytes(&in, 1);
    const uint8_t *augmentation = in.at;
    while (!in.bad && read_bytes(&in, 1) != 0)
        ;
    if (in.bad || id != 0 || (version != 1 && version != 3))
        return false;
    common->code_align = read_uleb(&in);
    common->data_align = read_sleb(&in);
    uint64_t return_register = version == 1 ? read_bytes(&in, 1) : read_uleb(&in);
    if (*augmentation == 'z') {
        common->has_augmentation = true;
        uint64_t bytes = read_uleb(&in);
        struct reader data = in;
        read_over(&in, bytes);
        if (in.bad)
            return false;
        data.end = in.at;
        for (augmentation++; *augmentation != 0; augmentation++) {
            if (*augmentation == 'R')
                common->pointer_encoding = (uint8_t)read_bytes(&data, 1);
            else if (*augmentation == 'P') /* only to step over; an indirect one is as long */
                read_pointer(&data, (uint8_t)read_bytes(&data, 1) & 0x7f);
            else if (*augmentation == 'L')
                read_bytes(&data, 1);
            else if (*augmentation == 'S')
                common->is_signal = true;
            else
                return false;
        }
        in.bad |= data.bad;
    } else if (*augmentation != 0) {
        return false;
    }
    common->instructions = in;
    return !in.bad && return_register == REGISTER_RA;
}

/* The rule of the FDE at `at`, if it is about `address`. */
static struct frame_rule read_description(const uint8_t *at, const uint8_t *start, const uint8_t *end,
                                          uintptr_t address)
{
    const struct frame_rule other = {.kind = RULE_OTHER};
    struct reader in = entry_at(at, end);
    const uint8_t *id = in.at;
    uint64_t back = read_bytes(&in, 4);
    struct common common;
    if (in.bad || back == 0 || back > (size_t)(id - start) || !read_common(id - back, end, &common))
        return other;
    uintptr_t from = read_pointer(&in, common.pointer_encoding);
    uintptr_t bytes = read_pointer(&in, common.pointer_encoding & ENCODE_FORMAT);
    if (common.has_augmentation)
        read_over(&in, read_uleb(&in));
    if (in.bad || address - from >= bytes || common.is_signal)
        return other;
    return call_frame_rule(&common, in, from, address);
}

/* .eh_frame_hdr is a sorted table of (function, its FDE), both relative to the header. */
struct frame_rule eh_frame_look_up(const uint8_t *header, const uint8_t *start, const uint8_t *end,
                                   uintptr_t address)
{
    const struct frame_rule other = {.kind = RULE_OTHER};
    struct reader in = {header, end, false};
    uint64_t version = read_bytes(&in, 1);
    uint8_t frame_encoding = (uint8_t)read_bytes(&in, 1), count_encoding = (uint8_t)read_bytes(&in, 1);
    uint64_t table_encoding = read_bytes(&in, 1);
    if (version != 1 || frame_encoding == ENCODE_OMIT || count_encoding != ENCODE_UDATA4 ||
        table_encoding != (ENCODE_DATA_RELATIVE | ENCODE_SDATA4))
        return other;
    read_pointer(&in, frame_encoding);
    uint64_t count = read_bytes(&in, 4);
    struct pair {
        int32_t function, description;
    } pair;
    if (in.bad || count == 0 || count > (size_t)(in.end - in.at) / sizeof pair)
        return other;
    const uint8_t *table = in.at;
    intptr_t wanted = (intptr_t)(address - (uintptr_t)header);
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        memcpy(&pair, table + middle * sizeof pair, sizeof pair);
        if (pair.function <= wanted)
            low = middle;
        else
            high = middle;
    }
    memcpy(&pair, table + low * sizeof pair, sizeof pair);
    uintptr_t description = (uintptr_t)header + (uintptr_t)(intptr_t)pair.description;
    if (pair.function > wanted || description < (uintptr_t)start || description >= (uintptr_t)end)
        return other;
    return read_description((const uint8_t *)description, start, end, address);
}

struct query {
    uintptr_t address;
    struct frame_rule rule;
};

static int visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    struct query *query = arg;
    const ElfW(Phdr) *header = NULL;
    bool hit = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_GNU_EH_FRAME)
            header = segment;
        else if (segment->p_type == PT_LOAD)
            hit |= query->address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz;
    }
    if (!hit)
        return 0;
    query->rule.kind = RULE_OTHER;
    for (int i = 0; i < info->dlpi_phnum && header != NULL; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uint8_t *start = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD && header->p_vaddr - segment->p_vaddr < segment->p_filesz)
            query->rule = eh_frame_look_up((const uint8_t *)(info->dlpi_addr + header->p_vaddr), start,
                                           start + segment->p_filesz, query->address);
    }
    return 1;
}

struct frame_rule eh_frame_rule(uintptr_t return_address)
{
    /* The call can be a function's last instruction. */
    struct query query = {.address = return_address - 1, .rule = {.kind = RULE_UNMAPPED}};
    dl_iterate_phdr(visit, &query);
    return query.rule;
}
