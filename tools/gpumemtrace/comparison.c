/* Comparing two reports; see comparison.h. */
#include "comparison.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "place.h"

struct known_place {
    size_t index;
    UT_hash_handle hh;
};

struct matching {
    struct comparison *comparison;
    struct known_place *known; /* one for each place, in one array */
    struct known_place *by_key;
    uint64_t *biggest; /* what the site that stands for each place holds */
};

struct difference difference(uint64_t before, uint64_t after)
{
    return (struct difference){after < before, after < before ? before - after : after - before};
}

static void add(struct saved_figures *sum, const struct saved_figures *figures)
{
    sum->live_bytes += figures->live_bytes;
    sum->live_blocks += figures->live_blocks;
    sum->peak_bytes += figures->peak_bytes;
    sum->peak_blocks += figures->peak_blocks;
    sum->allocs += figures->allocs;
    sum->frees += figures->frees;
    sum->allocated_bytes += figures->allocated_bytes;
}

static bool equal(const struct saved_figures *a, const struct saved_figures *b)
{
    return a->live_bytes == b->live_bytes && a->live_blocks == b->live_blocks &&
           a->peak_bytes == b->peak_bytes && a->peak_blocks == b->peak_blocks && a->allocs == b->allocs &&
           a->frees == b->frees && a->allocated_bytes == b->allocated_bytes;
}

/* The place with that key, made where it is new; takes the key. NULL when memory ran out. */
static struct compared *find_place(struct matching *matching, char *key)
{
    struct comparison *comparison = matching->comparison;
    struct known_place *known;
    HASH_FIND_STR(matching->by_key, key, known);
    if (known) {
        free(key);
        return &comparison->places[known->index];
    }
    size_t index = comparison->place_count;
    known = &matching->known[index];
    known->index = index;
    HASH_ADD_KEYPTR(hh, matching->by_key, key, strlen(key), known);
    if (!hash_added(known)) {
        free(key);
        return NULL;
    }
    comparison->place_count++;
    comparison->places[index].key = key;
    return &comparison->places[index];
}

/* What makes one of several sites the one to show. */
static uint64_t weight(const struct saved_figures *figures)
{
    return figures->live_bytes > figures->peak_bytes ? figures->live_bytes : figures->peak_bytes;
}

static int add_sites(struct matching *matching, const struct saved_report *report,
                     const struct place_rules *rules, bool is_after)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct saved_site *site = &report->sites[i];
        char *key = place_key(report, site, rules);
        struct compared *place = key ? find_place(matching, key) : NULL;
        if (!place)
            return -1;
        size_t index = (size_t)(place - matching->comparison->places);
        bool first = is_after ? place->change != CHANGE_CHANGED && place->change != CHANGE_NEW : !place->site;
        if (first || weight(&site->figures) > matching->biggest[index]) {
            place->site = site;
            matching->biggest[index] = weight(&site->figures);
        }
        place->layer = site->layer;
        place->space = site->space;
        place->device = site->device;
        place->suppressed |= site->suppressed;
        add(is_after ? &place->after : &place->before, &site->figures);
        if (!is_after)
            place->change = CHANGE_GONE;
        else if (first)
            place->change = place->change == CHANGE_GONE ? CHANGE_CHANGED : CHANGE_NEW;
    }
    return 0;
}

static int compare_places(struct matching *matching, const struct saved_report *before,
                          const struct saved_report *after)
{
    struct comparison *comparison = matching->comparison;
    struct place_rules rules = place_rules(before, after);
    if (add_sites(matching, before, &rules, false) != 0 || add_sites(matching, after, &rules, true) != 0)
        return -1;
    for (size_t i = 0; i < comparison->place_count; i++) {
        struct compared *place = &comparison->places[i];
        if (place->change == CHANGE_CHANGED && equal(&place->before, &place->after))
            place->change = CHANGE_NONE;
        comparison->counts[place->change]++;
    }
    return 0;
}

