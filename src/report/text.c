/* The text report: for a person in trouble. Order of the parts, and the lines they are printed with (text.h).
 */
#include "report/text.h"

#include <limits.h>
#include <string.h>

#include "base/size.h"
#include "base/utf8.h"

static int columns_of(uint32_t code, size_t length)
{
    return utf8_is_printable(code) ? utf8_columns(code) : 4 * (int)length; /* \xNN each */
}

/* How many bytes of `line` fit into `width` columns. */
static size_t fitting(const char *line, int width, bool *all)
{
    int columns = 0;
    size_t at = 0;
    while (line[at]) {
        uint32_t code;
        size_t length = utf8_next(line + at, &code);
        columns += columns_of(code, length);
        if (columns > width)
            break;
        at += length;
    }
    *all = line[at] == '\0';
    return at;
}

void text_line(struct text *text, struct words *words)
{
    bool all = true;
    if (!text->options.full && words->used) {
        fitting(words->text, TEXT_WIDTH, &all);
        if (!all) {
            words->used = fitting(words->text, TEXT_WIDTH - 1, &all);
            words->text[words->used] = '\0';
            words_add(words, "…");
        }
    }
    words_end_line(words, text->out);
    text->lines++;
}

void text_say(struct text *text, const char *line)
{
    struct words words = {0};
    words_add(&words, "%s", line);
    text_line(text, &words);
}

/* "MiB" of "1.0 MiB", which is not to be torn apart. */
static bool is_unit(const char *word)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "ms", "s", "min", "h"};
    size_t length = strcspn(word, " ,.;:)");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && strncmp(word, units[i], length) == 0)
            return true;
    return false;
}

/* The first bytes of `sentence` that make one line of `width` columns, cut at a space where there is one. */
static size_t wrap_at(const char *sentence, int width)
{
    bool all;
    size_t fit = fitting(sentence, width, &all);
    if (all)
        return fit;
    size_t space = fit;
    while (space > 0 && (sentence[space] != ' ' || is_unit(sentence + space + 1)))
        space--;
    return space > 0 ? space : fit > 0 ? fit : 1;
}

void text_wrap(struct text *text, const char *label, int column, const char *sentence)
{
    struct words words = {0};
    words_add(&words, "%s", label);
    do {
        size_t bytes = wrap_at(sentence, TEXT_WIDTH - column);
        words_column(&words, column);
        words_add(&words, "%.*s", (int)bytes, sentence);
        text_line(text, &words);
        sentence += bytes;
        sentence += strspn(sentence, " ");
    } while (*sentence);
}

int text_wrapped_lines(int column, const char *sentence)
{
    int lines = 0;
    do {
        sentence += wrap_at(sentence, TEXT_WIDTH - column);
        sentence += strspn(sentence, " ");
        lines++;
    } while (*sentence);
    return lines;
}

const char *text_when(const struct report *report)
{
    static const char *const when[] = {
        [PROCESS_EXITED] = "at exit", [PROCESS_KILLED] = "when it was killed", [PROCESS_RUNNING] = "now"};
    return when[report->input->process->end];
}

void words_title(struct words *words, const struct report *report, uint32_t site)
{
    char title[TITLE_MAX];
    words_add(words, "%s", report_site_title(report, site, TITLE_FUNCTION, title, sizeof title));
}

int text_function_columns(const struct text *text)
{
    return text->options.full ? INT_MAX : TITLE_FUNCTION;
}

void text_title(const struct text *text, struct words *words, uint32_t site)
{
    char title[sizeof words->text];
    words_add(words, "%s",
              report_site_title(text->report, site, text_function_columns(text), title, sizeof title));
}

/* "64.0 to 463.0 KiB" */
static void words_range(struct words *words, uint64_t from, uint64_t to)
{
    char low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX];
    size_text(low, from);
    char *low_unit = strchr(low, ' ');
    const char *high_unit = strchr(size_text(high, to), ' ');
    if (low_unit && high_unit && strcmp(low_unit, high_unit) == 0)
        *low_unit = '\0';
    words_add(words, "%s to %s", low, high);
}

void words_blocks(struct words *words, uint64_t blocks, uint64_t bytes, const struct living *living)
{
    words_count(words, blocks, "block");
    if (living && living->smallest == living->largest) {
        if (blocks > 1) {
            words_add(words, " × ");
            words_size(words, living->largest);
        }
    } else if (living && blocks > 1) {
        words_add(words, " of ");
        words_range(words, living->smallest, living->largest);
    } else if (blocks > 1) {
        words_add(words, ", ");
        words_size(words, bytes / blocks);
        words_add(words, " on average");
    }
}

static void text_first_screen(struct text *text)
{
    enum { ROWS = 6, PEAK_LINES = 9, GROWING = 2 };
    text_head(text);
    text_out_of_memory(text);
    text_spaces(text, text->options.full ? SIZE_MAX : ROWS);
    if (text->report->peak_count == 0) {
        text_floor(text);
        return;
    }
    text_growth(text, text->options.full ? SIZE_MAX : GROWING);
    int left = TEXT_SCREEN - text->lines - text_floor_lines(text->report);
    int before = text->lines, peak = text_peak_lines(text);
    text_leaks(text, left - (peak < PEAK_LINES ? peak : PEAK_LINES));
    text_peak(text, left - (text->lines - before));
    text_floor(text);
}

void report_write_text(const struct report *report, const struct report_text_options *options,
                       struct output *out)
{
    struct text text = {.report = report, .out = out, .options = *options};
    text_first_screen(&text);
    text_every_growth(&text);
    text_every_suppression(&text);
    text_phases(&text);
    text_sites(&text);
    text_every_oom(&text);
    text_every_peak(&text);
    text_every_layout(&text);
    text_memory_map(&text);
    text_rest(&text);
}
