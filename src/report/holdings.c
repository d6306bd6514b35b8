/* Who holds how much of a whole: collecting and ordering. */
#include "base/sort.h"
#include "report/model.h"

static int compare_holdings(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct holding *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->blocks != b->blocks)
        return a->blocks > b->blocks ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

bool report_collect(struct report *report,
                    bool (*of_site)(const struct report_site *, const void *, struct holding *),
                    const void *arg, const struct holding **holdings, size_t *count)
{
    size_t wanted = 0;
    struct holding each;
    for (size_t i = 0; i < report->site_count; i++)
        wanted += of_site(&report->sites[i], arg, &each);
    struct holding *found = arena_alloc(report->arena, (wanted + 1) * sizeof *found);
    if (!found)
        return false;
    *count = 0;
    for (uint32_t i = 0; i < report->site_count; i++) {
        if (of_site(&report->sites[i], arg, &each)) {
            each.site = i;
            found[(*count)++] = each;
        }
    }
    *holdings = found;
    return sort_items(found, *count, sizeof *found, compare_holdings, NULL);
}
