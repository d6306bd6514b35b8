/*
 * What a peak would have been without some lines of code: without each of those that held most of it, and
 * which would have to go for it to be lower by so much. To take away what held the peak is not enough, since
 * another moment may be nearly as high; so the ledger is asked what is left, and more goes until it is little
 * enough.
 *
 * Of many ways the answer is one: a single line where one will do, the smallest that does; else the biggest
 * lines first, and none of them that can be spared.
 */
#include <string.h>

#include "base/sort.h"
#include "report/model.h"

#define LINES_MAX 32 /* of one answer */

static const unsigned percents[PEAK_FALL_COUNT] = {
#define AS_ROW(percent) percent,
    PEAK_FALLS(AS_ROW)
#undef AS_ROW
};

struct asking {
    const struct report *report;
    const struct peak *peak;
    bool *without;             /* by catalog id */
    uint64_t *bytes;           /* by catalog id, at the moment of the last answer */
    struct fall_line *holders; /* of that moment, most bytes first */
    size_t holder_count;
    uint32_t *place; /* by number of a line: its index in `holders` plus one, or 0 */
};

static void set_without(struct asking *asking, uint32_t line, bool without)
{
    const struct report *report = asking->report;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        if (site->line == line && report_is_in(site, asking->peak->space))
            asking->without[site->catalog_id] = without;
    }
}

static struct peak_without ask(struct asking *asking)
{
    return ledger_peak_without(asking->report->input->ledger, asking->peak->space, asking->without,
                               asking->bytes);
}

