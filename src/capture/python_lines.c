/* Line tables of CPython's code objects (python_lines.h). Sums wrap around instead of overflowing. */
#include "capture/python_lines.h"

#define LINETABLE_NO_LINE (-128)

/* Pairs of (bytes of code, lines), each applying from where the last ended. */
static uint32_t lnotab_line(const uint8_t *table, size_t bytes, uint32_t line, uint32_t offset)
{
    uint32_t start = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        start += table[i];
        if (start > offset)
            break;
        line += (uint32_t)(int8_t)table[i + 1];
    }
    return line;
}

/* Pairs of (bytes of code, lines), each describing a range of its own. */
static uint32_t linetable_line(const uint8_t *table, size_t bytes, uint32_t line, uint32_t offset)
{
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int8_t delta = (int8_t)table[i + 1];
        end += table[i];
        if (delta != LINETABLE_NO_LINE)
            line += (uint32_t)delta;
        if (end > offset)
            return delta == LINETABLE_NO_LINE ? 0 : line;
    }
    return 0;
}

/* A signed number in groups of 6 bits, lowest first; bit 6 tells that another follows, bit 0 is the sign. */
static uint32_t read_signed(const uint8_t *table, size_t bytes, size_t *at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; *at < bytes; shift += 6) {
        uint8_t byte = table[(*at)++];
        if (shift < 32)
            value |= (uint32_t)(byte & 0x3f) << shift;
        if ((byte & 0x40) == 0)
            break;
    }
    return value & 1 ? 0 - (value >> 1) : value >> 1;
}

enum {
    LOCATION_ONE_LINE_0 = 10, /* 10 to 12: this many lines beyond 10 */
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15,
};

/* Entries that begin with a byte of 0x80 | kind << 3 | (code units - 1) and hold none other with bit 7 set.
 */
static uint32_t locations_line(const uint8_t *table, size_t bytes, uint32_t line, uint32_t offset)
{
    uint32_t end = 0;
    for (size_t at = 0; at < bytes;) {
        uint8_t head = table[at++];
        unsigned kind = head >> 3 & 15;
        end += 2 * ((head & 7u) + 1);
        if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
            line += read_signed(table, bytes, &at);
        else if (kind >= LOCATION_ONE_LINE_0 && kind < LOCATION_NO_COLUMNS)
            line += kind - LOCATION_ONE_LINE_0;
        if (end > offset)
            return kind == LOCATION_NONE ? 0 : line;
        while (at < bytes && (table[at] & 0x80) == 0)
            at++;
    }
    return 0;
}

int32_t python_line(enum python_line_format format, const uint8_t *table, size_t bytes, int32_t first_line,
                    int32_t offset)
{
    uint32_t line = (uint32_t)first_line;
    if (offset >= 0) {
        if (format == PYTHON_LNOTAB)
            line = lnotab_line(table, bytes, line, (uint32_t)offset);
        else if (format == PYTHON_LINETABLE)
            line = linetable_line(table, bytes, line, (uint32_t)offset);
        else
            line = locations_line(table, bytes, line, (uint32_t)offset);
    }
    return line > INT32_MAX ? 0 : (int32_t)line;
}
