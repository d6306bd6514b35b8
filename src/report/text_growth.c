/* What grows: a line each on the first screen, and below it how fast, since when, and how that is told. */
#include "report/text.h"

enum { LABEL = 2, VALUE = 20 };

/* "3.0 MiB/s", or "1.0 MiB a step (3.0 MiB/s)" where the program tells its steps. */
static void say_rate(struct words *words, const struct growing *row)
{
    if (row->steps > 0) {
        words_size(words, row->growth.risen_bytes / row->steps);
        words_add(words, " a step (");
        words_size(words, (uint64_t)(row->growth.bytes_per_second + 0.5));
        words_add(words, "/s)");
        return;
    }
    words_size(words, (uint64_t)(row->growth.bytes_per_second + 0.5));
    words_add(words, "/s");
}

static void say_exhaustion(struct words *words, const struct text *text, const struct growing *row)
{
    words_add(words, "device %d is full in ", text->report->sites[row->site].key->device);
    words_time(words, row->exhausted_ns);
}

void text_growth(struct text *text, size_t most)
{
    size_t count = text->report->growing_line_count;
    struct words words = {0};
    for (size_t i = 0; i < count && i < most; i++) {
        const struct growing *row = &text->report->growing_lines[i];
        words_add(&words, "Growing by ");
        say_rate(&words, row);
        if (row->exhausted_known) {
            words_add(&words, ", ");
            say_exhaustion(&words, text, row);
        }
        words_add(&words, ": ");
        text_title(text, &words, row->site);
        if (i + 1 == most && most < count)
            words_add(&words, ", and %llu more", (unsigned long long)(count - most));
        text_line(text, &words);
    }
}

static void say_growing(struct text *text, const struct growing *row)
{
    const struct growth *growth = &row->growth;
    struct words words = {0};
    words_add(&words, "%*s", LABEL, "");
    say_rate(&words, row);
    words_column(&words, VALUE);
    text_title(text, &words, row->site);
    words_add(&words, ", site %u", row->site);
    if (row->site_count > 1)
        words_add(&words, " and %llu more of this line", (unsigned long long)row->site_count - 1);
    text_line(text, &words);

    words_column(&words, VALUE);
    words_size(&words, growth->risen_bytes);
    words_add(&words, " more since ");
    words_time(&words, growth->since_ns);
    words_add(&words, ", %u%% sure", (unsigned)(growth->confidence * 100 + 0.5));
    if (row->exhausted_known) {
        words_add(&words, "; at this rate ");
        say_exhaustion(&words, text, row);
    }
    text_line(text, &words);
}

void text_every_growth(struct text *text)
{
    enum { SHOWN = 10 };
    size_t count = text->report->growing_line_count;
    size_t shown = text->options.full || count < SHOWN ? count : SHOWN;
    struct words words = {0};
    if (count == 0)
        return;
    text_line(text, &words);
    text_say(text, "What grows");
    for (size_t i = 0; i < shown; i++)
        say_growing(text, &text->report->growing_lines[i]);
    if (shown < count) {
        words_column(&words, VALUE);
        words_add(&words, "and ");
        words_count(&words, count - shown, "slower one");
        words_add(&words, ", see --full");
        text_line(text, &words);
    }
    text_wrap(
        text, "  How this is told", VALUE,
        "What a site, or all sites of a line together, keeps, which is the least it holds from a moment on "
        "to the end, must rise in many even steps up to the end and not level off; what is given back later "
        "does not count.");
}
