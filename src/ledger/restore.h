/*
 * Between the files that take a saved ledger back (restore.c); nobody else includes this. A restore function
 * adds one item and returns NULL, or what is wrong with it.
 */
#ifndef LEDGER_RESTORE_H
#define LEDGER_RESTORE_H

#include "ledger/internal.h"
#include "ledger/state.h"

/* A history's cells are wide enough for any time, and their width can be shifted by. */
#define WIDTH_LOG2_MAX 58

struct item {
    struct ledger *ledger;
    struct ledger_restoring *restoring;
    const uint64_t *values;
};

static const char no_memory[] = "not enough memory";
static const char out_of_range[] = "a checkpoint's number is out of range";
static const char out_of_place[] = "a checkpoint's item is out of place";

static inline bool is_device(uint64_t value)
{
    return value <= LEDGER_DEVICES_MAX;
}

static inline int device_of(uint64_t value)
{
    return (int)value - 1;
}

static inline bool are_figures(const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] > LEDGER_FIGURE_MAX)
            return false;
    return true;
}

/* A site that was restored, so that its record is there. */
static inline struct site_record *known_site(const struct ledger *ledger, uint64_t id)
{
    struct site_record *site = id < CATALOG_NONE ? list_at(&ledger->sites, (uint32_t)id) : NULL;
    return site == NULL || site->space == NULL ? NULL : site;
}

static inline bool is_catalog_site(const struct ledger *ledger, uint64_t id)
{
    return id < CATALOG_NONE && catalog_site(ledger->catalog, (uint32_t)id) != NULL;
}

static inline bool is_string(const struct ledger *ledger, uint64_t id)
{
    return id < CATALOG_NONE && catalog_string(ledger->catalog, (uint32_t)id) != NULL;
}

/* From `values` on: key, size, born, site, context, references, birth. */
const char *restore_read_block(const struct item *item, const uint64_t *values, struct block *block);

/* restore_moments.c: what was noted of moments, out of memory and the fullest ones. */
const char *restore_oom(const struct item *item);
const char *restore_share(const struct item *item);
const char *restore_layout(const struct item *item);
const char *restore_layout_segment(const struct item *item);
const char *restore_pinner(const struct item *item);
const char *restore_segments(const struct item *item);
const char *restore_framework(const struct item *item);
const char *restore_fullest(const struct item *item);
const char *restore_segment(const struct item *item);
const char *restore_kept_block(const struct item *item);

/* restore_phases.c */
const char *restore_phase(const struct item *item);
const char *restore_range(const struct item *item);
const char *restore_phase_site(const struct item *item);
const char *restore_steps(const struct item *item);

#endif
