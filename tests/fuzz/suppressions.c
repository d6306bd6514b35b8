/*
 * A suppression file, and names to match: the bytes up to a NUL are the file, each line behind it is a name.
 * The matcher is held to a slow one that is plainly right.
 */
#include "report/suppressions.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"

#define SLOW_MAX 96 /* bytes of a pattern and of a name that the slow matcher takes */

static void complain(void *arg, const char *sentence)
{
    (void)arg;
    require(sentence[0] != '\0');
}

/* Table of "the first p of the pattern match the first n of the name". `pattern` matches anywhere in `name`
 * unless it is tied to its ends. */
static bool slow_match(const char *pattern, const char *name)
{
    static bool table[SLOW_MAX + 1][SLOW_MAX + 1];
    bool from_start = *pattern == '^';
    pattern += from_start;
    size_t length = strlen(pattern), bytes = strlen(name);
    bool to_end = length > 0 && pattern[length - 1] == '$';
    length -= to_end;
    for (size_t n = 0; n <= bytes; n++)
        table[0][n] = n == 0 || !from_start;
    for (size_t p = 1; p <= length; p++) {
        bool star = pattern[p - 1] == '*';
        table[p][0] = star && table[p - 1][0];
        for (size_t n = 1; n <= bytes; n++)
            table[p][n] = star ? table[p - 1][n] || table[p][n - 1]
                               : table[p - 1][n - 1] && pattern[p - 1] == name[n - 1];
    }
    if (to_end)
        return table[length][bytes];
    for (size_t n = 0; n <= bytes; n++)
        if (table[length][n])
            return true;
    return false;
}

static void match_all(const struct suppressions *suppressions, const char *name)
{
    for (size_t i = 0; i < suppressions->count; i++) {
        const char *pattern = suppressions->list[i].pattern;
        bool matches = suppression_matches(pattern, name);
        if (strlen(pattern) <= SLOW_MAX && strlen(name) <= SLOW_MAX)
            require(matches == slow_match(pattern, name));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct suppressions suppressions;
    char *text = malloc(size + 1);
    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    size_t file_bytes = strlen(text);
    suppressions_parse(&suppressions, "file", text, file_bytes, &arena, complain, NULL);
    for (char *name = text + file_bytes + 1, *next; name < text + size; name = next) {
        next = memchr(name, '\n', (size_t)(text + size - name));
        next = next ? next : text + size;
        *next++ = '\0';
        match_all(&suppressions, name);
    }
    free(text);
    arena_release(&arena);
    return 0;
}
