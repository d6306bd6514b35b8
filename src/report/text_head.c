/* The top of the text report: what ran, how it ended, and the headline figures. */
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

/* The driver's: a framework's own refusal follows from one of these. */
static uint64_t refusals(const struct report *report)
{
    uint64_t count = 0;
    for (size_t i = 0; i < report->oom_count; i++)
        count += report->sites[report->ooms[i].site].layer == LAYER_DRIVER;
    return count;
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
    if (report->whole_peak) {
        say_space(text, report->whole_peak->space);
        rows++;
    }
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
        uint64_t for_want = refusals(report);
        words_count(&words, counters->failed_allocs, "allocation");
        if (for_want == counters->failed_allocs)
            words_add(&words, " failed, for want of memory");
        else
            words_add(&words, " failed, %llu of them for want of memory", (unsigned long long)for_want);
        text_line(text, &words);
    }
}
