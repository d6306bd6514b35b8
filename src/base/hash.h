/*
 * uthash, set up for this project: memory from the kernel instead of malloc, an addition that fails for want
 * of it leaves the table as it was, and a hash that is keyed. Include this, never <uthash.h>. After
 * HASH_ADD_*(hh, …, entry, …), hash_added(entry) tells whether the entry is in.
 *
 * Keys in a recording are whatever its author chose. The command-line tool draws new hash keys in each
 * process, so that nobody can choose names or addresses that all meet in one bucket; in the traced process,
 * whose names and addresses are its own, the keys are always the same.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct hash_keys {
    uint64_t add, multiply; /* `multiply` is odd */
};
extern struct hash_keys hash_keys;

/* Before anything is hashed, and while there is one thread. Without randomness the keys stay as they are. */
void hash_draw_keys(void);

/* All bits of the result depend on all of the number's: the halves of a product of 128 bits, folded. */
static inline uint64_t hash_mix(uint64_t number)
{
    unsigned __int128 product = (unsigned __int128)(number ^ hash_keys.add) * hash_keys.multiply;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash_number(uint64_t number)
{
    uint64_t mixed = hash_mix(number);
    return (uint32_t)(mixed ^ mixed >> 32);
}

uint32_t hash_bytes(const void *bytes, size_t count);

#define HASH_NONFATAL_OOM                   1
#define HASH_FUNCTION(key, key_bytes, hash) ((hash) = hash_bytes((key), (key_bytes)))
#define uthash_malloc(bytes)                pages_alloc(bytes)
#define uthash_free(start, bytes)           pages_free(start, bytes)
#define uthash_nonfatal_oom(entry)          ((entry)->hh.tbl = NULL)

#include <uthash.h>

#define hash_added(entry) ((entry)->hh.tbl != NULL)

#endif
