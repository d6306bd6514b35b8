/* The page's lists as JSON: what leaks, what made each peak, what grows, out-of-memory moments and phases. */
#include <stdio.h>

#include "report/json_parts.h"
#include "report/page/page_parts.h"
#include "report/text.h"

#define PHASES_MAX_SHOWN 200
#define SOURCES_MAX      60
#define PEAK_LINES       PEAK_LINES_ASKED
#define FALL_LINES       4
#define OOM_LINES        10

static void put_line(struct json *json, const struct source_line *line)
{
    emit_open(json, NULL, '{');
    json_line_figures(json, line);
    emit_u64(json, "allocs", line->allocs);
    emit_u64(json, "frees", line->frees);
    emit_known(json, "oldest_ns", line->living.oldest_ns != UINT64_MAX, line->living.oldest_ns);
    emit_known(json, "newest_ns", line->living.oldest_ns != UINT64_MAX, line->living.newest_ns);
    emit_string(json, "reason", reason_names[line->reason]);
    emit_close(json, '}');
}

static void put_lines(struct json *json, const char *key, const struct line_list *list, size_t most)
{
    emit_open(json, key, '[');
    for (size_t i = 0; i < list->count && i < most; i++) {
        emit_break(json);
        put_line(json, &list->lines[i]);
    }
    emit_close(json, ']');
}

void page_put_leaks(struct page *page)
{
    const struct leaks *leaks = &page->report->leaks;
    struct json *json = &page->json;
    emit_open(json, "leaks", '{');
    emit_u64(json, "live_bytes", leaks->live_bytes);
    emit_u64(json, "live_blocks", leaks->live_blocks);
    emit_u64(json, "suppressed_bytes", leaks->suppressed_bytes);
    emit_u64(json, "suppressed_blocks", leaks->suppressed_blocks);
    emit_u64(json, "line_count", leaks->lines.count);
    put_lines(json, "lines", &leaks->lines, PAGE_ROWS);
    emit_u64(json, "framework_bytes", leaks->framework_bytes);
    emit_u64(json, "framework_blocks", leaks->framework_blocks);
    emit_u64(json, "framework_line_count", leaks->framework_lines.count);
    put_lines(json, "framework_lines", &leaks->framework_lines, PAGE_ROWS);
    emit_close(json, '}');
}

/* What the peak would have been without a line, or several. */
static void put_without(struct json *json, const struct peak_without *without)
{
    emit_open(json, "without", '{');
    emit_u64(json, "bytes", without->bytes);
    emit_u64(json, "time_ns", without->time_ns);
    emit_bool(json, "exact", without->exact);
    emit_close(json, '}');
}

