/*
 * The timeline as JSON. A moment is [time, bytes, site, change, site, change, …]: what each site holds more
 * or less than at the moment before. Sites that hold little at a moment are only in its total; how many are
 * named depends on how much room all moments together take.
 */
#include <stdlib.h>
#include <string.h>

#include "report/page/page_parts.h"

#define CHANGES_MAX 150000 /* that all moments together list: about 2.5 MiB of JSON */

/* Goes through one space's moments: what was last said of each site. */
struct telling {
    struct page *page;
    struct json *json; /* NULL: only count */
    uint64_t changes;
    uint32_t most;     /* sites named at a moment */
    uint64_t *said;    /* bytes, by site of the report */
    uint64_t *seen;    /* the number of the latest moment that named it */
    uint32_t *current; /* sites that hold something by what was said */
    uint32_t current_count;
    uint64_t number;
};

static void say_change(struct telling *telling, uint32_t site, uint64_t bytes)
{
    telling->changes++;
    if (telling->json) {
        emit_u64(telling->json, NULL, site);
        emit_i64(telling->json, NULL, (int64_t)(bytes - telling->said[site]));
    }
    telling->said[site] = bytes;
}

/* What held memory at the moment before and is not named now holds nothing, or too little to be told. */
static void say_ends(struct telling *telling)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < telling->current_count; i++) {
        uint32_t site = telling->current[i];
        if (telling->seen[site] == telling->number)
            telling->current[kept++] = site;
        else
            say_change(telling, site, 0);
    }
    telling->current_count = kept;
}

static void say_shares(struct telling *telling, const struct moment *moment)
{
    const struct report *report = telling->page->report;
    uint32_t named = 0;
    for (uint32_t i = 0; i < moment->count && named < telling->most; i++) {
        uint32_t site = report->site_of_catalog[moment->shares[i].site];
        if (site == REPORT_NONE || !telling->page->chosen[site])
            continue;
        named++;
        if (telling->said[site] == 0)
            telling->current[telling->current_count++] = site;
        telling->seen[site] = telling->number;
        if (telling->said[site] != moment->shares[i].bytes)
            say_change(telling, site, moment->shares[i].bytes);
    }
}

static void say_moment(struct telling *telling, const struct moment *moment)
{
    telling->number++;
    if (telling->json) {
        emit_break(telling->json);
        emit_open(telling->json, NULL, '[');
        emit_u64(telling->json, NULL, moment->time_ns);
        emit_u64(telling->json, NULL, moment->bytes);
    }
    say_shares(telling, moment);
    say_ends(telling);
    if (telling->json)
        emit_close(telling->json, ']');
}

static void say_space(struct telling *telling, const struct timeline_space *space)
{
    size_t sites = telling->page->report->site_count;
    memset(telling->said, 0, sites * sizeof(*telling->said));
    memset(telling->seen, 0, sites * sizeof(*telling->seen));
    telling->current_count = 0;
    telling->number = 0;
    for (uint32_t i = 0; i < TIMELINE_CELLS; i++) {
        const struct stretch *stretch = &space->stretches[i];
        if (stretch->fullest)
            say_moment(telling, stretch->fullest);
        if (stretch->last && stretch->last != stretch->fullest)
            say_moment(telling, stretch->last);
    }
}

static void put_least(struct json *json, const struct timeline_space *space)
{
    emit_open(json, "least", '['); /* stretch, bytes, stretch, bytes, … */
    for (uint32_t i = 0; i < TIMELINE_CELLS; i++) {
        if (!space->stretches[i].fullest)
            continue;
        emit_u64(json, NULL, i);
        emit_u64(json, NULL, space->stretches[i].least_bytes);
    }
    emit_close(json, ']');
}

static void put_space(struct telling *telling, const struct timeline_space *space)
{
    struct json *json = telling->json;
    uint32_t group = page_group_of(telling->page, space->layer, space->kind, space->device);
    if (group == REPORT_NONE)
        return;
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_u64(json, "group", group);
    emit_open(json, "moments", '[');
    say_space(telling, space);
    emit_close(json, ']');
    put_least(json, space);
    emit_close(json, '}');
}

static const struct named_phase *phase_numbered(const struct report *report, uint32_t number)
{
    for (size_t i = 0; i < report->phase_count; i++)
        if (report->phases[i].number == number)
            return &report->phases[i];
    return NULL;
}

static bool is_open_in(const struct timeline_phase *phase, uint32_t cell)
{
    return phase->cells[cell / 64] >> cell % 64 & 1;
}

/* First stretch, how many, first, how many, … */
static void put_phase(struct json *json, const struct report *report, const struct timeline_phase *phase)
{
    const struct named_phase *named = phase_numbered(report, phase->number);
    if (!named)
        return;
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_u64(json, "phase", (uint64_t)(named - report->phases));
    emit_open(json, "runs", '[');
    for (uint32_t cell = 0; cell < TIMELINE_CELLS;) {
        uint32_t end = cell;
        while (end < TIMELINE_CELLS && is_open_in(phase, end))
            end++;
        if (end > cell) {
            emit_u64(json, NULL, cell);
            emit_u64(json, NULL, end - cell);
        }
        cell = end + 1;
    }
    emit_close(json, ']');
    emit_close(json, '}');
}

static void put_spaces(struct page *page, struct telling *telling)
{
    const struct timeline_space *space;
    telling->most = TIMELINE_SITES;
    for (;; telling->most /= 2) {
        telling->changes = 0;
        for (uint32_t i = 0; (space = timeline_space(page->timeline, i)); i++)
            say_space(telling, space);
        if (telling->changes <= CHANGES_MAX || telling->most <= 8)
            break;
    }
    telling->json = &page->json;
    emit_u64(&page->json, "sites_of_a_moment", telling->most);
    emit_open(&page->json, "spaces", '[');
    for (uint32_t i = 0; (space = timeline_space(page->timeline, i)); i++)
        put_space(telling, space);
    emit_close(&page->json, ']');
}

void page_put_timeline(struct page *page)
{
    size_t sites = page->report->site_count + 1;
    struct telling telling = {
        .page = page,
        .said = arena_alloc(&page->arena, sites * sizeof(*telling.said)),
        .seen = arena_alloc(&page->arena, sites * sizeof(*telling.seen)),
        .current = arena_alloc(&page->arena, sites * sizeof(*telling.current)),
    };
    struct json *json = &page->json;
    const struct timeline_phase *phase;
    emit_open(json, "timeline", '{');
    emit_u64(json, "origin_ns", timeline_origin_ns(page->timeline));
    emit_u64(json, "width_ns", timeline_width_ns(page->timeline));
    emit_u64(json, "cells", timeline_cell_count(page->timeline));
    emit_u64(json, "since_ns", page->since_ns);
    emit_bool(json, "incomplete", timeline_is_incomplete(page->timeline));
    if (telling.said && telling.seen && telling.current)
        put_spaces(page, &telling);
    emit_open(json, "phases", '[');
    for (uint32_t i = 0; (phase = timeline_phase(page->timeline, i)) && i < PAGE_ROWS; i++)
        put_phase(json, page->report, phase);
    emit_close(json, ']');
    emit_close(json, '}');
}
