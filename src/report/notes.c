/* What a reader must know before trusting the figures: one sentence each, and none when there is nothing to
 * say. */
#include <string.h>

#include "report/model.h"
#include "report/words.h"

#define OWN_NOTES 10

static bool add(struct report *report, const struct words *words)
{
    const char *note = words_keep(words, report->arena);
    if (note)
        report->notes[report->note_count++] = note;
    return note != NULL;
}

static bool note_end(struct report *report)
{
    struct words words = {0};
    switch (report->input->process->end) {
    case PROCESS_EXITED:
        return true;
    case PROCESS_KILLED:
        words_add(&words,
                  "The process ended without a normal exit (killed, or crashed): what it held at that moment "
                  "is listed as still allocated.");
        break;
    case PROCESS_RUNNING:
        words_add(&words, "The process is still running: the figures are those of this moment.");
        break;
    }
    return add(report, &words);
}

static bool note_losses(struct report *report)
{
    const struct ledger_counters *counters = ledger_counters(report->input->ledger);
    uint64_t dropped = counters->dropped_events + report->input->dropped_events;
    if (dropped > 0) {
        struct words words = {0};
        words_count(&words, dropped, "event");
        words_add(&words, " could not be recorded: the figures here are too low or too high by what %s did.",
                  dropped == 1 ? "it" : "they");
        return add(report, &words);
    }
    if (!report->input->process->complete && report->input->process->end == PROCESS_EXITED) {
        struct words words = {0};
        words_add(&words,
                  "The recording is not complete: events after its end are missing from the figures.");
        return add(report, &words);
    }
    return true;
}

static bool note_left_out(struct report *report)
{
    struct words words = {0};
    if (report->input->bound_bytes == 0)
        return true;
    words_add(&words, "Older events were dropped from the recording to keep it under ");
    words_size(&words, report->input->bound_bytes);
    words_add(&words, " (GPUMEMTRACE_MAX_TRACE); totals, peaks and leaks are exact all the same.");
    return add(report, &words);
}

/* More managed memory than the device has is no error, and slow. */
static bool note_oversubscription(struct report *report)
{
    for (size_t i = 0; i < report->space_count; i++) {
        const struct ledger_space *space = report->spaces[i];
        const struct device_figures *figures = ledger_figures_of(report->input->ledger, space->device);
        uint64_t total = figures ? figures->latest.total_bytes : 0;
        struct words words = {0};
        if (space->kind != SPACE_MANAGED || total == 0 || space->totals.peak_bytes <= total)
            continue;
        words_add(&words, "Managed memory of device %d came to ", space->device);
        words_size(&words, space->totals.peak_bytes);
        words_add(&words, ", more than the device has (");
        words_size(&words, total);
        words_add(&words,
                  "): what does not fit is moved to host memory and back, page by page, which is slow.");
        return add(report, &words); /* one device says it for all */
    }
    return true;
}

static bool note_unseen(struct report *report)
{
    const struct ledger_counters *counters = ledger_counters(report->input->ledger);
    if (counters->replaced_blocks > 0) {
        struct words words = {0};
        words_count(&words, counters->replaced_blocks, "block");
        words_add(&words, " ended without a free that was seen: the driver gave %s address%s out again.",
                  counters->replaced_blocks == 1 ? "its" : "their",
                  counters->replaced_blocks == 1 ? "" : "es");
        if (!add(report, &words))
            return false;
    }
    if (counters->foreign_frees > 0) {
        struct words words = {0};
        words_count(&words, counters->foreign_frees, "free");
        words_add(&words, " named memory whose allocation was not seen; forwarded, and not in the figures.");
        return add(report, &words);
    }
    return true;
}

static bool note_stacks(struct report *report)
{
    size_t bare = 0, python = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        bare += report->sites[i].stack == NULL || report->sites[i].stack->count == 0;
        python += report->sites[i].has_python;
    }
    struct words words = {0};
    if (report->site_count > 0 && bare == report->site_count) {
        words_add(&words, "No stacks were recorded: only the API calls are known.");
    } else if (bare > 0) {
        words_count(&words, bare, "site");
        words_add(&words, " of %llu %s no stack.", (unsigned long long)report->site_count,
                  bare == 1 ? "has" : "have");
    } else if (report->site_count > 0 && python == 0 && is_python_program(report->input->process->exe)) {
        words_add(&words, "No Python frames were recorded, though this is a Python program.");
    } else {
        return true;
    }
    return add(report, &words);
}

/* "Reserved" is PyTorch's own word for it. */
static bool note_caches(struct report *report)
{
    uint64_t bytes = 0;
    struct words words = {0};
    for (size_t i = 0; i < report->leaks.count; i++) {
        const struct report_site *site = &report->sites[report->leaks.sites[i]];
        bytes += site->is_cached ? site->figures.totals.live_bytes : 0;
    }
    if (bytes == 0)
        return true;
    words_size(&words, bytes);
    words_add(&words,
              " of what is still allocated is reserved by PyTorch's cache, which keeps what it once took "
              "until torch.cuda.empty_cache(): a line named for it is one that made the cache grow.");
    return add(report, &words);
}

static bool note_ooms(struct report *report)
{
    if (ledger_oom_count(report->input->ledger) < LEDGER_OOMS_MAX)
        return true;
    struct words words = {0};
    words_add(&words, "Only the first %d out-of-memory moments are kept in detail.", LEDGER_OOMS_MAX);
    return add(report, &words);
}

bool report_build_notes(struct report *report)
{
    size_t given = report->input->note_count;
    report->notes = arena_alloc(report->arena, (given + OWN_NOTES) * sizeof *report->notes);
    if (!report->notes)
        return false;
    static bool (*const steps[])(struct report *) = {note_end,    note_losses,          note_left_out,
                                                     note_unseen, note_stacks,          note_caches,
                                                     note_ooms,   note_oversubscription};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!steps[i](report))
            return false;
    for (size_t i = 0; i < given; i++)
        report->notes[report->note_count++] = report->input->notes[i];
    return true;
}
