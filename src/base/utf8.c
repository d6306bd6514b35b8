/* UTF-8 by RFC 3629, and what of it is safe and how wide it is on a terminal. No allocation, no locale. */
#include "base/utf8.h"

struct range {
    uint32_t first, last;
};

/* Controls, line and paragraph separators, marks that reorder text (Unicode's bidirectional formatting),
 * invisible characters that make two names look alike, private use, and code points that are no characters.
 */
static const struct range unprintable[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad}, {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164}, {0xe000, 0xf8ff}, {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff}, {0xf0000, UINT32_MAX},
};

/* Combining marks that programs' names do hold. */
static const struct range zero_wide[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe2f},
};

/* East Asian wide and emoji, in the coarse blocks terminals agree on. */
static const struct range double_wide[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
};

static bool in(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}
#define IN(ranges, code) in(ranges, sizeof ranges / sizeof ranges[0], code)

static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_next(const char *text, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t length = s[0] < 0x80   ? 1
                    : s[0] < 0xc2 ? 0
                    : s[0] < 0xe0 ? 2
                    : s[0] < 0xf0 ? 3
                    : s[0] < 0xf5 ? 4
                                  : 0;
    if (length == 1) {
        *code = s[0];
        return 1;
    }
    static const unsigned char mask[] = {0, 0, 0x1f, 0x0f, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = s[0] & mask[length];
    for (size_t i = 1; i < length; i++) {
        if (!continues(s[i])) { /* a NUL ends it here too */
            length = 0;
            break;
        }
        value = value << 6 | (s[i] & 0x3f);
    }
    if (!length || value < least[length] || (value >= 0xd800 && value <= 0xdfff) || value > 0x10ffff) {
        *code = UTF8_INVALID;
        return 1;
    }
    *code = value;
    return length;
}

bool utf8_is_printable(uint32_t code)
{
    if (code >= 0x20 && code < 0x7f)
        return true;
    return !IN(unprintable, code);
}

int utf8_columns(uint32_t code)
{
    if (code < 0x300)
        return 1;
    return IN(zero_wide, code) ? 0 : IN(double_wide, code) ? 2 : 1;
}
