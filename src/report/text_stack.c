/*
 * A stack as Python prints one: most recent call last, with the native frames between the Python line and the
 * API where they belong, at its end. What is not the reader's own folds to one line a run.
 */
#include <string.h>

#include "report/text.h"

enum { NAMED = 4 /* modules named in one folded line */, NAME_MAX_BYTES = 64 };

struct fold {
    size_t frames, names;
    char name[NAMED][NAME_MAX_BYTES];
};

/* The package under site-packages, the standard library's file, or the native module. */
static void fold_name(const struct named_frame *frame, char *name)
{
    const char *from = frame->module ? base_name(frame->module) : "code without a file";
    size_t length = strlen(from);
    if (frame->kind == FRAME_PYTHON) {
        const char *package = frame->file ? strstr(frame->file, "-packages/") : NULL;
        from = package ? package + strlen("-packages/") : frame->file ? base_name(frame->file) : "?";
        length = strcspn(from, "/");
    }
    length = length < NAME_MAX_BYTES - 1 ? length : NAME_MAX_BYTES - 1;
    memcpy(name, from, length);
    name[length] = '\0';
}

static void fold_in(struct fold *fold, const struct named_frame *frame)
{
    char name[NAME_MAX_BYTES];
    fold_name(frame, name);
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

static void say_frame(struct text *text, const struct named_frame *frame, bool is_title)
{
    struct words words = {0};
    char title[TITLE_MAX], source[160];
    words_add(&words, "    %s ", is_title ? ">" : " ");
    if (frame->file) {
        words_add(&words, "%s", frame->file);
        if (frame->line)
            words_add(&words, ":%d", frame->line);
        words_add(&words, " in %s", frame->function ? frame->function : "?");
    } else {
        words_add(&words, "%s", frame_title(frame, text->options.full, title, sizeof title));
    }
    if (frame->inlined)
        words_add(&words, " (inlined)");
    if (words_columns(&words) > TEXT_WIDTH && !text->options.full) {
        words.used = 0;
        words_add(&words, "    %s %s", is_title ? ">" : " ", frame_title(frame, false, title, sizeof title));
    }
    text_line(text, &words);
    if (is_title && source_line(text->report, frame, source, sizeof source)) {
        words_add(&words, "          %s", source);
        text_line(text, &words);
    }
}

void text_stack(struct text *text, const struct report_site *site)
{
    size_t count;
    const struct named_frame *const *frames = report_stack(text->report, site->stack, &count);
    struct fold fold = {0};
    for (size_t i = count; i-- > 0;) {
        const struct named_frame *frame = frames[i];
        bool shown = text->options.full || frame->rank == RANK_OWN || frame == site->title ||
                     (text->options.native && frame->kind == FRAME_NATIVE);
        if (!shown) {
            fold_in(&fold, frame);
            continue;
        }
        say_fold(text, &fold);
        say_frame(text, frame, frame == site->title);
    }
    say_fold(text, &fold);
}