static void put_peak_lines(struct json *json, const struct peak *peak)
{
    emit_open(json, "lines", '[');
    for (size_t i = 0; i < peak->lines.count && i < PEAK_LINES; i++) {
        emit_break(json);
        emit_open(json, NULL, '{');
        json_line_figures(json, &peak->lines.lines[i]);
        if (i < peak->without_count)
            put_without(json, &peak->without[i]);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void put_falls(struct json *json, const struct peak *peak)
{
    emit_open(json, "falls", '[');
    for (size_t i = 0; i < PEAK_FALL_COUNT && peak->lines.count > 1; i++) {
        const struct peak_fall *fall = &peak->falls[i];
        emit_open(json, NULL, '{');
        emit_u64(json, "percent", fall->percent);
        emit_u64(json, "line_count", fall->line_count);
        emit_open(json, "sites", '[');
        for (size_t k = 0; k < fall->line_count && k < FALL_LINES; k++)
            emit_u64(json, NULL, fall->lines[k].site);
        emit_close(json, ']');
        put_without(json, &fall->then);
        emit_bool(json, "enough", fall->enough);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void put_peak(struct page *page, const char *key, const struct peak *peak)
{
    struct json *json = &page->json;
    const struct ledger_space *space = peak->space;
    uint32_t group = page_group_of(page, space->layer, space->kind, space->device);
    emit_break(json);
    emit_open(json, key, '{');
    emit_known(json, "group", group != REPORT_NONE, group);
    emit_u64(json, "bytes", space->totals.peak_bytes);
    emit_u64(json, "time_ns", space->totals.peak_time_ns);
    emit_open(json, "phases", '[');
    for (uint32_t k = 0; k < space->peak_phase_count; k++)
        emit_string(json, NULL, report_phase_name(page->report, space->peak_phases[k]));
    emit_close(json, ']');
    emit_u64(json, "line_count", peak->lines.count);
    put_peak_lines(json, peak);
    put_falls(json, peak);
    emit_close(json, '}');
}

static void put_peak_list(struct page *page, const struct peak *peaks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_peak(page, NULL, &peaks[i]);
}

void page_put_peaks(struct page *page)
{
    const struct report *report = page->report;
    emit_open(&page->json, "peaks", '[');
    put_peak_list(page, report->peaks, report->peak_count);
    put_peak_list(page, report->framework_peaks, report->framework_peak_count);
    emit_close(&page->json, ']');
    if (report->whole_peak)
        put_peak(page, "whole_peak", report->whole_peak);
    else
        emit_null(&page->json, "whole_peak");
}

static void put_growing(struct json *json, const struct growing *row)
{
    emit_open(json, NULL, '{');
    emit_u64(json, "site", row->site);
    emit_u64(json, "site_count", row->site_count);
    emit_thousandths(json, "bytes_per_second", (uint64_t)(row->growth.bytes_per_second * 1000 + 0.5));
    emit_known(json, "bytes_per_step", row->steps > 0,
               row->steps > 0 ? row->growth.risen_bytes / row->steps : 0);
    emit_thousandths(json, "confidence", (uint64_t)(row->growth.confidence * 1000 + 0.5));
    emit_known(json, "exhausted_in_ns", row->exhausted_known, row->exhausted_ns);
    emit_u64(json, "since_ns", row->growth.since_ns);
    emit_u64(json, "risen_bytes", row->growth.risen_bytes);
    emit_close(json, '}');
}

/* Lines of code, and the rate of each site that grows by itself. */
void page_put_growth(struct page *page)
{
    const struct report *report = page->report;
    struct json *json = &page->json;
    emit_open(json, "growth", '[');
    for (size_t i = 0; i < report->growing_line_count && i < PAGE_ROWS; i++) {
        emit_break(json);
        put_growing(json, &report->growing_lines[i]);
    }
    emit_close(json, ']');
    emit_open(json, "growing_sites", '['); /* site, bytes per second, site, … */
    for (size_t i = 0; i < report->growing_count; i++) {
        if (!page->chosen[report->growing[i].site])
            continue;
        emit_u64(json, NULL, report->growing[i].site);
        emit_u64(json, NULL, (uint64_t)(report->growing[i].growth.bytes_per_second + 0.5));
    }
    emit_close(json, ']');
}

static void put_oom(struct page *page, const struct out_of_memory *row)
{
    struct json *json = &page->json;
    const struct report_site *site = &page->report->sites[row->site];
    emit_open(json, NULL, '{');
    emit_u64(json, "time_ns", row->oom->time_ns);
    emit_u64(json, "site", row->site);
    emit_u64(json, "group", page_group_of(page, site->layer, site->key->space, site->key->device));
    emit_string(json, "api", site->api);
    emit_u64(json, "requested_bytes", row->oom->requested_bytes);
    emit_known(json, "free_bytes", row->oom->total_bytes > 0, row->oom->free_bytes);
    emit_known(json, "total_bytes", row->oom->total_bytes > 0, row->oom->total_bytes);
    emit_u64(json, "live_bytes", row->oom->live_bytes);
    emit_u64(json, "releasable_bytes", row->releasable_bytes);
    emit_u64(json, "stranded_bytes", row->stranded_bytes);
    emit_known(json, "largest_request_bytes", row->largest_known, row->largest_bytes);
    emit_string(json, "cause", oom_cause_names[row->cause]);
    emit_string(json, "verdict", row->verdict);
    emit_string(json, "advice", row->advice);
    emit_string(json, "outcome", oom_outcome_names[row->outcome]);
    emit_known(json, "granted_time_ns", row->outcome == OOM_GRANTED, row->oom->granted_ns);
    put_lines(json, "lines", &row->lines, OOM_LINES);
    emit_close(json, '}');
}

void page_put_ooms(struct page *page)
{
    emit_open(&page->json, "ooms", '[');
    for (size_t i = 0; i < page->report->oom_count; i++) {
        emit_break(&page->json);
        put_oom(page, &page->report->ooms[i]);
    }
    emit_close(&page->json, ']');
}

static void put_phase(struct json *json, const struct named_phase *phase)
{
    enum { SITES = 3 };
    emit_open(json, NULL, '{');
    emit_string(json, "name", phase->name && phase->name[0] ? phase->name : "(no name)");
    emit_u64(json, "depth", phase->depth);
    json_phase_figures(json, &phase->is);
    emit_open(json, "sites", '[');
    for (size_t i = 0; i < phase->site_count && i < SITES; i++) {
        emit_open(json, NULL, '{');
        emit_u64(json, "site", phase->sites[i].site);
        emit_u64(json, "rise_bytes", phase->sites[i].rise_bytes);
        emit_close(json, '}');
    }
    emit_close(json, ']');
    emit_close(json, '}');
}

void page_put_phases(struct page *page)
{
    emit_open(&page->json, "phases", '[');
    for (size_t i = 0; i < page->report->phase_count && i < PHASES_MAX_SHOWN; i++) {
        emit_break(&page->json);
        put_phase(&page->json, &page->report->phases[i]);
    }
    emit_close(&page->json, ']');
}

static void mark_lines(const struct line_list *list, size_t most, bool *named)
{
    for (size_t i = 0; i < list->count && i < most; i++)
        named[list->lines[i].site] = true;
}

static void mark_pinners(const struct report *report, const struct layout *layouts, size_t count, bool *named)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < layouts[i].pinner_count; k++) {
            uint32_t site = report->site_of_catalog[layouts[i].pinners[k].site];
            if (site != REPORT_NONE) /* a damaged recording can name a site without figures */
                named[site] = true;
        }
}

static void mark_peaks(const struct peak *peaks, size_t count, bool *named)
{
    for (size_t i = 0; i < count; i++) {
        mark_lines(&peaks[i].lines, PEAK_LINES, named);
        for (size_t k = 0; k < PEAK_FALL_COUNT; k++)
            for (size_t n = 0; n < peaks[i].falls[k].line_count && n < FALL_LINES; n++)
                named[peaks[i].falls[k].lines[n].site] = true;
    }
}

void page_mark_listed(const struct page *page, bool *named)
{
    const struct report *report = page->report;
    mark_lines(&report->leaks.lines, PAGE_ROWS, named);
    mark_lines(&report->leaks.framework_lines, PAGE_ROWS, named);
    mark_peaks(report->peaks, report->peak_count, named);
    mark_peaks(report->framework_peaks, report->framework_peak_count, named);
    mark_peaks(report->whole_peak, report->whole_peak != NULL, named);
    for (size_t i = 0; i < report->growing_line_count && i < PAGE_ROWS; i++)
        named[report->growing_lines[i].site] = true;
    for (size_t i = 0; i < report->oom_count; i++) {
        named[report->ooms[i].site] = true;
        mark_lines(&report->ooms[i].lines, OOM_LINES, named);
    }
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        mark_pinners(report, row->layouts, row->layout_count, named);
        mark_pinners(report, row->peak_layouts, row->peak_layout_count, named);
    }
}

/* One site's, by its number in the report. */
static bool put_source(struct page *page, struct text *text, uint32_t site)
{
    const struct named_frame *title = page->report->sites[site].title;
    char number[16], line[160];
    if (!title || !source_line(text, title, line, sizeof(line)))
        return false;
    snprintf(number, sizeof(number), "%u", site);
    emit_string(&page->json, number, line);
    return true;
}

void page_put_sources(struct page *page)
{
    struct text text = {.report = page->report};
    bool *named = arena_alloc(&page->arena, page->report->site_count + 1);
    emit_open(&page->json, "sources", '{');
    if (named)
        page_mark_listed(page, named);
    size_t shown = 0;
    for (uint32_t i = 0; named && i < page->report->site_count && shown < SOURCES_MAX; i++)
        shown += named[i] && put_source(page, &text, i);
    emit_close(&page->json, '}');
}
