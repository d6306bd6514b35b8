/* Comparing reports; see comparison.h. */
#include "comparison.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "place.h"
#include "run_length.h"

struct known {
    size_t index;
    char *key; /* a space's, which is the table's own */
    UT_hash_handle hh;
};

/* What a row is made from: which runs have it, and what its biggest site holds. */
struct making {
    bool before, after;
    uint64_t biggest;
};

struct matching {
    struct comparison *comparison;
    struct known *known, *known_spaces; /* one for each place, and each space, in one array */
    struct known *by_key, *space_by_key;
    struct making *spaces, *places;
    size_t rows; /* spaces and places that began, to hand out `figures` */
};

/* For what is worked out of one row. */
struct room {
    uint64_t *values;
    struct saved_figures *expected; /* of each run before */
};

struct difference difference(uint64_t before, uint64_t after)
{
    return (struct difference){after < before, after < before ? before - after : after - before};
}

/* Every figure, so that what is said of one is said of all. */
#define FIGURES(X)                                                                                           \
    X(live_bytes)                                                                                            \
    X(live_blocks)                                                                                           \
    X(peak_bytes)                                                                                            \
    X(peak_blocks)                                                                                           \
    X(allocs)                                                                                                \
    X(frees)                                                                                                 \
    X(allocated_bytes)                                                                                       \
    X(leaked_bytes)

/* Stops at the largest figure: a report may say anything. */
static void add_figure(uint64_t *sum, uint64_t figure)
{
    if (__builtin_add_overflow(*sum, figure, sum) || *sum > INT64_MAX)
        *sum = INT64_MAX;
}

static void add(struct saved_figures *sum, const struct saved_figures *figures)
{
#define ADD(name) add_figure(&sum->name, figures->name);
    FIGURES(ADD)
#undef ADD
    add_figure(&sum->growth_per_second, figures->growth_per_second);
    add_figure(&sum->own_peak_bytes, figures->own_peak_bytes);
    if (figures->last_time_ns > sum->last_time_ns)
        sum->last_time_ns = figures->last_time_ns;
}

/* Growth is left out: it is measured in time, which no two runs have the same of. */
static bool equal(const struct saved_figures *a, const struct saved_figures *b)
{
#define AND_EQUAL(name) &&a->name == b->name
    return true FIGURES(AND_EQUAL);
#undef AND_EQUAL
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The middle one of a figure in several runs, and whether `after` is within their spread. `values` is room
 * for them. */
static bool spread(uint64_t *values, size_t count, uint64_t after, uint64_t *middle)
{
    if (count == 0) {
        *middle = 0;
        return after == 0;
    }
    qsort(values, count, sizeof(*values), by_value);
    uint64_t low = values[0], high = values[count - 1], width = high - low;
    *middle = values[count / 2];
    return after + width >= low && (after <= high || after - high <= width);
}

/* Fills in the middle of each figure; whether those of `after` are within all spreads, but for growth. */
static bool find_middle(const struct saved_figures *each, size_t count, const struct saved_figures *after,
                        uint64_t *values, struct saved_figures *middle)
{
    bool within = true;
#define SPREAD(name)                                                                                         \
    for (size_t i = 0; i < count; i++)                                                                       \
        values[i] = each[i].name;                                                                            \
    within &= spread(values, count, after->name, &middle->name);
    FIGURES(SPREAD)
    bool figures_are = within;
    SPREAD(growth_per_second)
    return figures_are;
#undef SPREAD
}

static void begin_row(struct matching *matching, struct compared *row)
{
    row->each = matching->comparison->figures + matching->comparison->before_count * matching->rows++;
}

/* The place with that key, made where it is new; takes the key. NULL when memory ran out. */
static struct compared *find_place(struct matching *matching, char *key)
{
    struct comparison *comparison = matching->comparison;
    struct known *known;
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
    begin_row(matching, &comparison->places[index]);
    return &comparison->places[index];
}

/* What makes one of several sites the one to show. */
static uint64_t weight(const struct saved_figures *figures)
{
    return figures->live_bytes > figures->peak_bytes ? figures->live_bytes : figures->peak_bytes;
}

/* Adds figures of run `run` of those before, or of the one after. */
static void add_run(const struct comparison *comparison, struct compared *row, struct making *making,
                    size_t run, const struct saved_figures *figures)
{
    bool is_after = run == comparison->before_count;
    add(is_after ? &row->after : &row->each[run], figures);
    making->before |= !is_after;
    making->after |= is_after;
}

static int add_sites(struct matching *matching, const struct saved_report *report,
                     const struct place_rules *rules, size_t run)
{
    struct comparison *comparison = matching->comparison;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct saved_site *site = &report->sites[i];
        char *key = place_key(report, site, rules);
        struct compared *place = key ? find_place(matching, key) : NULL;
        if (!place)
            return -1;
        struct making *making = &matching->places[place - comparison->places];
        bool first = run == comparison->before_count ? !making->after : !place->site;
        if (first || weight(&site->figures) > making->biggest) {
            place->site = site;
            making->biggest = weight(&site->figures);
        }
        place->layer = site->layer;
        place->space = site->space;
        place->device = site->device;
        place->suppressed |= site->suppressed;
        add_run(comparison, place, making, run, &site->figures);
    }
    return 0;
}

