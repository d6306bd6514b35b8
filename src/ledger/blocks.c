/*
 * The table of living blocks, by key, chained, and the list of them by age. An entry also stands in the list
 * of its context (contexts.c), and its memory is used again when its block has ended, unless segments.c keeps
 * it for the fullest moment.
 *
 * Not one of uthash's, though all other tables are: a block took 138 bytes with it, takes 100 without, and
 * half of the instructions that an event spends here.
 */
#include "ledger/internal.h"
#include "ledger/segments.h"

#define BUCKETS_MIN 512 /* a page */

static struct block_entry **bucket_of(const struct blocks *blocks, uint64_t key)
{
    return &blocks->buckets[hash_number(key) & blocks->mask];
}

static bool make_buckets(struct blocks *blocks, uint64_t count)
{
    struct block_entry **buckets = pages_alloc(count * sizeof *buckets);
    if (buckets == NULL)
        return false;
    pages_free(blocks->buckets, blocks->buckets == NULL ? 0 : (blocks->mask + 1) * sizeof *buckets);
    blocks->buckets = buckets;
    blocks->mask = count - 1;
    for (struct block_entry *entry = blocks->oldest; entry != NULL; entry = entry->newer) {
        struct block_entry **bucket = bucket_of(blocks, entry->block.key);
        entry->next = *bucket;
        *bucket = entry;
    }
    return true;
}

bool blocks_init(struct ledger *ledger)
{
    pool_init(&ledger->blocks.pool, ledger->arena, sizeof(struct block_entry));
    contexts_init(ledger);
    return make_buckets(&ledger->blocks, BUCKETS_MIN);
}

void blocks_destroy(struct ledger *ledger)
{
    pages_free(ledger->blocks.buckets, (ledger->blocks.mask + 1) * sizeof *ledger->blocks.buckets);
    ledger->blocks.buckets = NULL;
    contexts_destroy(ledger);
}

struct block_entry *blocks_insert(struct ledger *ledger, const struct block *block)
{
    struct blocks *blocks = &ledger->blocks;
    struct block_entry *entry = pool_get(&blocks->pool);
    if (entry == NULL)
        return NULL;
    entry->block = *block;
    entry->birth = ledger->counters.events;
    if (!contexts_add(ledger, entry)) {
        pool_put(&blocks->pool, entry);
        return NULL;
    }
    if (blocks->count > blocks->mask)
        make_buckets(blocks, (blocks->mask + 1) * 2); /* without memory the chains grow longer */
    struct block_entry **bucket = bucket_of(blocks, block->key);
    entry->next = *bucket;
    *bucket = entry;
    entry->newer = NULL;
    entry->older = blocks->newest;
    *(blocks->newest == NULL ? &blocks->oldest : &blocks->newest->newer) = entry;
    blocks->newest = entry;
    blocks->count++;
    return entry;
}

struct block_entry *blocks_find(const struct ledger *ledger, uint64_t key)
{
    struct block_entry *entry = *bucket_of(&ledger->blocks, key);
    while (entry != NULL && entry->block.key != key)
        entry = entry->next;
    return entry;
}

void blocks_remove(struct ledger *ledger, struct block_entry *entry, const struct site_record *site)
{
    struct blocks *blocks = &ledger->blocks;
    struct block_entry **link = bucket_of(blocks, entry->block.key);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    *(entry->older == NULL ? &blocks->oldest : &entry->older->newer) = entry->newer;
    *(entry->newer == NULL ? &blocks->newest : &entry->newer->older) = entry->older;
    blocks->count--;
    contexts_remove(ledger, entry);
    if (segments_block_ends(ledger, entry, site))
        pool_put(&blocks->pool, entry);
}

const struct block *ledger_find(const struct ledger *ledger, uint64_t key)
{
    const struct block_entry *entry = blocks_find(ledger, key);
    return entry == NULL ? NULL : &entry->block;
}

void ledger_each_block(const struct ledger *ledger, bool (*visit)(const struct block *, void *), void *arg)
{
    const struct block_entry *entry = ledger->blocks.oldest;
    while (entry != NULL && visit(&entry->block, arg))
        entry = entry->newer;
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
