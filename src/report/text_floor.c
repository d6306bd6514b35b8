/*
 * The last lines of the first screen: fragmentation, what the driver says, what to know before trusting the
 * figures, and where to find more; and the rest of the details.
 */
#include <string.h>

#include "report/text.h"

enum { NOTES_SHOWN = 3, DEVICES_SHOWN = 2, COLUMN = 15 };

static const struct fragmentation *row_to_tell(const struct report *report, size_t *at)
{
    while (*at < report->fragmentation_count) {
        const struct fragmentation *row = &report->fragmentation[(*at)++];
        if (row->live_bytes || row->peak_layout_count)
            return row;
    }
    return NULL;
}

static void say_fragmentation(struct words *words, const struct fragmentation *row)
{
    words_add(words, "Device %d: ", row->device);
    words_size(words, row->live_bytes);
    words_add(words, " live keep ");
    words_size(words, row->footprint_bytes);
    words_add(words, " of 2 MiB granules: ");
    if (row->waste_bytes == 0) {
        words_add(words, "nothing lost");
        return;
    }
    words_size(words, row->waste_bytes);
    words_add(words, " (");
    words_share(words, row->waste_bytes, row->footprint_bytes);
    words_add(words, ") lost");
}

static size_t shown_devices(const struct text *text, size_t count)
{
    return text->options.full || count < DEVICES_SHOWN ? count : DEVICES_SHOWN;
}

static void say_devices(struct text *text)
{
    struct words words = {0};
    const struct report *report = text->report;
    const struct fragmentation *row;
    for (size_t at = 0, shown = 0; (row = row_to_tell(report, &at)) && shown < shown_devices(text, SIZE_MAX);
         shown++) {
        if (row->live_bytes) {
            words_add(&words, "Fragmentation");
            words_column(&words, COLUMN);
            say_fragmentation(&words, row);
            text_line(text, &words);
        }
        text_upper_floors(text, row, COLUMN);
    }
    for (size_t i = 0; i < shown_devices(text, report->memory_count); i++)
        text_memory(text, &report->memory[i], COLUMN);
}

static size_t first_notes(const struct report *report)
{
    return report->note_count < NOTES_SHOWN ? report->note_count : NOTES_SHOWN;
}

int text_floor_lines(const struct report *report)
{
    int lines = 2; /* the blank one and the last */
    const struct fragmentation *row;
    for (size_t at = 0, shown = 0; shown < DEVICES_SHOWN && (row = row_to_tell(report, &at)); shown++)
        lines += (row->live_bytes > 0) + text_upper_floors_lines(report, row, COLUMN);
    for (size_t i = 0; i < report->memory_count && i < DEVICES_SHOWN; i++)
        lines += text_memory_lines(report, &report->memory[i], COLUMN);
    for (size_t i = 0; i < first_notes(report); i++)
        lines += text_wrapped_lines(COLUMN, report->notes[i]);
    return lines;
}

/* The recording lies beside the report: the same stem. */
static void say_where_more(struct text *text)
{
    const char *path = text->report->input->report_path;
    struct words words = {0};
    size_t stem = path ? strlen(path) : 0;
    if (stem > 4 && (strcmp(path + stem - 4, ".txt") == 0 || strcmp(path + stem - 4, ".gmt") == 0))
        stem -= 4;
    else if (stem > 5 && strcmp(path + stem - 5, ".json") == 0)
        stem -= 5;
    if (text->options.full)
        words_add(&words, "Details follow.");
    else if (stem) {
        words_add(&words, "Details follow; every frame and site: gpumemtrace report --full ");
        const char *shown = words_columns(&words) + (int)stem + 4 > TEXT_WIDTH ? base_name(path) : path;
        words_add(&words, "%.*s.gmt", (int)(stem - (size_t)(shown - path)), shown);
    } else
        words_add(&words, "Details follow; every frame and site: gpumemtrace report --full");
    text_line(text, &words);
}

void text_floor(struct text *text)
{
    const struct report *report = text->report;
    struct words words = {0};
    text_line(text, &words);
    say_devices(text);
    for (size_t i = 0; i < (text->options.full ? report->note_count : first_notes(report)); i++)
        text_wrap(text, "Note", COLUMN, report->notes[i]);
    if (report->site_count)
        say_where_more(text);
}

void text_rest(struct text *text)
{
    const struct report *report = text->report;
    struct words words = {0};
    if (text->options.full || first_notes(report) == report->note_count)
        return;
    text_line(text, &words);
    for (size_t i = first_notes(report); i < report->note_count; i++)
        text_wrap(text, "Note", COLUMN, report->notes[i]);
}
