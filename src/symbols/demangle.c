/* Demangling by libiberty's callback interface, the one that needs no malloc. */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <string.h>

/* With parameters, since overloads are different places, without the return type of templates. */
#define READABLE (DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP)

struct text {
    char *bytes;
    size_t used, size;
};

static void append(const char *piece, size_t length, void *arg)
{
    struct text *text = arg;
    size_t room = text->size - 1 - text->used;
    if (length > room)
        length = room;
    memcpy(text->bytes + text->used, piece, length);
    text->used += length;
}

static bool is_cut(const struct text *text)
{
    return text->used == text->size - 1;
}

/* Cutting may have split a UTF-8 character (Rust allows them in names). */
static void drop_partial_character(struct text *text)
{
    size_t end = text->used;
    while (end > 0 && (text->bytes[end - 1] & 0xc0) == 0x80)
        end--;
    if (end > 0 && (text->bytes[end - 1] & 0xc0) == 0xc0)
        text->used = end - 1;
}

/* How much of a name says which function it is: without what compilers add for the parts and copies they make
 * of one, as in "f.cold", "f.constprop.0", "f() [clone .isra.0]". */
static size_t length_without_clones(const char *name)
{
    static const char *const marks[] = {".cold",     ".part.", ".constprop.", ".isra.",
                                        ".lto_priv", ".llvm.", " [clone"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        const char *mark = strstr(name, marks[i]);
        if (mark && mark > name && (size_t)(mark - name) < length)
            length = (size_t)(mark - name);
    }
    return length;
}

size_t demangle(const char *name, char *text, size_t size)
{
    char whole[DEMANGLE_INPUT_MAX + 1];
    struct text readable = {.bytes = text, .size = size};
    bool cpp = strncmp(name, "_Z", 2) == 0, rust = strncmp(name, "_R", 2) == 0;
    if (size == 0)
        return 0;
    text[0] = 0;
    size_t length = cpp || rust ? length_without_clones(name) : 0;
    if (length == 0 || length > DEMANGLE_INPUT_MAX)
        return 0;
    memcpy(whole, name, length);
    whole[length] = 0;
    /* Older Rust names look like C++ ones; rust_demangle_callback() knows them apart by their hash. */
    bool done = rust_demangle_callback(whole, 0, append, &readable) != 0;
    if (!done && cpp) {
        readable.used = 0;
        done = cplus_demangle_v3_callback(whole, READABLE, append, &readable) != 0;
    }
    if (!done)
        readable.used = 0;
    if (is_cut(&readable))
        drop_partial_character(&readable);
    text[readable.used] = 0;
    return readable.used;
}

size_t readable_name(const char *name, char *text, size_t size)
{
    size_t length = demangle(name, text, size);
    if (length > 0 || size == 0)
        return length;
    length = length_without_clones(name);
    if (length >= size)
        length = size - 1;
    memcpy(text, name, length);
    text[length] = 0;
    return length;
}
