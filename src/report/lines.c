/*
 * Sites summed by their title: the same line of the reader's code reaches the driver by many ways (each layer
 * of a network its own), and what they ask is which of their lines holds the memory.
 */
#include "base/sort.h"
#include "report/model.h"

#define AS_NAME(symbol, name) [REASON_##symbol] = (name),
const char *const reason_names[REASON_COUNT] = {REASONS(AS_NAME)};
#undef AS_NAME

#define MANY_BLOCKS 8 /* fewer say nothing about a habit */

struct sum {
    struct source_line *lines;
    size_t count;
    uint32_t *place;   /* by number of the line: index + 1; 0: none yet */
    uint64_t *biggest; /* bytes of the line's biggest site */
};

static struct source_line *line_of(struct sum *sum, const struct report_site *site)
{
    uint32_t *place = &sum->place[site->line];
    if (*place == 0)
        *place = (uint32_t)++sum->count;
    return &sum->lines[*place - 1];
}

static void join_living(struct living *into, const struct living *more)
{
    if (more->smallest < into->smallest)
        into->smallest = more->smallest;
    if (more->largest > into->largest)
        into->largest = more->largest;
    if (more->oldest_ns < into->oldest_ns)
        into->oldest_ns = more->oldest_ns;
    if (more->newest_ns > into->newest_ns)
        into->newest_ns = more->newest_ns;
}

static void add_holding(struct report *report, struct sum *sum, const struct holding *holding)
{
    const struct report_site *site = &report->sites[holding->site];
    struct source_line *line = line_of(sum, site);
    uint64_t *biggest = &sum->biggest[line - sum->lines];
    if (line->site_count == 0)
        *line = (struct source_line){.line = site->line,
                                     .living = {.smallest = UINT64_MAX, .oldest_ns = UINT64_MAX},
                                     .reason = REASON_REST};
    if (site->grows)
        line->reason = REASON_GREW;
    if (line->site_count == 0 || holding->bytes > *biggest) {
        *biggest = holding->bytes;
        line->site = holding->site;
    }
    line->site_count++;
    line->bytes += holding->bytes;
    line->blocks += holding->blocks;
    line->allocs += site->figures.totals.allocs;
    line->frees += site->figures.totals.frees;
    if (site->figures.totals.live_blocks)
        join_living(&line->living, &site->living);
}

/* Every fact in this is exact; that it is a mistake is for the reader to say. */
bool report_adds_up(const struct report *report, uint64_t blocks, uint64_t frees, const struct living *living)
{
    return frees == 0 && blocks >= MANY_BLOCKS && report->worked_ns > 0 &&
           living->newest_ns > living->oldest_ns &&
           living->newest_ns - living->oldest_ns >= report->worked_ns / 2;
}

static enum reason find_reason(const struct report *report, const struct source_line *line, bool grows)
{
    if (grows)
        return REASON_GREW;
    if (report_adds_up(report, line->blocks, line->frees, &line->living))
        return REASON_ADDS_UP;
    if (line->frees == 0 && line->living.oldest_ns > report->worked_ns / 2)
        return REASON_LATE;
    return line->blocks >= MANY_BLOCKS ? REASON_MANY : REASON_REST;
}

static int compare_lines(const void *left, const void *right, const void *context)
{
    const bool *by_reason = context;
    const struct source_line *a = left, *b = right;
    if (*by_reason && a->reason != b->reason)
        return a->reason < b->reason ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

bool report_sum_lines(struct report *report, const struct holding *holdings, size_t count, bool by_reason,
                      struct line_list *list)
{
    size_t place_bytes = ((size_t)report->line_count + 1) * sizeof(uint32_t);
    size_t biggest_bytes = (count + 1) * sizeof(uint64_t);
    struct sum sum = {
        .lines = arena_alloc(report->arena, (count + 1) * sizeof *sum.lines),
        .place = pages_alloc(place_bytes),
        .biggest = pages_alloc(biggest_bytes),
    };
    bool done = sum.lines && sum.place && sum.biggest;
    if (done) {
        for (size_t i = 0; i < count; i++)
            add_holding(report, &sum, &holdings[i]);
        for (size_t i = 0; i < sum.count; i++)
            sum.lines[i].reason = find_reason(report, &sum.lines[i], sum.lines[i].reason == REASON_GREW);
        done = sort_items(sum.lines, sum.count, sizeof *sum.lines, compare_lines, &by_reason);
        *list = (struct line_list){.count = sum.count, .lines = sum.lines};
    }
    pages_free(sum.place, place_bytes);
    pages_free(sum.biggest, biggest_bytes);
    return done;
}
