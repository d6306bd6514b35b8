/* Out of memory, in the text report: the last time on the first screen, every one in the details. */
#include "report/text.h"

/* One row of "label   text". */
enum { LABEL_COLUMN = 2, VALUE_COLUMN = 14, HOLDERS_SHOWN = 3, PINNERS_SHOWN = 2, PINNERS_MAX = 8 };

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
    if (row->largest_known) {
        words_add(&words, "; at most ");
        words_size(&words, row->largest_bytes);
        words_add(&words, " would have fitted");
    }
    text_line(text, &words);
}

/* In PyTorch's own words: it is what its message calls "reserved by PyTorch but unallocated". */
static void say_unallocated(struct text *text, const struct out_of_memory *row)
{
    uint64_t in_caches = row->releasable_bytes + row->stranded_bytes, in_pools = row->oom->pool_unused_bytes;
    struct words words = {0};
    if (in_caches + in_pools == 0)
        return;
    label(&words, "unallocated");
    if (in_caches > 0) {
        words_size(&words, in_caches);
        words_add(&words, " reserved by caches: ");
        words_size(&words, row->releasable_bytes);
        words_add(&words, " releasable, ");
        words_size(&words, row->stranded_bytes);
        words_add(&words, " stranded%s", in_pools > 0 ? "; " : "");
    }
    if (in_pools > 0) {
        words_size(&words, in_pools);
        words_add(&words, " kept by memory pools");
    }
    text_line(text, &words);
}

static void say_pinners(struct text *text, const struct out_of_memory *row)
{
    struct words words = {0};
    size_t shown = 0;
    for (size_t i = 0; row->cause == OOM_FRAGMENTED && i < row->oom->layout_count; i++) {
        const struct layout *layout = &row->oom->layouts[i];
        struct pinner_line lines[PINNERS_MAX];
        size_t count = report_pinner_lines(text->report, layout, lines, PINNERS_MAX);
        for (size_t k = 0; k < count && shown < PINNERS_SHOWN; k++, shown++) {
            label(&words, shown == 0 ? "stranded by" : "");
            words_size(&words, lines[k].stranded_bytes);
            words_column(&words, VALUE_COLUMN + 18);
            text_title(text, &words, lines[k].site);
            text_line(text, &words);
        }
    }
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

static void say_outcome(struct text *text, const struct out_of_memory *row)
{
    struct words words = {0};
    switch (row->outcome) {
    case OOM_GRANTED:
        words_add(&words, "The program went on: as much was granted ");
        words_time(&words, row->oom->granted_ns - row->oom->time_ns);
        words_add(&words, " later");
        if (row->oom->freed_bytes) {
            words_add(&words, ", after ");
            words_size(&words, row->oom->freed_bytes);
            words_add(&words, " had been freed");
        }
        words_add(&words, ".");
        break;
    case OOM_WENT_ON:
        words_add(&words, "The program went on with smaller allocations.");
        break;
    default:
        words_add(&words, "No allocation succeeded after this one.");
        break;
    }
    text_wrap(text, "  afterwards", VALUE_COLUMN, words.text);
}

static void say_oom(struct text *text, const struct out_of_memory *row, size_t holders)
{
    struct words words = {0};
    label(&words, "asked by");
    text_title(text, &words, row->site);
    text_line(text, &words);
    say_figures(text, row);
    say_unallocated(text, row);
    text_wrap(text, "  verdict", VALUE_COLUMN, row->verdict);
    text_wrap(text, "  try", VALUE_COLUMN, row->advice);
    say_pinners(text, row);
    say_holders(text, row, holders);
    say_outcome(text, row);
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
    say_oom(text, last, HOLDERS_SHOWN);
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
        say_oom(text, &text->report->ooms[i], text->options.full ? SIZE_MAX : HOLDERS_SHOWN);
    }
}