static bool is_space(const struct compared *row, const struct saved_space *space)
{
    return row->device == space->device && row->space && strcmp(row->space, space->space) == 0;
}

static struct compared *find_space(struct comparison *comparison, const struct saved_space *space)
{
    for (size_t i = 0; i < comparison->space_count; i++)
        if (is_space(&comparison->spaces[i], space))
            return &comparison->spaces[i];
    struct compared *added = &comparison->spaces[comparison->space_count++];
    added->layer = "driver";
    added->space = space->space;
    added->device = space->device;
    return added;
}

static void compare_spaces(struct comparison *comparison, const struct saved_report *before,
                           const struct saved_report *after)
{
    for (size_t i = 0; i < before->space_count; i++) {
        struct compared *space = find_space(comparison, &before->spaces[i]);
        add(&space->before, &before->spaces[i].figures);
        space->change = CHANGE_GONE;
    }
    for (size_t i = 0; i < after->space_count; i++) {
        struct compared *space = find_space(comparison, &after->spaces[i]);
        add(&space->after, &after->spaces[i].figures);
        if (space->change == CHANGE_GONE || space->change == CHANGE_CHANGED)
            space->change = CHANGE_CHANGED;
        else
            space->change = CHANGE_NEW;
    }
    for (size_t i = 0; i < comparison->space_count; i++)
        if (comparison->spaces[i].change == CHANGE_CHANGED &&
            equal(&comparison->spaces[i].before, &comparison->spaces[i].after))
            comparison->spaces[i].change = CHANGE_NONE;
}

/* How much a change of a place matters. */
static uint64_t magnitude(const struct compared *place)
{
    uint64_t live = difference(place->before.live_bytes, place->after.live_bytes).amount;
    uint64_t peak = difference(place->before.peak_bytes, place->after.peak_bytes).amount;
    return live > peak ? live : peak;
}

static int by_magnitude(const void *left, const void *right)
{
    const struct compared *a = left, *b = right;
    uint64_t x = magnitude(a), y = magnitude(b);
    if (x == y) {
        x = difference(a->before.allocs, a->after.allocs).amount;
        y = difference(b->before.allocs, b->after.allocs).amount;
    }
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->key, b->key);
}

static bool nothing_changed(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->space_count; i++)
        if (comparison->spaces[i].change != CHANGE_NONE)
            return false;
    return comparison->counts[CHANGE_NONE] == comparison->place_count;
}

int comparison_make(struct comparison *comparison, struct saved_report *before, struct saved_report *after)
{
    size_t sites = before->site_count + after->site_count + 1;
    struct matching matching = {.comparison = comparison};
    memset(comparison, 0, sizeof(*comparison));
    comparison->spaces = calloc(before->space_count + after->space_count + 1, sizeof(*comparison->spaces));
    comparison->places = calloc(sites, sizeof(*comparison->places));
    matching.known = calloc(sites, sizeof(*matching.known));
    matching.biggest = calloc(sites, sizeof(*matching.biggest));
    int result = -1;
    if (comparison->spaces && comparison->places && matching.known && matching.biggest) {
        place_unify_names(before, after);
        compare_spaces(comparison, before, after);
        result = compare_places(&matching, before, after);
    }
    HASH_CLEAR(hh, matching.by_key);
    free(matching.known);
    free(matching.biggest);
    if (result != 0) {
        comparison_release(comparison);
        return result;
    }
    qsort(comparison->places, comparison->place_count, sizeof(*comparison->places), by_magnitude);
    comparison->same = nothing_changed(comparison);
    return 0;
}

void comparison_release(struct comparison *comparison)
{
    for (size_t i = 0; comparison->places && i < comparison->place_count; i++)
        free(comparison->places[i].key);
    free(comparison->places);
    free(comparison->spaces);
    memset(comparison, 0, sizeof(*comparison));
}
