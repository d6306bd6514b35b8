/* What each site's living blocks look like: their sizes, and since when they live. One pass over them all. */
#include "report/model.h"

static bool see_block(const struct block *block, void *arg)
{
    struct report *report = arg;
    if (block->site >= catalog_site_count(report->input->catalog))
        return true;
    uint32_t index = report->site_of_catalog[block->site];
    if (index == REPORT_NONE)
        return true;
    struct living *living = &report->sites[index].living;
    bool first =
        living->largest == 0 && living->newest_ns == 0 && living->smallest == 0 && living->oldest_ns == 0;
    if (first || block->size < living->smallest)
        living->smallest = block->size;
    if (first || block->born_ns < living->oldest_ns)
        living->oldest_ns = block->born_ns;
    if (block->size > living->largest)
        living->largest = block->size;
    if (block->born_ns > living->newest_ns)
        living->newest_ns = block->born_ns;
    return true;
}

bool report_build_living(struct report *report)
{
    ledger_each_block(report->input->ledger, see_block, report);
    return true;
}
