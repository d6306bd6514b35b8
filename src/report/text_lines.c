/*
 * The first screen's list of what is still allocated, by line of the reader's code. Every statement in it is
 * a fact of the books; what it means is left to the reader, except for one mark.
 */
#include <string.h>

#include "report/text.h"

static bool is_marked(const struct source_line *line)
{
    return line->reason == REASON_GREW || line->reason == REASON_ADDS_UP;
}

void text_begin_row(struct words *words, bool marked, uint64_t bytes, uint64_t whole)
{
    words_add(words, "%*s%s", TEXT_MARK, "", marked ? ">" : " ");
    words_column(words, TEXT_SIZE);
    words_size(words, bytes);
    words_column(words, TEXT_SHARE);
    words_share(words, bytes, whole);
    words_column(words, TEXT_TITLE);
}

/* "none freed, one every 1.0 s from 200 ms to 59.1 s" */
static void say_life(struct words *words, const struct source_line *line)
{
    const struct living *living = &line->living;
    if (line->frees)
        words_add(words, ", %llu others freed", (unsigned long long)line->frees);
    else if (line->blocks > 1)
        words_add(words, ", none freed");
    if (line->blocks == 1) {
        words_add(words, ", since ");
        words_time(words, living->oldest_ns);
        return;
    }
    words_add(words, line->reason == REASON_LATE ? ", late in the run: " : ", ");
    if (is_marked(line) && line->frees == 0) {
        words_add(words, "one every ");
        words_time(words, (living->newest_ns - living->oldest_ns) / (line->blocks - 1));
        words_add(words, " ");
    }
    words_add(words, "from ");
    words_time(words, living->oldest_ns);
    words_add(words, " to ");
    words_time(words, living->newest_ns);
}

static const char *language(const struct named_frame *frame)
{
    static const char *const languages[][2] = {{".c", "C"}, {".rs", "Rust"}, {".go", "Go"}};
    const char *suffix = frame->file ? strrchr(frame->file, '.') : NULL;
    for (size_t i = 0; suffix && i < sizeof languages / sizeof languages[0]; i++)
        if (strcmp(suffix, languages[i][0]) == 0)
            return languages[i][1];
    return "C++";
}

/* What of the reader's own native code the line goes through: "in C++ arena.h:41 in Arena<float>::grow". */
static bool add_native(struct words *words, struct text *text, const struct source_line *line)
{
    const struct report_site *site = &text->report->sites[line->site];
    const struct named_frame *native = report_own_frame(text->report, site->stack, FRAME_NATIVE);
    char title[TITLE_MAX];
    if (!native || !site->title || site->title->kind != FRAME_PYTHON)
        return false;
    words_add(words, "in %s %s", language(native),
              frame_title(native, text_function_columns(text), title, sizeof title));
    return true;
}

static bool add_caller(struct words *words, struct text *text, const struct source_line *line)
{
    const struct report_site *site = &text->report->sites[line->site];
    char title[TITLE_MAX];
    if (site->caller_frame == CATALOG_NONE || text->report->names[site->caller_frame].count == 0)
        return false;
    words_add(words, "called by %s%s",
              frame_title(text->report->names[site->caller_frame].names, text_function_columns(text), title,
                          sizeof title),
              line->site_count > 1 ? " and others" : "");
    return true;
}

static bool add_source(struct words *words, struct text *text, const struct source_line *line)
{
    const struct named_frame *title = text->report->sites[line->site].title;
    char source[160];
    if (!title || !source_line(text, title, source, sizeof source))
        return false;
    words_add(words, "    %s", source);
    return true;
}

static void say_figures(struct text *text, const struct source_line *line)
{
    const char *api = text->report->sites[line->site].api;
    struct words words = {0};
    words_add(&words, "%*s", TEXT_TITLE, "");
    words_blocks(&words, line->blocks, line->bytes, &line->living);
    say_life(&words, line);
    if (api && words_columns(&words) + (int)strlen(api) + 2 <= TEXT_WIDTH)
        words_add(&words, "; %s", api);
    text_line(text, &words);
}

/* One more line about it, if there is room and something to say; returns how many. */
static int say_extra(struct text *text, const struct source_line *line, int room,
                     bool (*add)(struct words *, struct text *, const struct source_line *))
{
    struct words words = {0};
    words_add(&words, "%*s", TEXT_TITLE, "");
    if (room <= 0 || !add(&words, text, line))
        return 0;
    text_line(text, &words);
    return 1;
}

/* Two lines, and up to `most` extra ones; returns how many of these. */
static int say_line(struct text *text, const struct source_line *line, uint64_t whole, int most)
{
    struct words words = {0};
    text_begin_row(&words, is_marked(line), line->bytes, whole);
    text_title(text, &words, line->site);
    text_line(text, &words);
    int extra = say_extra(text, line, most, add_source);
    extra += say_extra(text, line, most - extra, add_native);
    say_figures(text, line);
    return extra + say_extra(text, line, most - extra, add_caller);
}

