/*
 * The text report, in parts: the first screen answers, the rest explains. Every line goes through
 * text_line(), which makes it safe for a terminal, cuts it to the width, and counts.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include "report/model.h"
#include "report/words.h"

#define TEXT_WIDTH  100
#define TEXT_SCREEN 40 /* lines that a reader sees before scrolling */

struct text {
    const struct report *report;
    struct output *out;
    struct report_text_options options;
    int lines;                        /* printed so far */
    uint64_t source_bytes;            /* read so far, for lines of the reader's code */
    const struct peak *whole_tensors; /* the peak of tensors that the first screen had room for; NULL: none */
};

/* Prints and empties `words`. */
void text_line(struct text *text, struct words *words);
void text_say(struct text *text, const char *line);
/* A sentence over as many lines as it takes, the first begun by `label`, all text from `column` on. */
void text_wrap(struct text *text, const char *label, int column, const char *sentence);
/* The lines it would take. */
int text_wrapped_lines(int column, const char *sentence);

/* "at exit", "when it was killed", "now" */
const char *text_when(const struct report *report);

/* The first screen's parts, in order. */
void text_head(struct text *text);
void text_out_of_memory(struct text *text);
void text_spaces(struct text *text, size_t most_rows);
void text_growth(struct text *text, size_t most);
void text_leaks(struct text *text, int lines);
void text_peak(struct text *text, int lines);
int text_peak_lines(struct text *text); /* that text_peak() would print, given the room */
void text_floor(struct text *text);
int text_floor_lines(const struct report *report); /* that text_floor() is going to print */

/* What text_floor() says of a device's memory pools and frameworks: a sentence each, from `column` on. */
void text_upper_floors(struct text *text, const struct fragmentation *row, int column);
int text_upper_floors_lines(const struct report *report, const struct fragmentation *row, int column);

/* What text_floor() says of who has a device's memory, if anything: a sentence, from `column` on. */
void text_memory(struct text *text, const struct device_memory *row, int column);
int text_memory_lines(const struct report *report, const struct device_memory *row, int column);

/* The details' parts. */
void text_every_growth(struct text *text);
void text_every_suppression(struct text *text);
void text_phases(struct text *text);
void text_sites(struct text *text);
void text_every_oom(struct text *text);
void text_every_peak(struct text *text);
void text_every_layout(struct text *text);
void text_memory_map(struct text *text);
void text_rest(struct text *text);
/* One site's stack as a traceback, most recent call last. */
void text_stack(struct text *text, const struct report_site *site);

/* Rows of lists by line of code: a mark, bytes, their share, the title. */
enum { TEXT_MARK = 2, TEXT_SIZE = 4, TEXT_SHARE = 15, TEXT_TITLE = 22 };
void text_begin_row(struct words *words, bool marked, uint64_t bytes, uint64_t whole);
/* "1.0 MiB in 3 more lines": those behind the first `shown`. */
void text_rest_of_lines(struct text *text, const struct line_list *list, size_t shown);

/* "60 blocks × 3.0 MiB" */
void words_blocks(struct words *words, uint64_t blocks, uint64_t bytes, const struct living *living);
void words_title(struct words *words, const struct report *report, uint32_t site);
/* The same, unshortened where the reader asked for everything. */
void text_title(const struct text *text, struct words *words, uint32_t site);
/* What frame_title() may take for a function. */
int text_function_columns(const struct text *text);

/* source_line.c: the text of a line of the reader's code, if its file is there, readable and not newer than
 * the recording. Without stdio or malloc. False: it is not to be had. */
bool source_line(struct text *text, const struct named_frame *frame, char *line, size_t bytes);

#endif
