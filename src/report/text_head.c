/* The top of the text report: what ran, how it ended, out of memory if it was, and the headline figures. */
#include <string.h>

#include "report/text.h"

void text_head(struct text *text)
{
    static const char *const ends[] = {[PROCESS_EXITED] = "exited",
                                       [PROCESS_KILLED] = "killed or crashed",
                                       [PROCESS_RUNNING] = "still running"};
    const struct process_info *process = text->report->input->process;
    struct words words = {0};
    words_add(&words, "gpumemtrace report:");
    for (uint32_t i = 0; i < process->argument_count; i++)
        words_add(&words, " %s", i ? process->arguments[i] : base_name(process->arguments[i]));
    if (process->argument_count == 0)
        words_add(&words, " %s", process->exe ? process->exe : "a program without a name");
    text_line(text, &words);

    words_add(&words, "pid %u", process->pid);
    if (process->rank >= 0)
        words_add(&words, ", rank %d", process->rank);
    if (process->host && process->host[0])
        words_add(&words, " on %s", process->host);
    if (process->start_realtime_ns) {
        words_add(&words, ", started ");
        words_date(&words, process->start_realtime_ns, ' ');
        words_add(&words, " UTC");
    }
    words_add(&words, ", ran ");
    words_time(&words, process->duration_ns);
    words_add(&words, ", %s", ends[process->end]);
    text_line(text, &words);
}

/* One row of "label   text". */
enum { LABEL_COLUMN = 2, VALUE_COLUMN = 14 };

static void label(struct words *words, const char *name)
{
    words_add(words, "%*s%s", LABEL_COLUMN, "", name);
    words_column(words, VALUE_COLUMN);
}

static void say_figures(struct text *text, const struct out_of_memory *row)
{
    struct words words = {0};
    label(&words, "free then");
    if (row->oom->total_bytes) {
        words_size(&words, row->oom->free_bytes);
        words_add(&words, " of ");
        words_size(&words, row->oom->total_bytes);
    } else {
        words_add(&words, "unknown");
    }
    words_add(&words, "; this process held ");
    words_size(&words, row->oom->live_bytes);
    text_line(text, &words);
}

static void say_holders(struct text *text, const struct out_of_memory *row, size_t most)
{
    struct words words = {0};
    for (size_t i = 0; i < row->lines.count && i < most; i++) {
        const struct source_line *line = &row->lines.lines[i];
        label(&words, i == 0 ? "held by" : "");
        words_size(&words, line->bytes);
        words_column(&words, VALUE_COLUMN + 11);
        words_share(&words, line->bytes, row->oom->live_bytes);
        words_column(&words, VALUE_COLUMN + 18);
        text_title(text, &words, line->site);
        words_add(&words, ", ");
        words_count(&words, line->blocks, "block");
        text_line(text, &words);
    }
}

static void say_request(struct words *words, const struct report *report, const struct out_of_memory *row)
{
    const struct report_site *site = &report->sites[row->site];
    words_add(words, "%s asked for ", site->api ? site->api : "?");
    words_size(words, row->oom->requested_bytes);
    words_add(words, space_infos[site->key->space].per_device ? " on " : " of ");
    words_space(words, site->key->space, site->key->device);
    words_add(words, " at ");
    words_time(words, row->oom->time_ns);
}

static void say_oom(struct text *text, const struct out_of_memory *row, size_t holders)
{
    struct words words = {0};
    label(&words, "asked by");
    text_title(text, &words, row->site);
    text_line(text, &words);
    say_figures(text, row);
    text_wrap(text, "  verdict", VALUE_COLUMN, row->verdict);
    text_wrap(text, "  try", VALUE_COLUMN, row->advice);
    say_holders(text, row, holders);
    text_wrap(text, "  afterwards", VALUE_COLUMN,
              row->went_on ? "The program went on: later allocations succeeded."
                           : "No allocation succeeded after this one.");
}

void text_out_of_memory(struct text *text)
{
    const struct report *report = text->report;
    struct words words = {0};
    if (report->oom_count == 0)
        return;
    const struct out_of_memory *last = &report->ooms[report->oom_count - 1];
    text_line(text, &words);
    words_add(&words, "OUT OF MEMORY");
    if (report->oom_count > 1)
        words_add(&words, ", %llu times, the last", (unsigned long long)report->oom_count);
    words_add(&words, ": ");
    say_request(&words, report, last);
    text_line(text, &words);
    say_oom(text, last, 3);
}

