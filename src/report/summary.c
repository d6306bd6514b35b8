/* The one line on stderr at exit. */
#include "report/text.h"

static size_t count_devices(const struct report *report)
{
    size_t devices = 0;
    for (size_t i = 0; i < report->peak_count; i++)
        devices += report->peaks[i].space->kind == SPACE_DEVICE;
    return devices;
}

static void say_peak(struct words *words, const struct report *report)
{
    const struct peak *peak = report_main_peak(report);
    size_t devices = count_devices(report);
    if (!peak) {
        words_add(words, "no allocation succeeded");
        return;
    }
    words_add(words, "peak ");
    words_size(words, peak->space->totals.peak_bytes);
    words_add(words, peak->space->kind == SPACE_DEVICE ? " on " : " of ");
    words_space(words, peak->space->kind, peak->space->device);
    if (devices > 1)
        words_add(words, ", the highest of %llu devices", (unsigned long long)devices);
}

static void say_live(struct words *words, const struct report *report)
{
    const struct leaks *leaks = &report->leaks;
    if (leaks->live_blocks == 0) {
        words_add(words, ", nothing still allocated %s", text_when(report));
        return;
    }
    words_add(words, ", ");
    words_size(words, leaks->live_bytes);
    words_add(words, " in ");
    words_count(words, leaks->live_blocks, "block");
    words_add(words, " still allocated %s", text_when(report));
    const struct source_line *line = leaks->lines.lines;
    if (line->reason == REASON_GREW || line->reason == REASON_ADDS_UP) {
        words_add(words, ", adding up at ");
        words_title(words, report, line->site);
    } else if (line->bytes > leaks->live_bytes / 2) {
        words_add(words, line->bytes == leaks->live_bytes ? ", all by " : ", most by ");
        words_title(words, report, line->site);
    }
}

void report_write_summary(const struct report *report, struct output *out)
{
    struct words words = {0};
    words_add(&words, "gpumemtrace: ");
    if (report->oom_count) {
        words_add(&words, "out of memory");
        if (report->oom_count > 1)
            words_add(&words, " %llu times", (unsigned long long)report->oom_count);
        words_add(&words, ", ");
    }
    say_peak(&words, report);
    if (report->peak_count)
        say_live(&words, report);
    if (report->input->report_path)
        words_add(&words, "; report: %s", report->input->report_path);
    words_end_line(&words, out);
}
