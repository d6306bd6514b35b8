/* Call instructions of x86-64 and AArch64, read backwards from where they return to (call_site.h). */
#include "capture/call_site.h"

/* Guessed addresses lead anywhere: what a sanitizer thinks of that memory does not matter. */
static __attribute__((no_sanitize("address", "thread"))) void read_code(uint8_t *to, uintptr_t from,
                                                                        unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = ((const volatile uint8_t *)from)[i];
}

#if defined(__x86_64__)

/* The bytes of FF /2, "call r/m64", whose ModRM byte this is, without prefixes; 0 when it is something else.
 */
static unsigned indirect_call_bytes(uint8_t modrm, uint8_t sib)
{
    unsigned mode = modrm >> 6, operand = modrm >> 3 & 7, base = modrm & 7;
    if (operand != 2)
        return 0;
    if (mode == 3)
        return 2;
    unsigned bytes = base == 4 ? 3 : 2;
    if (mode == 1)
        return bytes + 1;
    if (mode == 2 || base == 5 || (base == 4 && (sib & 7) == 5))
        return bytes + 4;
    return bytes;
}

bool call_site_precedes(uintptr_t address)
{
    uint8_t before[7];
    read_code(before, address - sizeof before, sizeof before);
    if (before[2] == 0xe8) /* call rel32 */
        return true;
    for (unsigned bytes = 2; bytes <= 7; bytes++) {
        const uint8_t *at = before + sizeof before - bytes;
        if (at[0] == 0xff && indirect_call_bytes(at[1], bytes > 2 ? at[2] : 0) == bytes)
            return true;
    }
    return false;
}

#elif defined(__aarch64__)

bool call_site_precedes(uintptr_t address)
{
    uint32_t before;
    read_code((uint8_t *)&before, address - sizeof before, sizeof before);
    return (before & 0xfc000000) == 0x94000000 ||              /* BL */
           (before & 0xfffffc1f) == 0xd63f0000 ||              /* BLR */
           (before & 0xfefff800) == (0xd63f0800 & 0xfefff800); /* BLRAA and its like */
}

#endif