void text_rest_of_lines(struct text *text, const struct line_list *list, size_t shown)
{
    uint64_t bytes = 0;
    struct words words = {0};
    for (size_t i = shown; i < list->count; i++)
        bytes += list->lines[i].bytes;
    words_column(&words, TEXT_SIZE);
    words_size(&words, bytes);
    words_column(&words, TEXT_TITLE);
    words_add(&words, "in ");
    words_count(&words, list->count - shown, "more line");
    text_line(text, &words);
}

static bool has_marks(const struct line_list *list)
{
    return list->count > 0 && is_marked(&list->lines[0]);
}

enum { LIST_HEAD = 2, ROW_LINES = 2, EXTRA = 2, EXTRA_MOST = 3 };

/* Two lines a row; what is left over goes to the first rows: their source, native code and caller. */
static void say_list(struct text *text, const struct line_list *list, uint64_t whole, int lines)
{
    int left = lines - LIST_HEAD - has_marks(list);
    size_t shown = list->count;
    if (!text->options.full && (int)shown * ROW_LINES + EXTRA > left)
        shown = left > EXTRA + 2 * ROW_LINES ? (size_t)(left - 1 - EXTRA) / ROW_LINES : 1;
    shown = shown < list->count ? shown : list->count;
    left -= (int)shown * ROW_LINES + (shown < list->count);
    for (size_t i = 0; i < shown; i++) {
        int most = left < EXTRA_MOST && !text->options.full ? left : EXTRA_MOST;
        left -= say_line(text, &list->lines[i], whole, most);
    }
    if (shown < list->count)
        text_rest_of_lines(text, list, shown);
    if (has_marks(list))
        text_say(text, "  > keeps adding up, all through the run: look here first");
}

static void head_list(struct text *text, const char *before, uint64_t bytes, uint64_t blocks)
{
    struct words words = {0};
    text_line(text, &words);
    words_add(&words, "%s", before);
    words_size(&words, bytes);
    words_add(&words, " in ");
    words_count(&words, blocks, "block");
    words_add(&words, ", by line of code");
    text_line(text, &words);
}

/* The lines that the list would take at most, and at least. */
static int lines_of(const struct line_list *list, bool most)
{
    size_t rows = most || list->count < 2 ? list->count : 2;
    return list->count ? LIST_HEAD + (int)rows * (ROW_LINES + (most ? EXTRA_MOST : 0)) : 0;
}

/* At exit all of a framework's cache is alive: what its allocator had handed out of it tells more, and gets
 * what room there is. */
static int framework_share(const struct leaks *leaks, int lines)
{
    int wanted = lines_of(&leaks->framework_lines, true), others = lines_of(&leaks->lines, false);
    return wanted < lines - others ? wanted : lines - others;
}

static void say_suppressed(struct text *text)
{
    const struct leaks *leaks = &text->report->leaks;
    struct words words = {0};
    if (leaks->suppressed_blocks == 0)
        return;
    words_add(&words, "  suppressed: ");
    words_size(&words, leaks->suppressed_bytes);
    words_add(&words, " in ");
    words_count(&words, leaks->suppressed_blocks, "block");
    words_add(&words, ", told below");
    text_line(text, &words);
}

void text_leaks(struct text *text, int lines)
{
    const struct leaks *leaks = &text->report->leaks;
    struct words words = {0};
    int of_frameworks = framework_share(leaks, lines);
    lines -= leaks->suppressed_blocks > 0;
    if (leaks->live_blocks == 0) {
        text_line(text, &words);
        words_add(&words, "Nothing%s was still allocated %s.", leaks->suppressed_blocks ? " else" : "",
                  text_when(text->report));
        text_line(text, &words);
    } else {
        words_add(&words, "Still allocated %s: ", text_when(text->report));
        head_list(text, words.text, leaks->live_bytes, leaks->live_blocks);
        say_list(text, &leaks->lines, leaks->live_bytes, lines - of_frameworks);
    }
    say_suppressed(text);
    if (leaks->framework_blocks) {
        head_list(text, "Of it, handed out by frameworks (tensors): ", leaks->framework_bytes,
                  leaks->framework_blocks);
        say_list(text, &leaks->framework_lines, leaks->framework_bytes, of_frameworks);
    }
}

void text_every_suppression(struct text *text)
{
    const struct leaks *leaks = &text->report->leaks;
    struct words words = {0};
    if (leaks->suppressed_blocks == 0)
        return;
    text_line(text, &words);
    text_say(text, "Still allocated, but suppressed");
    for (size_t i = 0; i < leaks->suppressed_count; i++) {
        const struct suppressed *row = &leaks->suppressed[i];
        if (row->blocks == 0)
            continue;
        text_begin_row(&words, false, row->bytes, leaks->suppressed_bytes);
        words_count(&words, row->blocks, "block");
        if (row->by->file)
            words_add(&words, ", leak:%s at %s:%u", row->by->pattern, base_name(row->by->file),
                      row->by->line);
        else
            words_add(&words, ", by %s*", row->by->pattern);
        if (row->by->reason)
            words_add(&words, ": %s", row->by->reason);
        text_line(text, &words);
    }
}
