/*
 * Spaces and sites of the ledger: each is made at its first event. From the second device on there is one
 * more space, the whole: the driver's device memory of all devices together.
 */
#include "ledger/internal.h"

static bool is_device_memory(const struct space_record *space)
{
    return space->is.layer == LAYER_DRIVER && space->is.kind == SPACE_DEVICE;
}

/* What happened on the only device so far is what happened on all. */
static void begin_whole(struct ledger *ledger, struct space_record *first)
{
    struct space_record *whole = &ledger->whole;
    whole->is = first->is;
    whole->is.device = -1;
    whole->epoch = first->epoch;
    whole->in_whole = first->in_whole = true;
    summits_copy(ledger, &whole->summits, &first->summits);
    for (uint32_t i = 0; i < ledger->sites.count; i++) {
        struct site_record *site = list_at(&ledger->sites, i);
        if (site->space == first)
            site->at_whole_peak = site->at_peak;
    }
}

/* A space of device memory that is new. */
static void join_whole(struct ledger *ledger, struct space_record *joining)
{
    for (uint32_t i = 0; i < ledger->spaces.count && !ledger->whole.in_whole; i++) {
        struct space_record *space = list_at(&ledger->spaces, i);
        if (space != joining && is_device_memory(space))
            begin_whole(ledger, space);
    }
    joining->in_whole = ledger->whole.in_whole;
}

static uint32_t space_index(struct ledger *ledger, const struct site_key *key)
{
    enum layer layer = family_infos[key->family].layer;
    for (uint32_t i = 0; i < ledger->spaces.count; i++) {
        const struct space_record *space = list_at(&ledger->spaces, i);
        if (space->is.layer == layer && space->is.kind == key->space && space->is.device == key->device)
            return i;
    }
    uint32_t index = ledger->spaces.count;
    struct space_record *space = list_reach(&ledger->spaces, index);
    if (space == NULL)
        return UINT32_MAX;
    space->is.layer = layer;
    space->is.kind = (enum space_kind)key->space;
    space->is.device = key->device;
    if (is_device_memory(space))
        join_whole(ledger, space);
    return index;
}

struct site_record *ledger_reach_site(struct ledger *ledger, uint32_t id)
{
    struct site_record *site = list_at(&ledger->sites, id);
    if (site != NULL && site->space != NULL)
        return site;
    const struct site_key *key = catalog_site(ledger->catalog, id);
    if (key == NULL || key->family >= FAMILY_COUNT || key->space >= SPACE_COUNT)
        return NULL;
    uint32_t index = space_index(ledger, key);
    site = index == UINT32_MAX ? NULL : list_reach(&ledger->sites, id);
    if (site == NULL)
        return NULL;
    site->space = list_at(&ledger->spaces, index);
    site->layer = family_infos[key->family].layer;
    return site;
}

struct space_record *ledger_restore_space(struct ledger *ledger, const struct ledger_space *space)
{
    for (uint32_t i = 0; i < ledger->spaces.count; i++) {
        const struct ledger_space *known = ledger_space(ledger, i);
        if (known->layer == space->layer && known->kind == space->kind && known->device == space->device)
            return NULL;
    }
    struct space_record *record = list_reach(&ledger->spaces, ledger->spaces.count);
    if (record == NULL)
        return NULL;
    record->is = *space;
    if (is_device_memory(record))
        join_whole(ledger, record);
    return record;
}

struct space_record *ledger_restore_whole(struct ledger *ledger, const struct ledger_space *space)
{
    struct space_record *whole = &ledger->whole;
    if (!whole->in_whole)
        return NULL;
    whole->is = *space;
    return whole;
}
