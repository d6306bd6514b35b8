/*
 * The .eh_frame of a file with its .eh_frame_hdr, as a segment in memory. The first bytes say where in it the
 * header is and which address is asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/eh_frame.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t asked[2];
    if (size <= sizeof asked)
        return 0;
    memcpy(asked, data, sizeof asked);
    const uint8_t *start = data + sizeof asked, *end = data + size;
    const uint8_t *header = start + asked[0] % (size_t)(end - start);
    for (unsigned step = 0; step < 3; step++) {
        struct frame_rule rule =
            eh_frame_look_up(header, start, end, (uintptr_t)header + asked[1] + step * 64);
        require(rule.kind == RULE_OTHER || rule.kind == RULE_OUTERMOST ||
                (rule.cfa_offset % 8 == 0 && rule.bp_offset % 8 == 0 && abs(rule.cfa_offset) <= 1 << 26 &&
                 abs(rule.bp_offset) <= 1 << 26));
    }
    return 0;
}
