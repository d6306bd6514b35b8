/* What keeps free memory in its segments, by line of code: a layout has it by site, most bytes first. */
#include "report/model.h"

static size_t line_of(const struct report *report, const struct pinner_line *lines, size_t count,
                      uint32_t site)
{
    size_t at = 0;
    while (at < count && report->sites[lines[at].site].line != report->sites[site].line)
        at++;
    return at;
}

static void move_up(struct pinner_line *lines, size_t at)
{
    for (; at > 0 && lines[at].stranded_bytes > lines[at - 1].stranded_bytes; at--) {
        struct pinner_line line = lines[at];
        lines[at] = lines[at - 1];
        lines[at - 1] = line;
    }
}

size_t report_pinner_lines(const struct report *report, const struct layout *layout,
                           struct pinner_line *lines, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < layout->pinner_count; i++) {
        const struct layout_pinner *pinner = &layout->pinners[i];
        uint32_t site = report->site_of_catalog[pinner->site];
        if (site == REPORT_NONE)
            continue;
        size_t at = line_of(report, lines, count, site);
        if (at == max)
            continue;
        if (at == count)
            lines[count++] = (struct pinner_line){.site = site};
        lines[at].stranded_bytes += pinner->stranded_bytes;
        lines[at].blocks += pinner->blocks;
        move_up(lines, at);
    }
    return count;
}
