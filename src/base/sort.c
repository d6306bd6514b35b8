/* A bottom-up merge sort on mapped pages. */
#include "base/sort.h"

#include <string.h>

#include "base/arena.h"

#define RUN      8 /* items that insertion sorts faster than merging does */
#define ITEM_MAX 256

static void sort_run(char *items, size_t count, size_t bytes, compare_function *compare, const void *context)
{
    char held[ITEM_MAX];
    for (size_t i = 1; i < count; i++) {
        size_t at = i;
        while (at > 0 && compare(items + (at - 1) * bytes, items + i * bytes, context) > 0)
            at--;
        if (at == i)
            continue;
        memcpy(held, items + i * bytes, bytes);
        memmove(items + (at + 1) * bytes, items + at * bytes, (i - at) * bytes);
        memcpy(items + at * bytes, held, bytes);
    }
}

/* Merges [from, middle) and [middle, end) of `in` into the same places of `out`. */
static void merge(const char *in, char *out, size_t from, size_t middle, size_t end, size_t bytes,
                  compare_function *compare, const void *context)
{
    size_t left = from, right = middle;
    for (size_t at = from; at < end; at++) {
        bool take_left =
            left < middle && (right == end || compare(in + left * bytes, in + right * bytes, context) <= 0);
        memcpy(out + at * bytes, in + (take_left ? left++ : right++) * bytes, bytes);
    }
}

bool sort_items(void *items, size_t count, size_t bytes, compare_function *compare, const void *context)
{
    size_t total;
    if (count < 2)
        return true;
    if (bytes > ITEM_MAX || __builtin_mul_overflow(count, bytes, &total))
        return false;
    char *other = count > RUN ? pages_alloc(total) : NULL;
    if (count > RUN && !other)
        return false;

    char *in = items, *out = other;
    for (size_t from = 0; from < count; from += RUN)
        sort_run(in + from * bytes, count - from < RUN ? count - from : RUN, bytes, compare, context);
    for (size_t width = RUN; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = count - from < width ? count : from + width;
            size_t end = count - from < 2 * width ? count : from + 2 * width;
            merge(in, out, from, middle, end, bytes, compare, context);
        }
        char *swapped = in;
        in = out;
        out = swapped;
    }
    if (in != items)
        memcpy(items, in, total);
    pages_free(other, total);
    return true;
}
