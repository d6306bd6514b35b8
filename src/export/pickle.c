/* Pickle, by the opcodes of Python's Lib/pickletools.py; see pickle.h. */
#include "export/pickle.h"

#include <string.h>

#include "export/export.h"

/* The opcodes, by the names that pickletools gives them. */
enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    BININT1 = 'K',
    BININT2 = 'M',
    BININT = 'J',
    LONG1 = 0x8a,
    BINUNICODE = 'X',
    MEMOIZE = 0x94,
    LONG_BINGET = 'j',
};

/* Python's own pickler ends a batch there too: a reader may have to hold one on its stack. */
#define BATCH 1000

static void put(struct pickle *pickle, int byte)
{
    char c = (char)byte;
    output_bytes(pickle->out, &c, 1);
}

static void put_little(struct pickle *pickle, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put(pickle, (int)(value >> 8 * i & 0xff));
}

static void finish_batch(struct pickle *pickle)
{
    put(pickle, pickle->levels[pickle->depth - 1].kind == EMPTY_LIST ? APPENDS : SETITEMS);
}

/* Before each value: it belongs to the list or dictionary that is open. */
static void begin_item(struct pickle *pickle)
{
    if (pickle->depth == 0)
        return;
    unsigned *items = &pickle->levels[pickle->depth - 1].items;
    if (*items == BATCH) { /* even: never between a key and its value */
        finish_batch(pickle);
        *items = 0;
    }
    if ((*items)++ == 0)
        put(pickle, MARK);
}

void pickle_begin(struct pickle *pickle, struct output *out)
{
    *pickle = (struct pickle){.out = out};
    put(pickle, PROTO);
    put(pickle, 4);
}

void pickle_end(struct pickle *pickle)
{
    put(pickle, STOP);
}

static void open_level(struct pickle *pickle, char kind)
{
    begin_item(pickle);
    put(pickle, kind);
    pickle->levels[pickle->depth].kind = kind;
    pickle->levels[pickle->depth++].items = 0;
}

void pickle_open_list(struct pickle *pickle)
{
    open_level(pickle, EMPTY_LIST);
}

void pickle_open_dict(struct pickle *pickle)
{
    open_level(pickle, EMPTY_DICT);
}

void pickle_close(struct pickle *pickle)
{
    if (pickle->levels[pickle->depth - 1].items > 0)
        finish_batch(pickle);
    pickle->depth--;
}

void pickle_int(struct pickle *pickle, int64_t value)
{
    begin_item(pickle);
    if (value >= 0 && value <= UINT8_MAX) {
        put(pickle, BININT1);
        put_little(pickle, (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put(pickle, BININT2);
        put_little(pickle, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put(pickle, BININT);
        put_little(pickle, (uint64_t)value, 4);
    } else {
        put(pickle, LONG1);
        put(pickle, 8);
        put_little(pickle, (uint64_t)value, 8);
    }
}

void pickle_text(struct pickle *pickle, const char *text)
{
    char clean[EXPORT_NAME_MAX];
    begin_item(pickle);
    export_text(text, clean, sizeof(clean));
    put(pickle, BINUNICODE);
    put_little(pickle, strlen(clean), 4);
    output_text(pickle->out, clean);
}

uint32_t pickle_keep(struct pickle *pickle)
{
    put(pickle, MEMOIZE);
    return pickle->memo++;
}

void pickle_again(struct pickle *pickle, uint32_t number)
{
    begin_item(pickle);
    put(pickle, LONG_BINGET);
    put_little(pickle, number, 4);
}
