/* Which sites a report lists, their figures, and how long the run was. */
#include "report/model.h"

static bool has_something(const struct site_totals *figures)
{
    return figures->totals.allocs || figures->failed || figures->totals.live_blocks;
}

static void fill_site(const struct report *report, struct report_site *site, uint32_t id)
{
    const struct catalog *catalog = report->input->catalog;
    const struct site_key *key = catalog_site(catalog, id);
    const struct family_info *family = &family_infos[key->family];
    site->catalog_id = id;
    site->key = key;
    site->api = catalog_string(catalog, key->api);
    site->stack = catalog_stack(catalog, key->stack);
    site->layer = family->layer;
    site->owned = family->owned;
    site->figures = ledger_site(report->input->ledger, id);
    site->title_frame = site->caller_frame = CATALOG_NONE;
}

static uint64_t later(uint64_t left, uint64_t right)
{
    return left > right ? left : right;
}

bool report_build_sites(struct report *report)
{
    uint32_t known = catalog_site_count(report->input->catalog);
    report->site_of_catalog = arena_alloc(report->arena, (known + 1) * sizeof *report->site_of_catalog);
    if (!report->site_of_catalog)
        return false;
    for (uint32_t id = 0; id < known; id++) {
        struct site_totals figures = ledger_site(report->input->ledger, id);
        report->site_of_catalog[id] = has_something(&figures) ? (uint32_t)report->site_count++ : REPORT_NONE;
    }
    report->sites = arena_alloc(report->arena, (report->site_count + 1) * sizeof *report->sites);
    if (!report->sites)
        return false;
    report->end_ns = report->input->process->duration_ns;
    for (uint32_t id = 0; id < known; id++) {
        if (report->site_of_catalog[id] == REPORT_NONE)
            continue;
        struct report_site *site = &report->sites[report->site_of_catalog[id]];
        fill_site(report, site, id);
        report->end_ns = later(report->end_ns, site->figures.last_time_ns);
    }
    report->worked_ns = growth_end(report->input->ledger, report->end_ns);
    return true;
}
