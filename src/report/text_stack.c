/*
 * A stack as Python prints one: most recent call last, with the native frames between the Python line and the
 * API where they belong, at its end. What is not the reader's own folds to one line a run.
 */
#include <stdio.h>
#include <string.h>

#include "report/text.h"

enum {
    NAMED = 4,       /* modules named in one folded line */
    LINES_MAX = 256, /* of one stack, unless everything was asked for: further frames are folded */
};

struct fold {
    size_t frames, names;
    char name[NAMED][FOLD_NAME_MAX];
};

static void fold_in(struct fold *fold, const struct named_frame *frame)
{
    char name[FOLD_NAME_MAX];
    frame_fold_name(frame, name);
    fold->frames++;
    for (size_t i = 0; i < fold->names && i < NAMED; i++)
        if (strcmp(fold->name[i], name) == 0)
            return;
    if (fold->names < NAMED)
        memcpy(fold->name[fold->names], name, sizeof name);
    fold->names++;
}

static void say_fold(struct text *text, struct fold *fold)
{
    struct words words = {0};
    if (fold->frames == 0)
        return;
    words_add(&words, "      … ");
    words_count(&words, fold->frames, "frame");
    words_add(&words, " in ");
    for (size_t i = 0; i < fold->names && i < NAMED; i++)
        words_add(&words, "%s%s", i ? ", " : "", fold->name[i]);
    if (fold->names > NAMED)
        words_add(&words, ", …");
    text_line(text, &words);
    *fold = (struct fold){0};
}

/* Of any length, and so not put together in one buffer. */
static void say_whole_frame(struct text *text, const struct named_frame *frame)
{
    struct output *out = text->out;
    char number[32];
    const char *where = frame->file ? frame->file : frame->module;
    if (frame->file && frame->line)
        snprintf(number, sizeof number, ":%d", frame->line);
    else if (!frame->file && !frame->function)
        snprintf(number, sizeof number, "+0x%llx", (unsigned long long)frame->offset);
    else
        number[0] = '\0';
    if (frame->file || !frame->function) {
        output_safe(out, where ? where : "code without a file at ");
        output_text(out, where ? number : number + strlen("+"));
    }
    if (frame->function || frame->file) {
        output_text(out, frame->file ? " in " : "");
        output_safe(out, frame->function ? frame->function : "?");
    }
    if (frame->function && !frame->file) {
        output_text(out, " in ");
        output_safe(out, where ? where : "code without a file");
    }
    if (frame->why)
        output_format(out, " (%s)", frame->why);
}

/* In one line: with its whole path where the function, shortened, has room behind that. */
static void add_frame(struct words *words, const struct named_frame *frame)
{
    enum { MARK_INLINED = 10 };
    char title[TITLE_MAX], function[SHORT_NAME_MAX];
    size_t before = words->used;
    int width = TEXT_WIDTH - (frame->inlined ? MARK_INLINED : 0);
    if (frame->file) {
        words_add(words, "%s", frame->file);
        if (frame->line)
            words_add(words, ":%d", frame->line);
        words_add(words, " in ");
        words_add(
            words, "%s",
            short_name(frame->function ? frame->function : "?", width - words_columns(words), function));
        if (words_columns(words) <= width)
            return;
    }
    words->used = before;
    words->text[before] = '\0';
    words_add(words, "%s", frame_title(frame, TITLE_FUNCTION, title, sizeof title));
}

static void say_frame(struct text *text, const struct named_frame *frame, bool is_title)
{
    struct words words = {0};
    char source[160];
    if (text->options.full) {
        output_text(text->out, is_title ? "    > " : "      ");
        say_whole_frame(text, frame);
        output_text(text->out, frame->inlined ? " (inlined)" : "");
    } else {
        words_add(&words, is_title ? "    > " : "      ");
        add_frame(&words, frame);
        words_add(&words, frame->inlined ? " (inlined)" : "");
    }
    text_line(text, &words);
    if (is_title && source_line(text, frame, source, sizeof source)) {
        words_add(&words, "          %s", source);
        text_line(text, &words);
    }
}

void text_stack(struct text *text, const struct report_site *site)
{
    size_t count;
    const struct named_frame *const *frames = report_stack(text->report, site->stack, &count);
    struct fold fold = {0};
    size_t lines = 0;
    for (size_t i = count; i-- > 0 && !text->out->error;) {
        const struct named_frame *frame = frames[i];
        bool wanted = frame->rank <= RANK_TYPED || (text->options.native && frame->kind == FRAME_NATIVE);
        bool shown = text->options.full || frame == site->title || (wanted && lines < LINES_MAX);
        lines += shown;
        if (!shown) {
            fold_in(&fold, frame);
            continue;
        }
        say_fold(text, &fold);
        say_frame(text, frame, frame == site->title);
    }
    say_fold(text, &fold);
}
