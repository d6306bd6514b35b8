/* The phases that the program named, in the text report: a row each, and the lines that rose most in it. */
#include "report/text.h"

enum { NAME = 2, PEAK = 34, NET = 46, TENSORS = 58, TENSORS_NET = 70, COUNT = 82 };
enum { PHASES_SHOWN = 16, SITES_SHOWN = 2 };

static void signed_size(struct words *words, int64_t bytes)
{
    words_add(words, "%s", bytes < 0 ? "-" : bytes > 0 ? "+" : "");
    words_size(words, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
}

static void say_head(struct text *text, bool has_tensors)
{
    struct words words = {0};
    text_line(text, &words);
    words_add(&words, "Phases");
    words_column(&words, PEAK);
    words_add(&words, "Peak");
    words_column(&words, NET);
    words_add(&words, "Kept in all");
    if (has_tensors) {
        words_column(&words, TENSORS);
        words_add(&words, "Tensors");
        words_column(&words, TENSORS_NET);
        words_add(&words, "Kept in all");
    }
    words_column(&words, COUNT);
    words_add(&words, "Times");
    text_line(text, &words);
}

static void say_phase(struct text *text, const struct named_phase *phase, bool has_tensors)
{
    struct words words = {0};
    words_add(&words, "%*s%s", NAME + 2 * (int)phase->depth, "",
              phase->name && phase->name[0] ? phase->name : "(no name)");
    words_column(&words, PEAK);
    words_size(&words, phase->is.layers[LAYER_DRIVER].peak_bytes);
    words_column(&words, NET);
    signed_size(&words, phase->is.layers[LAYER_DRIVER].net_bytes);
    if (has_tensors) {
        words_column(&words, TENSORS);
        words_size(&words, phase->is.layers[LAYER_FRAMEWORK].peak_bytes);
        words_column(&words, TENSORS_NET);
        signed_size(&words, phase->is.layers[LAYER_FRAMEWORK].net_bytes);
    }
    words_column(&words, COUNT);
    words_add(&words, "%llu%s", (unsigned long long)phase->is.ranges, phase->is.open ? ", in it" : "");
    text_line(text, &words);
    size_t shown = text->options.full ? phase->site_count : SITES_SHOWN;
    for (size_t i = 0; i < phase->site_count && i < shown; i++) {
        const struct phase_site *site = &phase->sites[i];
        if (site->rise_bytes == 0)
            break;
        words_column(&words, NAME + 2 * (int)phase->depth + 4);
        signed_size(&words, (int64_t)site->rise_bytes);
        words_add(&words, " by ");
        text_title(text, &words, site->site);
        if (site->net_bytes) {
            words_add(&words, ", kept ");
            signed_size(&words, site->net_bytes);
            words_add(&words, phase->is.periods > 1 ? " in all" : "");
        }
        text_line(text, &words);
    }
}

void text_phases(struct text *text)
{
    const struct report *report = text->report;
    bool has_tensors = false;
    struct words words = {0};
    if (report->phase_count == 0)
        return;
    for (size_t i = 0; i < report->phase_count; i++)
        has_tensors |= report->phases[i].is.layers[LAYER_FRAMEWORK].peak_bytes > 0;
    say_head(text, has_tensors);
    size_t shown =
        text->options.full || report->phase_count < PHASES_SHOWN ? report->phase_count : PHASES_SHOWN;
    for (size_t i = 0; i < shown; i++)
        say_phase(text, &report->phases[i], has_tensors);
    if (shown < report->phase_count) {
        words_add(&words, "  and ");
        words_count(&words, report->phase_count - shown, "more phase");
        words_add(&words, ", see --full");
        text_line(text, &words);
    }
}
