/*
 * uthash, set up for this project: memory from the kernel instead of malloc, and an addition that fails for
 * want of it leaves the table as it was. Include this, never <uthash.h>. After HASH_ADD_*(hh, …, entry, …),
 * hash_added(entry) tells whether the entry is in.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/arena.h"

#define HASH_NONFATAL_OOM          1
#define uthash_malloc(bytes)       pages_alloc(bytes)
#define uthash_free(start, bytes)  pages_free(start, bytes)
#define uthash_nonfatal_oom(entry) ((entry)->hh.tbl = NULL)

#include <uthash.h>

#define hash_added(entry) ((entry)->hh.tbl != NULL)

#endif
