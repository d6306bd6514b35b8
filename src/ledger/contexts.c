/*
 * Which living blocks are of which context, so that a context's end costs as much as it ends. A record is
 * made with a context's first block and goes with its end.
 */
#include "ledger/internal.h"

struct context_blocks {
    uint32_t context;
    struct block_entry *first, *last; /* by when they began */
    UT_hash_handle hh;
};

static struct context_blocks *find(struct ledger *ledger, uint32_t context)
{
    struct context_blocks *found = ledger->last_context;
    if (found != NULL && found->context == context)
        return found;
    HASH_FIND(hh, ledger->contexts, &context, sizeof context, found);
    if (found != NULL)
        ledger->last_context = found;
    return found;
}

static struct context_blocks *reach(struct ledger *ledger, uint32_t context)
{
    struct context_blocks *record = find(ledger, context);
    if (record != NULL)
        return record;
    record = pool_get(&ledger->context_pool);
    if (record == NULL)
        return NULL;
    *record = (struct context_blocks){.context = context};
    HASH_ADD(hh, ledger->contexts, context, sizeof record->context, record);
    if (hash_added(record)) {
        ledger->last_context = record;
        return record;
    }
    pool_put(&ledger->context_pool, record);
    return NULL;
}

void contexts_init(struct ledger *ledger)
{
    pool_init(&ledger->context_pool, ledger->arena, sizeof(struct context_blocks));
}

void contexts_destroy(struct ledger *ledger)
{
    ledger->last_context = NULL;
    HASH_CLEAR(hh, ledger->contexts);
}

bool contexts_add(struct ledger *ledger, struct block_entry *entry)
{
    entry->before = entry->after = NULL;
    if (entry->block.context == 0)
        return true;
    struct context_blocks *record = reach(ledger, entry->block.context);
    if (record == NULL)
        return false;
    entry->before = record->last;
    *(record->last == NULL ? &record->first : &record->last->after) = entry;
    record->last = entry;
    return true;
}

void contexts_remove(struct ledger *ledger, struct block_entry *entry)
{
    if (entry->block.context == 0)
        return;
    struct context_blocks *record = find(ledger, entry->block.context);
    *(entry->before == NULL ? &record->first : &entry->before->after) = entry->after;
    *(entry->after == NULL ? &record->last : &entry->after->before) = entry->before;
}

struct block_entry *contexts_first(struct ledger *ledger, uint32_t context)
{
    const struct context_blocks *record = find(ledger, context);
    return record == NULL ? NULL : record->first;
}

void contexts_end(struct ledger *ledger, uint32_t context)
{
    struct context_blocks *record = find(ledger, context);
    if (record == NULL)
        return;
    ledger->last_context = NULL;
    HASH_DEL(ledger->contexts, record);
    pool_put(&ledger->context_pool, record);
}
