/* Taking back, item by item, the pictures of moments: out of memory, and the fullest of each device
 * (restore.c). */
#include <string.h>

#include "ledger/restore.h"
#include "ledger/segments.h"

/* Of one OOM; the ledger itself takes far fewer (ooms.c). */
#define OOM_LAYOUTS_MAX FRAMEWORKS_MAX
#define LAYOUT_LIST_MAX 1024

const char *restore_oom(const struct item *item)
{
    const uint64_t *values = item->values;
    struct ledger *ledger = item->ledger;
    if (ledger->ooms.count == LEDGER_OOMS_MAX)
        return out_of_place;
    if (known_site(ledger, values[1]) == NULL || values[2] > UINT32_MAX || values[8] > ledger->sites.count ||
        values[9] > OOM_LAYOUTS_MAX || !are_figures(values + 4, 3) || values[7] > LEDGER_LIVE_MAX ||
        values[10] > LEDGER_LIVE_MAX || !are_figures(values + 12, 2))
        return out_of_range;
    struct share *shares = arena_alloc(ledger->arena, values[8] * sizeof *shares);
    struct layout *layouts = arena_alloc(ledger->arena, values[9] * sizeof *layouts);
    struct oom *oom = list_reach(&ledger->ooms, ledger->ooms.count);
    if (shares == NULL || layouts == NULL || oom == NULL)
        return no_memory;
    *oom = (struct oom){.time_ns = values[0],
                        .site = (uint32_t)values[1],
                        .error = (int32_t)values[2],
                        .requested_bytes = values[3],
                        .free_bytes = values[4],
                        .total_bytes = values[5],
                        .live_bytes = values[6],
                        .pool_unused_bytes = values[7],
                        .driver_bytes = values[10],
                        .granted_ns = values[11],
                        .freed_bytes = values[12],
                        .ended_bytes = values[13],
                        .context_bytes = values[14],
                        .own_bytes = values[15],
                        .all_bytes = values[16],
                        .shares = shares,
                        .layouts = layouts};
    ledger->unanswered += oom->granted_ns == 0;
    *item->restoring = (struct ledger_restoring){.sum = item->restoring->sum,
                                                 .oom = oom,
                                                 .shares = shares,
                                                 .shares_left = (uint32_t)values[8],
                                                 .layouts = layouts,
                                                 .layouts_left = (uint32_t)values[9]};
    return NULL;
}

const char *restore_share(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    if (restoring->shares_left == 0)
        return out_of_place;
    if (known_site(item->ledger, item->values[0]) == NULL || !are_figures(item->values, 3))
        return out_of_range;
    restoring->shares_left--;
    restoring->shares[restoring->oom->share_count++] = (struct share){
        .site = (uint32_t)item->values[0], .bytes = item->values[1], .blocks = item->values[2]};
    return NULL;
}

const char *restore_layout(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    const uint64_t *values = item->values;
    if (restoring->layouts_left == 0)
        return out_of_place;
    if (!is_string(item->ledger, values[0]) || !is_device(values[1]) || values[11] > LAYOUT_LIST_MAX ||
        values[12] > LAYOUT_LIST_MAX || !are_figures(values + 3, 8) || values[5] > LEDGER_LIVE_MAX ||
        values[6] > LEDGER_LIVE_MAX)
        return out_of_range;
    struct layout_segment *segments = arena_alloc(item->ledger->arena, values[11] * sizeof *segments);
    struct layout_pinner *pinners = arena_alloc(item->ledger->arena, values[12] * sizeof *pinners);
    if (segments == NULL || pinners == NULL)
        return no_memory;
    restoring->layouts_left--;
    restoring->layout = &restoring->layouts[restoring->oom->layout_count++];
    *restoring->layout = (struct layout){.allocator = (uint32_t)values[0],
                                         .device = device_of(values[1]),
                                         .time_ns = values[2],
                                         .reserved_bytes = values[3],
                                         .allocated_bytes = values[4],
                                         .releasable_bytes = values[5],
                                         .stranded_bytes = values[6],
                                         .largest_free_bytes = values[7],
                                         .blocks = values[8],
                                         .outside_bytes = values[9],
                                         .segment_count = values[10],
                                         .segments = segments,
                                         .pinners = pinners};
    restoring->segments = segments;
    restoring->segments_left = (uint32_t)values[11];
    restoring->pinners = pinners;
    restoring->pinners_left = (uint32_t)values[12];
    return NULL;
}

