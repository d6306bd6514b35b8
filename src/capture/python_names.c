/* Python strings as UTF-8 (python_names.h): PEP 393 storage, Include/cpython/unicodeobject.h. */
#include "capture/python_names.h"

#include <stdint.h>
#include <string.h>

enum { STATE_KIND = 7, STATE_COMPACT = 8, STATE_ASCII = 16 };

static size_t encode(uint32_t character, char *out)
{
    if (character >= 0xdc80 && character <= 0xdcff) {
        out[0] = (char)(character - 0xdc00);
        return 1;
    }
    if (character == 0 || character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff))
        character = 0xfffd;
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    size_t bytes = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3f));
    out[0] = (char)(0xf00 >> bytes | character);
    return bytes;
}

static uint32_t character_at(const char *data, unsigned kind, size_t index)
{
    if (kind == 1)
        return (uint8_t)data[index];
    if (kind == 2)
        return ((const uint16_t *)data)[index];
    return ((const uint32_t *)data)[index];
}

void python_text(const struct python_layout *layout, const void *text, char *buffer, size_t bytes)
{
    const char *object = text;
    size_t used = 0;
    if (object != NULL) {
        uint32_t state;
        int64_t length;
        memcpy(&state, object + layout->text_state, sizeof state);
        memcpy(&length, object + layout->text_length, sizeof length);
        state >>= layout->text_state_shift;
        const char *data =
            object + (state & STATE_ASCII ? layout->text_ascii_data : layout->text_compact_data);
        if ((state & STATE_COMPACT) == 0)
            length = 0;
        for (int64_t i = 0; i < length; i++) {
            char character[4];
            size_t count = encode(character_at(data, state & STATE_KIND, (size_t)i), character);
            if (used + count >= bytes)
                break;
            memcpy(buffer + used, character, count);
            used += count;
        }
    }
    buffer[used] = '\0';
}
