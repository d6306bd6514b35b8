/*
 * The table of living blocks, by key. An entry also stands in the list of its context (contexts.c), and its
 * memory is used again when its block has ended, unless segments.c keeps it for the fullest moment.
 */
#include <string.h>

#include "ledger/internal.h"
#include "ledger/segments.h"

/* The key of the table's first entry, which is no block and always there: uthash gives its table back with
 * the last entry, so a program with one block at a time would have two mappings made and undone each time. */
#define NO_BLOCK UINT64_MAX
_Static_assert(KEY_SPACE_COUNT <= NO_BLOCK >> KEY_NUMBER_BITS, "no block has that key");

/* All keys here are block keys. */
#undef HASH_FUNCTION
#define HASH_FUNCTION(key, key_bytes, hash)                                                                  \
    do {                                                                                                     \
        uint64_t number;                                                                                     \
        memcpy(&number, (key), sizeof number);                                                               \
        (hash) = hash_number(number);                                                                        \
    } while (0)

struct block_entry *blocks_insert(struct ledger *ledger, const struct block *block)
{
    struct block_entry *entry = pool_get(&ledger->block_pool);
    if (entry == NULL)
        return NULL;
    entry->block = *block;
    entry->birth = ledger->counters.events;
    HASH_ADD(hh, ledger->blocks, block.key, sizeof entry->block.key, entry);
    if (hash_added(entry) && contexts_add(ledger, entry))
        return entry;
    if (hash_added(entry))
        HASH_DEL(ledger->blocks, entry);
    pool_put(&ledger->block_pool, entry);
    return NULL;
}

bool blocks_init(struct ledger *ledger)
{
    pool_init(&ledger->block_pool, ledger->arena, sizeof(struct block_entry));
    contexts_init(ledger);
    return blocks_insert(ledger, &(struct block){.key = NO_BLOCK}) != NULL;
}

void blocks_destroy(struct ledger *ledger)
{
    HASH_CLEAR(hh, ledger->blocks);
    contexts_destroy(ledger);
}

struct block_entry *blocks_find(const struct ledger *ledger, uint64_t key)
{
    struct block_entry *entry;
    HASH_FIND(hh, ledger->blocks, &key, sizeof key, entry);
    return entry;
}

void blocks_remove(struct ledger *ledger, struct block_entry *entry, const struct site_record *site)
{
    HASH_DEL(ledger->blocks, entry);
    contexts_remove(ledger, entry);
    if (segments_block_ends(ledger, entry, site))
        pool_put(&ledger->block_pool, entry);
}

const struct block *ledger_find(const struct ledger *ledger, uint64_t key)
{
    const struct block_entry *entry = blocks_find(ledger, key);
    return entry == NULL ? NULL : &entry->block;
}

void ledger_each_block(const struct ledger *ledger, bool (*visit)(const struct block *, void *), void *arg)
{
    const struct block_entry *entry = ledger->blocks->hh.next; /* behind NO_BLOCK */
    while (entry != NULL && visit(&entry->block, arg))
        entry = entry->hh.next;
}

struct block_entry *ledger_restore_block(struct ledger *ledger, const struct block *block, uint64_t birth)
{
    if (block_key_space(block->key) >= KEY_SPACE_COUNT || blocks_find(ledger, block->key) != NULL)
        return NULL;
    struct block_entry *entry = blocks_insert(ledger, block);
    if (entry != NULL)
        entry->birth = birth;
    return entry;
}
