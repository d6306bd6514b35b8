/*
 * Frameworks' memory and memory pools in the text report, in the words that PyTorch's users know: a sentence
 * or two on the first screen, and each allocator's segments, drawn, in the details.
 */
#include <string.h>

#include "report/frameworks.h"
#include "report/text.h"

enum { LABEL = 2, VALUE = 20, SEGMENTS_SHOWN = 8, PINNERS_SHOWN = 8, PINNERS_NAMED = 2, PINNERS_MAX = 16 };

static const char *name_of(const struct report *report, const struct layout *layout)
{
    return report_allocator(report, layout->allocator).name;
}

static const char *release_of(const struct report *report, const struct layout *layout)
{
    return report_allocator(report, layout->allocator).release;
}

static uint64_t free_in(const struct layout *layout)
{
    return layout->releasable_bytes + layout->stranded_bytes;
}

/* "12.0 MiB releasable by torch.cuda.empty_cache(), 16.0 MiB stranded; largest 8.0 MiB" */
static void say_free(struct words *words, const struct report *report, const struct layout *layout)
{
    const char *release = release_of(report, layout);
    words_size(words, layout->releasable_bytes);
    words_add(words, " releasable%s%s, ", release ? " by " : "", release ? release : "");
    words_size(words, layout->stranded_bytes);
    words_add(words, " stranded; largest free block ");
    words_size(words, layout->largest_free_bytes);
}

static void say_pinners(struct words *words, const struct report *report, const struct layout *layout)
{
    struct pinner_line lines[PINNERS_MAX];
    size_t count = report_pinner_lines(report, layout, lines, PINNERS_MAX);
    for (size_t i = 0; i < count && i < PINNERS_NAMED; i++) {
        words_add(words, i == 0 ? "; stranded by " : ", ");
        words_title(words, report, lines[i].site);
        words_add(words, " (");
        words_size(words, lines[i].stranded_bytes);
        words_add(words, ")");
    }
}

/* What the first screen tells: the moment at which more is stranded. At the end of a program that frees all
 * it has, that is the peak. */
static const struct layout *telling_layout(const struct fragmentation *row, size_t at)
{
    const struct layout *peak = &row->peak_layouts[at];
    const struct layout *now = report_layout_of(row->layouts, row->layout_count, peak->allocator);
    return now && now->allocated_bytes && now->stranded_bytes >= peak->stranded_bytes ? now : peak;
}

static void say_framework(struct words *words, const struct report *report, const struct layout *layout)
{
    words_add(words, "Device %d %s: ", layout->device, layout->time_ns ? "at its peak" : text_when(report));
    words_size(words, layout->reserved_bytes);
    words_add(words, " reserved, ");
    words_size(words, layout->allocated_bytes);
    words_add(words, " allocated");
    if (free_in(layout) == 0) {
        words_add(words, ", nothing free");
        return;
    }
    words_add(words, ", ");
    words_size(words, free_in(layout));
    words_add(words, " free: ");
    say_free(words, report, layout);
    say_pinners(words, report, layout);
}

static void say_pool(struct words *words, const struct pool_sample *pool)
{
    words_add(words, "Device %d: ", pool->device);
    words_size(words, pool->reserved_bytes);
    words_add(words, " reserved, ");
    words_size(words, pool->used_bytes);
    words_add(words, " used; its release threshold keeps ");
    words_size(words, report_pool_keeps(pool));
    words_add(words, " unused that cuMemPoolTrimTo() would give back");
}

/* The pool that keeps most; NULL when none does. */
static const struct pool_sample *idlest_pool(const struct fragmentation *row)
{
    const struct pool_sample *idlest = NULL;
    for (size_t i = 0; i < row->pool_count; i++)
        if (report_pool_keeps(row->pools[i]) > (idlest ? report_pool_keeps(idlest) : 0))
            idlest = row->pools[i];
    return idlest;
}

/* Each sentence of the first screen with its label, in `words`; false after the last. */
static bool next_sentence(const struct report *report, const struct fragmentation *row, size_t index,
                          const char **label, struct words *words)
{
    words->used = 0;
    words->text[0] = '\0';
    if (index < row->peak_layout_count) {
        const struct layout *layout = telling_layout(row, index);
        *label = name_of(report, layout);
        say_framework(words, report, layout);
        return true;
    }
    const struct pool_sample *pool = idlest_pool(row);
    *label = "Memory pool";
    if (index > row->peak_layout_count || !pool)
        return false;
    say_pool(words, pool);
    return true;
}

static void add_label(char *text, size_t bytes, const char *label)
{
    struct words words = {0};
    words_add(&words, "%s", label);
    words_cut(&words, bytes);
    memcpy(text, words.text, strlen(words.text) + 1);
}

void text_upper_floors(struct text *text, const struct fragmentation *row, int column)
{
    struct words words;
    const char *label;
    char cut[15];
    for (size_t i = 0; next_sentence(text->report, row, i, &label, &words); i++) {
        add_label(cut, sizeof cut, label);
        text_wrap(text, cut, column, words.text);
    }
}

