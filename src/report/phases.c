/* The phases that the program named: in the order and nesting in which they first began, each with the sites
 * that rose most in it. */
#include "base/sort.h"
#include "report/model.h"
#include "report/words.h"

static int compare_sites(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct phase_site *a = left, *b = right;
    if (a->phase != b->phase)
        return a->phase < b->phase ? -1 : 1;
    if (a->rise_bytes != b->rise_bytes)
        return a->rise_bytes > b->rise_bytes ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

/* All pairs, with sites by their index in the report, by phase and most bytes first. */
static bool collect_sites(struct report *report, struct phase_site **sites, size_t *count)
{
    const struct ledger *ledger = report->input->ledger;
    size_t known = ledger_phase_site_count(ledger);
    *sites = arena_alloc(report->arena, (known + 1) * sizeof **sites);
    *count = 0;
    for (size_t i = 0; *sites && i < known; i++) {
        struct phase_site site = ledger_phase_site(ledger, i);
        site.site = report->site_of_catalog[site.site];
        if (site.site != REPORT_NONE)
            (*sites)[(*count)++] = site;
    }
    return *sites && sort_items(*sites, *count, sizeof **sites, compare_sites, NULL);
}

static unsigned depth_of(const struct ledger *ledger, const struct program_phase *phase)
{
    unsigned depth = 0;
    uint32_t parent = phase->parent;
    for (; parent != PHASE_NONE && depth < PHASE_DEPTH_MAX; depth++)
        parent = ledger_phase(ledger, parent).parent;
    return depth;
}

/* A phase comes right behind the one it is in; so the place is looked for among those that are there. */
static size_t place_of(const struct report *report, const struct named_phase *phase)
{
    size_t at = report->phase_count;
    if (phase->is.parent == PHASE_NONE)
        return at;
    for (size_t i = 0; i < report->phase_count; i++) {
        if (report->phases[i].number != phase->is.parent)
            continue;
        for (at = i + 1; at < report->phase_count && report->phases[at].depth > report->phases[i].depth;)
            at++;
        break;
    }
    return at;
}

static void insert(struct report *report, const struct named_phase *phase)
{
    size_t at = place_of(report, phase);
    for (size_t i = report->phase_count; i > at; i--)
        report->phases[i] = report->phases[i - 1];
    report->phases[at] = *phase;
    report->phase_count++;
}

bool report_build_phases(struct report *report)
{
    const struct ledger *ledger = report->input->ledger;
    size_t known = ledger_phase_count(ledger), count, at = 0;
    struct phase_site *sites;
    report->phases = arena_alloc(report->arena, (known + 1) * sizeof *report->phases);
    if (!report->phases || !collect_sites(report, &sites, &count))
        return false;
    for (uint32_t i = 0; i < known; i++) {
        struct named_phase phase = {.number = i, .is = ledger_phase(ledger, i), .sites = sites + at};
        phase.name = catalog_string(report->input->catalog, phase.is.name);
        phase.depth = depth_of(ledger, &phase.is);
        for (; at < count && sites[at].phase == i; at++)
            phase.site_count++;
        insert(report, &phase);
    }
    return true;
}

const char *report_phase_name(const struct report *report, uint32_t number)
{
    const char *name =
        number < ledger_phase_count(report->input->ledger)
            ? catalog_string(report->input->catalog, ledger_phase(report->input->ledger, number).name)
            : NULL;
    return name && name[0] ? name : "(no name)";
}

void words_phases(struct words *words, const struct report *report, const uint32_t *phases, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        words_add(words, "%s%s", i ? " / " : "", report_phase_name(report, phases[i]));
}