static int compare_holders(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct fall_line *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Lines that held anything at the moment of the last answer and are not away. */
static bool find_holders(struct asking *asking)
{
    const struct report *report = asking->report;
    memset(asking->place, 0, (report->line_count + 1) * sizeof *asking->place);
    asking->holder_count = 0;
    for (uint32_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        uint64_t bytes = asking->bytes[site->catalog_id];
        if (bytes == 0 || asking->without[site->catalog_id])
            continue;
        uint32_t *place = &asking->place[site->line];
        if (*place == 0) {
            *place = (uint32_t)++asking->holder_count;
            asking->holders[*place - 1] = (struct fall_line){.line = site->line, .site = i};
        }
        struct fall_line *holder = &asking->holders[*place - 1];
        if (bytes > asking->bytes[report->sites[holder->site].catalog_id])
            holder->site = i;
        holder->bytes += bytes;
    }
    return sort_items(asking->holders, asking->holder_count, sizeof *asking->holders, compare_holders, NULL);
}

static void take(struct asking *asking, struct peak_fall *fall, struct fall_line *lines,
                 const struct fall_line *line)
{
    lines[fall->line_count++] = *line;
    set_without(asking, line->line, true);
}

/* So many of the moment's holders that what they held makes the difference: the biggest first, and the last
 * of them no bigger than it has to be. */
static void take_away(struct asking *asking, struct peak_fall *fall, struct fall_line *lines, uint64_t bytes)
{
    const struct fall_line *holders = asking->holders;
    for (size_t i = 0; i < asking->holder_count && fall->line_count < LINES_MAX; i++) {
        if (holders[i].bytes < bytes) {
            take(asking, fall, lines, &holders[i]);
            bytes -= holders[i].bytes;
            continue;
        }
        while (i + 1 < asking->holder_count && holders[i + 1].bytes >= bytes)
            i++;
        take(asking, fall, lines, &holders[i]);
        return;
    }
}

static void spare_what_can_be(struct asking *asking, struct peak_fall *fall, struct fall_line *lines)
{
    size_t kept = 0;
    for (size_t i = 0; i < fall->line_count; i++) {
        set_without(asking, lines[i].line, false);
        struct peak_without then = ask(asking);
        if (then.bytes <= fall->target_bytes) {
            fall->then = then;
            continue;
        }
        set_without(asking, lines[i].line, true);
        lines[kept++] = lines[i];
    }
    fall->line_count = kept;
}

static bool is_enough(const struct peak_fall *fall)
{
    return fall->then.bytes <= fall->target_bytes;
}

static bool find_several(struct asking *asking, struct peak_fall *fall, struct fall_line *lines)
{
    fall->then = ask(asking);
    while (!is_enough(fall) && fall->then.exact && fall->line_count < LINES_MAX) {
        if (!find_holders(asking))
            return false;
        size_t taken = fall->line_count;
        take_away(asking, fall, lines, fall->then.bytes - fall->target_bytes);
        fall->then = ask(asking);
        if (fall->line_count == taken)
            break; /* nobody holds what is said to be held: a recording that contradicts itself */
    }
    fall->enough = is_enough(fall);
    if (fall->enough && fall->line_count > 1)
        spare_what_can_be(asking, fall, lines);
    for (size_t i = 0; i < fall->line_count; i++)
        set_without(asking, lines[i].line, false);
    return true;
}

static bool find_one(const struct peak *peak, struct peak_fall *fall, struct fall_line *lines)
{
    for (size_t i = peak->without_count; i-- > 0;) {
        const struct source_line *line = &peak->lines.lines[i];
        if (peak->without[i].bytes > fall->target_bytes)
            continue;
        lines[0] = (struct fall_line){.line = line->line, .site = line->site, .bytes = line->bytes};
        fall->line_count = 1;
        fall->then = peak->without[i];
        fall->enough = true;
        return true;
    }
    return false;
}

static bool ask_for_each_line(struct asking *asking, struct peak *peak)
{
    size_t count = peak->lines.count < PEAK_LINES_ASKED ? peak->lines.count : PEAK_LINES_ASKED;
    struct peak_without *without = arena_alloc(asking->report->arena, (count + 1) * sizeof *without);
    if (!without)
        return false;
    for (size_t i = 0; i < count; i++) {
        set_without(asking, peak->lines.lines[i].line, true);
        without[i] = ask(asking);
        set_without(asking, peak->lines.lines[i].line, false);
    }
    peak->without = without;
    peak->without_count = count;
    return true;
}

static bool find_falls(struct asking *asking, struct peak *peak)
{
    if (!ask_for_each_line(asking, peak))
        return false;
    for (size_t i = 0; i < PEAK_FALL_COUNT; i++) {
        struct peak_fall *fall = &peak->falls[i];
        struct fall_line *lines = arena_alloc(asking->report->arena, LINES_MAX * sizeof *lines);
        uint64_t bytes = peak->space->totals.peak_bytes;
        *fall = (struct peak_fall){.percent = percents[i], .lines = lines};
        fall->target_bytes = bytes - bytes / 100 * percents[i] - bytes % 100 * percents[i] / 100;
        if (!lines || (!find_one(peak, fall, lines) && !find_several(asking, fall, lines)))
            return false;
    }
    return true;
}

bool report_find_falls(struct report *report, struct peak *peak)
{
    size_t known = ledger_site_limit(report->input->ledger) + 1;
    size_t without_bytes = known * sizeof(bool), byte_bytes = known * sizeof(uint64_t);
    size_t holder_bytes = (report->site_count + 1) * sizeof(struct fall_line);
    size_t place_bytes = ((size_t)report->line_count + 1) * sizeof(uint32_t);
    struct asking asking = {.report = report,
                            .peak = peak,
                            .without = pages_alloc(without_bytes),
                            .bytes = pages_alloc(byte_bytes),
                            .holders = pages_alloc(holder_bytes),
                            .place = pages_alloc(place_bytes)};
    bool found =
        asking.without && asking.bytes && asking.holders && asking.place && find_falls(&asking, peak);
    pages_free(asking.without, without_bytes);
    pages_free(asking.bytes, byte_bytes);
    pages_free(asking.holders, holder_bytes);
    pages_free(asking.place, place_bytes);
    return found;
}