int text_upper_floors_lines(const struct report *report, const struct fragmentation *row, int column)
{
    struct words words;
    const char *label;
    int lines = 0;
    for (size_t i = 0; next_sentence(report, row, i, &label, &words); i++)
        lines += text_wrapped_lines(column, words.text);
    return lines;
}

static void begin_row(struct words *words, const char *label)
{
    words_add(words, "%*s%s", LABEL, "", label);
    words_column(words, VALUE);
}

static void list_free(struct text *text, const struct layout *layout)
{
    struct words words = {0};
    const char *release = release_of(text->report, layout);
    begin_row(&words, "free");
    words_size(&words, free_in(layout));
    words_add(&words, "; the largest free block is ");
    words_size(&words, layout->largest_free_bytes);
    words_add(&words, ", ");
    words_share(&words, free_in(layout) - layout->largest_free_bytes, free_in(layout));
    words_add(&words, " is not in it");
    text_line(text, &words);
    begin_row(&words, "releasable");
    words_size(&words, layout->releasable_bytes);
    words_add(&words, "%s%s", release ? " by " : "", release ? release : "");
    text_line(text, &words);
    begin_row(&words, "stranded");
    words_size(&words, layout->stranded_bytes);
    words_add(&words, " in segments that living blocks keep");
    text_line(text, &words);
}

static void list_figures(struct text *text, const struct layout *layout)
{
    struct words words = {0};
    begin_row(&words, "reserved");
    words_size(&words, layout->reserved_bytes);
    words_add(&words, " in ");
    words_count(&words, layout->segment_count, "segment");
    text_line(text, &words);
    begin_row(&words, "allocated");
    words_size(&words, layout->allocated_bytes);
    words_add(&words, " in ");
    words_count(&words, layout->blocks, "block");
    text_line(text, &words);
    if (free_in(layout))
        list_free(text, layout);
    if (layout->outside_bytes) {
        begin_row(&words, "elsewhere");
        words_size(&words, layout->outside_bytes);
        words_add(&words, " of its blocks, in memory whose allocation was not seen");
        text_line(text, &words);
    }
}

static void list_pinners(struct text *text, const struct layout *layout)
{
    struct words words = {0};
    struct pinner_line lines[PINNERS_MAX];
    size_t count = report_pinner_lines(text->report, layout, lines, PINNERS_MAX);
    size_t shown = text->options.full || count < PINNERS_SHOWN ? count : PINNERS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct pinner_line *pinner = &lines[i];
        begin_row(&words, i == 0 ? "stranded by" : "");
        words_size(&words, pinner->stranded_bytes);
        words_column(&words, VALUE + 11);
        text_title(text, &words, pinner->site);
        words_add(&words, ", ");
        words_count(&words, pinner->blocks, "block");
        text_line(text, &words);
    }
}

static void draw_segment(struct text *text, const struct layout_segment *segment)
{
    struct words words = {0};
    words_add(&words, "%*s%#14llx", LABEL, "", (unsigned long long)segment->start);
    words_column(&words, VALUE - 2);
    words_size(&words, segment->bytes);
    words_column(&words, VALUE + 9);
    words_add(&words, "[%s]", segment->map);
    text_line(text, &words);
}

/* Segments without a block need no picture. */
static void draw_segments(struct text *text, const struct layout *layout)
{
    struct words words = {0};
    size_t most = text->options.full ? layout->listed_count : SEGMENTS_SHOWN, shown = 0;
    for (size_t i = 0; i < layout->listed_count && shown < most; i++) {
        if (!layout->segments[i].blocks)
            continue;
        if (shown++ == 0) {
            words_add(&words,
                      "%*ssegments, most stranded first: # allocated, + half and more, - less, . free", LABEL,
                      "");
            text_line(text, &words);
        }
        draw_segment(text, &layout->segments[i]);
    }
    if (shown && shown < layout->segment_count) {
        begin_row(&words, "");
        words_add(&words, "and %llu more", (unsigned long long)(layout->segment_count - shown));
        text_line(text, &words);
    }
}

static void list_layout(struct text *text, const struct layout *layout)
{
    struct words words = {0};
    if (layout->segment_count == 0 && layout->outside_bytes == 0)
        return;
    text_line(text, &words);
    words_add(&words, "Memory of %s on device %d", name_of(text->report, layout), layout->device);
    if (layout->time_ns) {
        words_add(&words, " at the device's peak, at ");
        words_time(&words, layout->time_ns);
    } else {
        words_add(&words, " %s", text_when(text->report));
    }
    text_line(text, &words);
    list_figures(text, layout);
    list_pinners(text, layout);
    draw_segments(text, layout);
}

void text_every_layout(struct text *text)
{
    const struct report *report = text->report;
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        for (size_t k = 0; k < row->peak_layout_count; k++)
            list_layout(text, &row->peak_layouts[k]);
        for (size_t k = 0; k < row->layout_count; k++)
            list_layout(text, &row->layouts[k]);
    }
}
