/* The name that a mistyped word was most likely meant to be. */
#include <stdio.h>
#include <string.h>

#include "command.h"

#define WORD_MAX 32

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters must be added, taken away, changed or swapped with the next (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t rows[WORD_MAX + 1][WORD_MAX + 1], m = strlen(a), n = strlen(b);
    for (size_t i = 0; i <= m; i++)
        rows[i][0] = i;
    for (size_t k = 0; k <= n; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= m; i++) {
        for (size_t k = 1; k <= n; k++) {
            size_t best = rows[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            best = smaller(best, smaller(rows[i - 1][k], rows[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                best = smaller(best, rows[i - 2][k - 2] + 1);
            rows[i][k] = best;
        }
    }
    return rows[m][n];
}

const char *did_you_mean(const char *before, const char *word, const char *const *names, size_t count)
{
    static char text[WORD_MAX + 32];
    const char *nearest = NULL;
    size_t least = 0, length = strlen(word);
    for (size_t i = 0; i < count && length <= WORD_MAX; i++) {
        if (strlen(names[i]) > WORD_MAX)
            continue;
        size_t changes = length > 2 && strncmp(names[i], word, length) == 0 ? 1 : distance(word, names[i]);
        if (!nearest || changes < least) {
            nearest = names[i];
            least = changes;
        }
    }
    /* Beyond a quarter of its letters, and one, it is another word. */
    if (!nearest || least > 1 + strlen(nearest) / 4)
        return "";
    snprintf(text, sizeof(text), "; did you mean '%s%s'?", before, nearest);
    return text;
}
