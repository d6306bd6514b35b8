/* LEB128 varints and zigzag, as the recording stores integers (gpumemtrace/trace.h). */
#ifndef TRACE_VARINT_H
#define TRACE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX_BYTES 10

static inline uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ -(uint64_t)(value < 0);
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Returns the byte after the last one written; needs VARINT_MAX_BYTES of room. */
static inline uint8_t *varint_put(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Advances *at. False, and *at is not to be used, when the bytes end or hold more than 64 bits. */
static inline bool varint_get(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false;
}

#endif