/* NULL when memory ran out. */
static struct compared *find_space(struct matching *matching, const struct saved_space *space)
{
    struct comparison *comparison = matching->comparison;
    struct known *known;
    char *key;
    if (asprintf(&key, "%d %s", space->device, space->space) < 0)
        return NULL;
    HASH_FIND_STR(matching->space_by_key, key, known);
    if (known) {
        free(key);
        return &comparison->spaces[known->index];
    }
    known = &matching->known_spaces[comparison->space_count];
    known->index = comparison->space_count;
    HASH_ADD_KEYPTR(hh, matching->space_by_key, key, strlen(key), known);
    if (!hash_added(known)) {
        free(key);
        return NULL;
    }
    known->key = key;
    struct compared *added = &comparison->spaces[comparison->space_count++];
    added->layer = "driver";
    added->space = space->space;
    added->device = space->device;
    begin_row(matching, added);
    return added;
}

static int add_spaces(struct matching *matching, const struct saved_report *report, size_t run)
{
    for (size_t i = 0; i < report->space_count; i++) {
        struct compared *space = find_space(matching, &report->spaces[i]);
        if (!space)
            return -1;
        struct making *making = &matching->spaces[space - matching->comparison->spaces];
        add_run(matching->comparison, space, making, run, &report->spaces[i].figures);
    }
    return 0;
}

/* Calls of a space are those of its places, and judged there. */
static struct saved_figures expect(const struct compared *row, const struct run_length *length,
                                   const struct saved_figures *before)
{
    if (row->site)
        return run_length_expect(length, before, &row->after);
    struct saved_figures expected = *before;
    if (length->ratio != 1) {
        expected.allocs = row->after.allocs;
        expected.frees = row->after.frees;
        expected.allocated_bytes = row->after.allocated_bytes;
    }
    return expected;
}

static void decide(struct comparison *comparison, struct compared *row, const struct making *making,
                   struct room *room)
{
    size_t count = row->each ? comparison->before_count : 0; /* it is, but clang-tidy cannot tell */
    find_middle(row->each, count, &row->after, room->values, &row->before);
    for (size_t i = 0; i < count; i++)
        room->expected[i] = expect(row, &comparison->lengths[i], &row->each[i]);
    bool within = find_middle(room->expected, count, &row->after, room->values, &row->expected);
    if (comparison->before_count > 1 && within)
        row->change = CHANGE_NONE;
    else if (!making->before)
        row->change = CHANGE_NEW;
    else if (!making->after)
        row->change = CHANGE_GONE;
    else
        row->change = equal(&row->expected, &row->after) ? CHANGE_NONE : CHANGE_CHANGED;
}

bool comparison_adds_up(const struct compared *place)
{
    return place->change == CHANGE_NONE && place->before.live_bytes != place->after.live_bytes &&
           place->expected.live_bytes != place->before.live_bytes;
}

/* How much a change of a place matters. */
static uint64_t magnitude(const struct compared *place)
{
    uint64_t live = difference(place->expected.live_bytes, place->after.live_bytes).amount;
    uint64_t peak = difference(place->expected.peak_bytes, place->after.peak_bytes).amount;
    return live > peak ? live : peak;
}

static int by_magnitude(const void *left, const void *right)
{
    const struct compared *a = left, *b = right;
    uint64_t x = magnitude(a), y = magnitude(b);
    if (x == y) {
        x = difference(a->expected.allocs, a->after.allocs).amount;
        y = difference(b->expected.allocs, b->after.allocs).amount;
    }
    if (x == y) { /* of those that add up */
        x = difference(a->before.live_bytes, a->after.live_bytes).amount;
        y = difference(b->before.live_bytes, b->after.live_bytes).amount;
    }
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->key, b->key);
}