const char *restore_layout_segment(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    const uint64_t *values = item->values;
    if (restoring->segments_left == 0)
        return out_of_place;
    if (!are_figures(values, 7))
        return out_of_range;
    restoring->segments_left--;
    struct layout_segment *segment = &restoring->segments[restoring->layout->listed_count++];
    *segment = (struct layout_segment){.start = values[0],
                                       .bytes = values[1],
                                       .allocated_bytes = values[2],
                                       .releasable_bytes = values[3],
                                       .stranded_bytes = values[4],
                                       .largest_free_bytes = values[5],
                                       .blocks = values[6]};
    for (unsigned i = 0; i < LAYOUT_COLUMNS; i++)
        segment->map[i] = LAYOUT_MAP_CHARACTERS[values[7 + i / 32] >> (2 * (i % 32)) & 3];
    return NULL;
}

const char *restore_pinner(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    if (restoring->pinners_left == 0)
        return out_of_place;
    if (known_site(item->ledger, item->values[0]) == NULL || !are_figures(item->values, 4))
        return out_of_range;
    restoring->pinners_left--;
    restoring->pinners[restoring->layout->pinner_count++] =
        (struct layout_pinner){.site = (uint32_t)item->values[0],
                               .stranded_bytes = item->values[1],
                               .pieces = item->values[2],
                               .blocks = item->values[3]};
    return NULL;
}

const char *restore_segments(const struct item *item)
{
    struct segments *segments = &item->ledger->segments;
    segments->active = item->values[0] != 0;
    segments->ended_start = item->values[1];
    segments->ended_size = item->values[2];
    segments->ended_users = (uint32_t)item->values[3];
    return NULL;
}

const char *restore_framework(const struct item *item)
{
    struct list *frameworks = &item->ledger->segments.frameworks;
    if (frameworks->count == FRAMEWORKS_MAX)
        return out_of_place;
    if (!is_string(item->ledger, item->values[0]))
        return out_of_range;
    uint32_t *name = list_reach(frameworks, frameworks->count);
    if (name == NULL)
        return no_memory;
    *name = (uint32_t)item->values[0];
    return NULL;
}

const char *restore_fullest(const struct item *item)
{
    if (!is_device(item->values[0]))
        return out_of_range;
    if (segments_fullest(item->ledger, device_of(item->values[0])) != NULL)
        return out_of_place;
    struct fullest fullest = {.device = device_of(item->values[0]),
                              .driver_bytes = item->values[1],
                              .framework_bytes = item->values[2],
                              .time_ns = item->values[3],
                              .event = item->values[4],
                              .mapped_bytes = item->values[5],
                              .mapped_now = item->values[6]};
    return segments_restore_fullest(item->ledger, &fullest) ? NULL : no_memory;
}

/* The fullest moment of that number, from 0; NULL when there is none. */
static struct fullest *nth_fullest(const struct item *item, uint64_t number)
{
    return number < UINT32_MAX ? list_at(&item->ledger->segments.fullest, (uint32_t)number) : NULL;
}

const char *restore_segment(const struct item *item)
{
    const uint64_t *values = item->values;
    struct ledger_restoring *restoring = item->restoring;
    struct fullest *fullest = values[0] == 0 ? NULL : nth_fullest(item, values[0] - 1);
    if ((values[0] != 0 && fullest == NULL) || !is_catalog_site(item->ledger, values[3]) ||
        values[4] > UINT32_MAX)
        return out_of_range;
    struct segment *segment = pool_get(&item->ledger->segments.pool);
    if (segment == NULL)
        return no_memory;
    *segment = (struct segment){.start = values[1],
                                .size = values[2],
                                .site = (uint32_t)values[3],
                                .context = (uint32_t)values[4],
                                .mapped = values[5] != 0,
                                .users = (uint32_t)values[6],
                                .users_then = (uint32_t)values[7],
                                .then = values[8],
                                .birth = values[9]};
    if (fullest == NULL)
        return segments_restore(item->ledger, segment) ? NULL : out_of_place;
    if (restoring->kept_segments_of != values[0]) {
        if (fullest->segments != NULL)
            return out_of_place;
        restoring->kept_segments_of = (uint32_t)values[0];
        restoring->kept_segment = &fullest->segments;
    }
    *restoring->kept_segment = segment;
    restoring->kept_segment = &segment->next;
    return NULL;
}

const char *restore_kept_block(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    struct fullest *fullest = item->values[0] == 0 ? NULL : nth_fullest(item, item->values[0] - 1);
    struct block block;
    const char *wrong = restore_read_block(item, item->values + 1, &block);
    if (fullest == NULL || wrong != NULL)
        return fullest == NULL ? out_of_range : wrong;
    if (restoring->kept_blocks_of != item->values[0]) {
        if (fullest->blocks != NULL)
            return out_of_place;
        restoring->kept_blocks_of = (uint32_t)item->values[0];
        restoring->kept_block = &fullest->blocks;
    }
    struct block_entry *entry = pool_get(&item->ledger->blocks.pool);
    if (entry == NULL)
        return no_memory;
    memset(entry, 0, sizeof *entry);
    entry->block = block;
    entry->birth = item->values[7];
    *restoring->kept_block = entry;
    restoring->kept_block = &entry->next;
    return NULL;
}
