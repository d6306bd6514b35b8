/* One sort for everything: the C library's qsort may call malloc, which code in the traced process must not.
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

/* Less than, equal to or greater than 0, as for qsort. */
typedef int compare_function(const void *left, const void *right, const void *context);

/* Stable, O(n log n) whatever the order. False, and nothing is moved, when there was no memory for a second
 * copy. */
bool sort_items(void *items, size_t count, size_t item_bytes, compare_function *compare, const void *context);

#endif