static void decide_all(struct matching *matching, struct room *room)
{
    struct comparison *comparison = matching->comparison;
    for (size_t i = 0; i < comparison->before_count; i++)
        run_length_by_calls(&comparison->lengths[i], comparison->places, comparison->place_count, i);
    comparison->same = true;
    for (size_t i = 0; i < comparison->space_count; i++) {
        decide(comparison, &comparison->spaces[i], &matching->spaces[i], room);
        comparison->same &= comparison->spaces[i].change == CHANGE_NONE;
    }
    for (size_t i = 0; i < comparison->place_count; i++) {
        decide(comparison, &comparison->places[i], &matching->places[i], room);
        comparison->counts[comparison->places[i].change]++;
        comparison->adding_up += comparison_adds_up(&comparison->places[i]);
    }
    comparison->same &= comparison->counts[CHANGE_NONE] == comparison->place_count;
    if (comparison->place_count > 0)
        qsort(comparison->places, comparison->place_count, sizeof(*comparison->places), by_magnitude);
}

static void unify_names(struct saved_report *before, size_t before_count, struct saved_report *after)
{
    for (size_t i = 1; i < before_count; i++)
        place_unify_names(&before[0], &before[i]);
    if (before_count > 0)
        place_unify_names(&before[0], after);
}

static int match_all(struct matching *matching, struct saved_report *before, struct saved_report *after)
{
    size_t count = matching->comparison->before_count;
    struct place_rules rules = place_rules(after);
    unify_names(before, count, after);
    for (size_t i = 0; i < count; i++)
        rules = place_rules_common(rules, place_rules(&before[i]));
    for (size_t i = 0; i <= count; i++) {
        const struct saved_report *report = i < count ? &before[i] : after;
        if (add_spaces(matching, report, i) != 0 || add_sites(matching, report, &rules, i) != 0)
            return -1;
    }
    return 0;
}

int comparison_make(struct comparison *comparison, struct saved_report *before, size_t before_count,
                    struct saved_report *after, double length)
{
    size_t sites = after->site_count + 1, spaces = after->space_count + 1;
    struct matching matching = {.comparison = comparison};
    for (size_t i = 0; i < before_count; i++) {
        sites += before[i].site_count;
        spaces += before[i].space_count;
    }
    *comparison = (struct comparison){.before_count = before_count};
    comparison->spaces = calloc(spaces, sizeof(*comparison->spaces));
    comparison->places = calloc(sites, sizeof(*comparison->places));
    comparison->figures = calloc((spaces + sites) * (before_count + 1), sizeof(*comparison->figures));
    matching.known = calloc(sites, sizeof(*matching.known));
    matching.known_spaces = calloc(spaces, sizeof(*matching.known_spaces));
    matching.spaces = calloc(spaces, sizeof(*matching.spaces));
    matching.places = calloc(sites, sizeof(*matching.places));
    comparison->lengths = calloc(before_count + 1, sizeof(*comparison->lengths));
    struct room room = {.values = calloc(before_count + 1, sizeof(*room.values)),
                        .expected = calloc(before_count + 1, sizeof(*room.expected))};
    int result = -1;
    if (comparison->spaces && comparison->places && comparison->figures && matching.known &&
        matching.known_spaces && comparison->lengths && matching.spaces && matching.places && room.values &&
        room.expected)
        result = match_all(&matching, before, after);
    for (size_t i = 0; result == 0 && i < before_count; i++)
        comparison->lengths[i] = run_length_of(&before[i], after, length);
    if (result == 0)
        decide_all(&matching, &room);
    else
        comparison_release(comparison);
    HASH_CLEAR(hh, matching.by_key);
    HASH_CLEAR(hh, matching.space_by_key);
    for (size_t i = 0; matching.known_spaces && i < spaces; i++)
        free(matching.known_spaces[i].key);
    free(matching.known);
    free(matching.known_spaces);
    free(matching.spaces);
    free(matching.places);
    free(room.values);
    free(room.expected);
    return result;
}

void comparison_release(struct comparison *comparison)
{
    for (size_t i = 0; comparison->places && i < comparison->place_count; i++)
        free(comparison->places[i].key);
    free(comparison->places);
    free(comparison->spaces);
    free(comparison->figures);
    free(comparison->lengths);
    memset(comparison, 0, sizeof(*comparison));
}
