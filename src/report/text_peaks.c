/* Peaks in the text report: who held them, by line of the reader's code, and what would have to go for them
 * to be lower. */
#include "report/text.h"

enum { FALL_COLUMN = 2, LINES_NAMED = 3 };

static void say_without(struct words *words, const struct peak_without *without)
{
    words_add(words, without->exact ? "" : "at most ");
    words_size(words, without->bytes);
}

static void say_held_by(struct text *text, const struct peak *peak)
{
    const struct totals *totals = &peak->space->totals;
    struct words words = {0};
    words_add(&words, peak->space->layer == LAYER_FRAMEWORK ? "Peak of tensors, " : "Peak of ");
    words_space(&words, peak->space->kind, peak->space->device);
    words_add(&words, ": ");
    words_size(&words, totals->peak_bytes);
    words_add(&words, " at ");
    words_time(&words, totals->peak_time_ns);
    if (peak->space->peak_phase_count) {
        words_add(&words, ", in ");
        words_phases(&words, text->report, peak->space->peak_phases, peak->space->peak_phase_count);
    }
    words_add(&words, ", held by");
    text_line(text, &words);
}

static void say_holder(struct text *text, const struct peak *peak, size_t index, bool falls)
{
    const struct source_line *line = &peak->lines.lines[index];
    struct words words = {0}, more = {0};
    text_begin_row(&words, false, line->bytes, peak->space->totals.peak_bytes);
    text_title(text, &words, line->site);
    words_add(&words, ", ");
    words_count(&words, line->blocks, "block");
    if (falls && peak->lines.count > 1 && index < peak->without_count) {
        words_add(&more, "; without it ");
        say_without(&more, &peak->without[index]);
        if (text->options.full || words_columns(&words) + words_columns(&more) <= TEXT_WIDTH)
            words_add(&words, "%s", more.text);
    }
    text_line(text, &words);
}

static void say_peak(struct text *text, const struct peak *peak, size_t shown, bool falls)
{
    say_held_by(text, peak);
    for (size_t i = 0; i < shown && i < peak->lines.count; i++)
        say_holder(text, peak, i, falls);
    if (shown < peak->lines.count)
        text_rest_of_lines(text, &peak->lines, shown);
}

/* "train.py:45 in Linear, train.py:80 in train and 2 more lines" */
static void say_lines(struct words *words, struct text *text, const struct peak_fall *fall)
{
    size_t named = fall->line_count <= LINES_NAMED ? fall->line_count : LINES_NAMED - 1;
    for (size_t i = 0; i < named; i++) {
        bool last = i + 1 == fall->line_count;
        words_add(words, i == 0 ? "" : last ? " and " : ", ");
        text_title(text, words, fall->lines[i].site);
    }
    if (named < fall->line_count) {
        words_add(words, " and ");
        words_count(words, fall->line_count - named, "more line");
    }
}

static void fall_sentence(struct words *words, struct text *text, const struct peak_fall *fall)
{
    words_add(words, "without ");
    say_lines(words, text, fall);
    if (!fall->enough) {
        words_add(words, " it may still be ");
        words_size(words, fall->then.bytes);
        words_add(words, ": what else would have to go is not known");
        return;
    }
    words_add(words, ": ");
    say_without(words, &fall->then);
    if (fall->then.exact && fall->then.bytes > 0) {
        words_add(words, " at ");
        words_time(words, fall->then.time_ns);
    }
}

static bool is_same(const struct peak_fall *left, const struct peak_fall *right)
{
    if (left->line_count != right->line_count || left->enough != right->enough)
        return false;
    for (size_t i = 0; i < left->line_count; i++)
        if (left->lines[i].line != right->lines[i].line)
            return false;
    return true;
}

/* Says how the peak falls, or only counts the lines that it takes. What makes it fall further is not said
 * twice. */
static int say_falls(struct text *text, const struct peak *peak, bool say)
{
    int lines = 0;
    for (size_t i = 0; i < PEAK_FALL_COUNT && peak->lines.count > 1; i++) {
        const struct peak_fall *fall = &peak->falls[i];
        struct words label = {0}, words = {0};
        if (i + 1 < PEAK_FALL_COUNT && is_same(fall, fall + 1))
            continue;
        words_add(&label, "%*s%u%% lower", FALL_COLUMN, "", fall->percent);
        fall_sentence(&words, text, fall);
        lines += text_wrapped_lines(TEXT_TITLE, words.text);
        if (say)
            text_wrap(text, label.text, TEXT_TITLE, words.text);
    }
    return lines;
}

/* The peak of tensors in that space; NULL: there were none. */
static const struct peak *tensors_in(const struct report *report, const struct peak *peak)
{
    for (size_t i = 0; i < report->framework_peak_count; i++) {
        const struct ledger_space *space = report->framework_peaks[i].space;
        if (space->kind == peak->space->kind && space->device == peak->space->device)
            return &report->framework_peaks[i];
    }
    return NULL;
}

int text_peak_lines(struct text *text)
{
    const struct peak *peak = report_main_peak(text->report);
    const struct peak *tensors = peak ? tensors_in(text->report, peak) : NULL;
    if (!peak)
        return 0;
    int lines = (int)peak->lines.count + 2 + (tensors ? (int)tensors->lines.count + 1 : 0);
    return lines + say_falls(text, tensors ? tensors : peak, false);
}

/* Says a peak in at most `rows` rows; returns how many it took. */
static size_t say_peak_in(struct text *text, const struct peak *peak, size_t rows, bool falls)
{
    bool all = peak->lines.count <= rows || text->options.full;
    say_peak(text, peak, all ? peak->lines.count : rows - 1, falls);
    return all ? peak->lines.count : rows;
}

/* What a framework's cache took from the driver would have been taken for other tensors, had the ones not
 * been there that it was taken for: only of tensors can be said what their peak would have been without some.
 */
void text_peak(struct text *text, int lines)
{
    const struct peak *peak = report_main_peak(text->report);
    struct words words = {0};
    if (!peak)
        return;
    const struct peak *tensors = tensors_in(text->report, peak), *falling = tensors ? tensors : peak;
    int room = lines - 2 - say_falls(text, falling, false);
    size_t rows = room > 2 ? (size_t)room : 2;
    text_line(text, &words);
    if (tensors) {
        /* Whose tensors they were says more than who made the framework take more. */
        size_t third = rows / 3 > 2 ? rows / 3 : 2, taken = say_peak_in(text, peak, third, false) + 1;
        rows = rows > taken + 2 ? rows - taken : 2;
    }
    if (say_peak_in(text, falling, rows, true) == falling->lines.count && tensors)
        text->whole_tensors = tensors;
    say_falls(text, falling, true);
}

static void say_another(struct text *text, const struct peak *peak, bool falls)
{
    enum { SHOWN = 5 };
    struct words words = {0};
    text_line(text, &words);
    say_peak_in(text, peak, SHOWN + 1, falls);
    if (falls)
        say_falls(text, peak, true);
}

void text_every_peak(struct text *text)
{
    const struct report *report = text->report;
    const struct peak *first = report_main_peak(report);
    if (report->whole_peak)
        say_another(text, report->whole_peak, report->framework_peak_count == 0);
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct peak *peak = &report->peaks[i];
        if (peak != first)
            say_another(text, peak, !tensors_in(report, peak));
    }
    for (size_t i = 0; i < report->framework_peak_count; i++)
        if (&report->framework_peaks[i] != text->whole_tensors)
            say_another(text, &report->framework_peaks[i], true);
}