void text_every_oom(struct text *text)
{
    struct words words = {0};
    if (text->report->oom_count < 2)
        return;
    text_line(text, &words);
    text_say(text, "Every out-of-memory moment");
    for (size_t i = 0; i < text->report->oom_count; i++) {
        words_add(&words, "%llu. ", (unsigned long long)i + 1);
        say_request(&words, text->report, &text->report->ooms[i]);
        text_line(text, &words);
        say_oom(text, &text->report->ooms[i], text->options.full ? SIZE_MAX : 3);
    }
}

/* Device memory first, the largest peak first; what is not ours last. */
static bool goes_before(const struct ledger_space *left, const struct ledger_space *right)
{
    static const int order[SPACE_COUNT] = {[SPACE_MANAGED] = 1, [SPACE_GRAPH] = 2,      [SPACE_PINNED] = 3,
                                           [SPACE_HOST] = 4,    [SPACE_REGISTERED] = 5, [SPACE_FOREIGN] = 6};
    if (order[left->kind] != order[right->kind])
        return order[left->kind] < order[right->kind];
    return left->totals.peak_bytes > right->totals.peak_bytes;
}

static const struct ledger_space *next_space(const struct report *report, const struct ledger_space *after)
{
    const struct ledger_space *next = NULL;
    for (size_t i = 0; i < report->space_count; i++) {
        const struct ledger_space *space = report->spaces[i];
        bool later = !after || goes_before(after, space) || (!goes_before(space, after) && space > after);
        bool sooner = !next || goes_before(space, next) || (!goes_before(next, space) && space < next);
        if (space->totals.peak_bytes && later && sooner)
            next = space;
    }
    return next;
}

enum { PEAK_COLUMN = 26, LIVE_COLUMN = 49, ALLOCS_COLUMN = 75 };

static void say_space(struct text *text, const struct ledger_space *space)
{
    const struct totals *totals = &space->totals;
    struct words words = {0};
    words_space(&words, space->kind, space->device);
    words_column(&words, PEAK_COLUMN);
    words_size(&words, totals->peak_bytes);
    words_add(&words, " at ");
    words_time(&words, totals->peak_time_ns);
    words_column(&words, LIVE_COLUMN);
    if (totals->live_blocks) {
        words_size(&words, totals->live_bytes);
        words_add(&words, " in ");
        words_count(&words, totals->live_blocks, "block");
    } else {
        words_add(&words, "nothing");
    }
    words_column(&words, ALLOCS_COLUMN);
    words_add(&words, "%llu, %llu freed", (unsigned long long)totals->allocs,
              (unsigned long long)totals->frees);
    text_line(text, &words);
    if (totals->teardown_frees) {
        words_column(&words, ALLOCS_COLUMN);
        words_add(&words, "%llu with their context", (unsigned long long)totals->teardown_frees);
        text_line(text, &words);
    }
}

void text_spaces(struct text *text, size_t most_rows)
{
    const struct report *report = text->report;
    const struct ledger_counters *counters = ledger_counters(report->input->ledger);
    struct words words = {0};
    text_line(text, &words);
    if (report->peak_count == 0) {
        text_say(text, "No GPU memory was allocated.");
    } else {
        words_column(&words, PEAK_COLUMN);
        words_add(&words, "Peak");
        words_column(&words, LIVE_COLUMN);
        words_add(&words, "Still allocated %s",
                  report->input->process->end == PROCESS_EXITED ? "at exit" : "");
        words_column(&words, ALLOCS_COLUMN);
        words_add(&words, "Allocations");
        text_line(text, &words);
    }
    size_t rows = 0;
    for (const struct ledger_space *space = NULL; (space = next_space(report, space));) {
        if (rows++ < most_rows)
            say_space(text, space);
    }
    if (rows > most_rows) {
        words_add(&words, "… and ");
        words_count(&words, rows - most_rows, "more row");
        words_add(&words, ", see --full");
        text_line(text, &words);
    }
    if (counters->failed_allocs) {
        words_count(&words, counters->failed_allocs, "allocation");
        if (report->oom_count == counters->failed_allocs)
            words_add(&words, " failed, for want of memory");
        else
            words_add(&words, " failed, %llu of them for want of memory",
                      (unsigned long long)report->oom_count);
        text_line(text, &words);
    }
}
