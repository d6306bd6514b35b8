/* The comparison for people: first the spaces' figures, then the places that changed, the biggest first. */
#include <string.h>

#include "diff.h"
#include "report/model.h"
#include "report/words.h"

#define FIGURE_COLUMN 34
#define PLACE_COLUMN  24

static void say(struct output *out, struct words *words)
{
    output_safe(out, words->text);
    output_text(out, "\n");
    words->used = 0;
    words->text[0] = 0;
}

static void add_space(struct words *words, const char *space, int device)
{
    for (int kind = 0; kind < SPACE_COUNT; kind++) {
        if (strcmp(space_infos[kind].name, space) == 0) {
            words_space(words, (enum space_kind)kind, device);
            return;
        }
    }
    words_add(words, "%s", space);
}

/* "+64.0 MiB", "no change" */
static void add_size_change(struct words *words, uint64_t before, uint64_t after)
{
    struct difference change = difference(before, after);
    if (change.amount == 0) {
        words_add(words, "no change");
        return;
    }
    words_add(words, "%s", change.less ? "-" : "+");
    words_size(words, change.amount);
}

/* " (+6.7%)"; nothing to say of what was 0. */
static void add_share_change(struct words *words, uint64_t before, uint64_t after)
{
    struct difference change = difference(before, after);
    if (change.amount == 0 || before == 0 || after == 0)
        return;
    words_add(words, " (%s", change.less ? "-" : "+");
    words_share(words, change.amount, before);
    words_add(words, ")");
}

/* "10.0 MiB -> 11.0 MiB", or the one size that both are. */
static void add_sizes(struct words *words, uint64_t before, uint64_t after)
{
    words_size(words, before);
    if (before == after)
        return;
    words_add(words, " → ");
    words_size(words, after);
}

static void add_counts(struct words *words, uint64_t before, uint64_t after, const char *singular)
{
    if (before != after)
        words_add(words, "%llu → ", (unsigned long long)before);
    words_count(words, after, singular);
}

static void say_space_figure(struct output *out, const char *what, uint64_t before, uint64_t after)
{
    struct words words = {0};
    words_add(&words, "    %s", what);
    words_column(&words, FIGURE_COLUMN);
    add_sizes(&words, before, after);
    words_add(&words, ", ");
    add_size_change(&words, before, after);
    add_share_change(&words, before, after);
    say(out, &words);
}

static void say_spaces(const struct comparison *comparison, struct output *out)
{
    struct words words = {0};
    for (size_t i = 0; i < comparison->space_count; i++) {
        const struct compared *space = &comparison->spaces[i];
        words_add(&words, "  ");
        add_space(&words, space->space, space->device);
        say(out, &words);
        say_space_figure(out, "peak", space->before.peak_bytes, space->after.peak_bytes);
        say_space_figure(out, "still allocated at the end", space->before.live_bytes,
                         space->after.live_bytes);
    }
}

/* One or the other run has the place only: its figures as they are. */
static void add_only(struct words *words, const struct saved_figures *figures)
{
    words_size(words, figures->live_bytes);
    words_add(words, " still allocated in ");
    words_count(words, figures->live_blocks, "block");
    words_add(words, "; ");
    words_size(words, figures->peak_bytes);
    words_add(words, " at the peak; ");
    words_count(words, figures->allocs, "allocation");
}

static void add_changed(struct words *words, const struct saved_figures *before,
                        const struct saved_figures *after)
{
    const char *between = "";
    if (before->live_bytes != after->live_bytes || before->live_blocks != after->live_blocks) {
        words_add(words, "still allocated ");
        add_sizes(words, before->live_bytes, after->live_bytes);
        add_share_change(words, before->live_bytes, after->live_bytes);
        words_add(words, " in ");
        add_counts(words, before->live_blocks, after->live_blocks, "block");
        between = "; ";
    }
    if (before->peak_bytes != after->peak_bytes) {
        words_add(words, "%sat the peak ", between);
        add_sizes(words, before->peak_bytes, after->peak_bytes);
        add_share_change(words, before->peak_bytes, after->peak_bytes);
        between = "; ";
    }
    if (before->allocs != after->allocs) {
        words_add(words, "%s", between);
        add_counts(words, before->allocs, after->allocs, "allocation");
        between = "; ";
    }
    if (between[0])
        return;
    if (before->allocated_bytes != after->allocated_bytes) {
        add_sizes(words, before->allocated_bytes, after->allocated_bytes);
        words_add(words, " allocated in all");
    } else if (before->frees != after->frees) {
        add_counts(words, before->frees, after->frees, "free");
    } else {
        words_add(words, "the same bytes in another number of blocks");
    }
}

/* The figure a place is listed for, and ranked by: the bigger change of what is still allocated and of what
 * it held at the peak. */
static void add_headline(struct words *words, const struct compared *place)
{
    struct difference live = difference(place->before.live_bytes, place->after.live_bytes);
    struct difference peak = difference(place->before.peak_bytes, place->after.peak_bytes);
    if (live.amount == 0 && peak.amount == 0) {
        words_add(words, "same bytes");
    } else if (live.amount >= peak.amount) {
        add_size_change(words, place->before.live_bytes, place->after.live_bytes);
    } else {
        add_size_change(words, place->before.peak_bytes, place->after.peak_bytes);
        words_add(words, " at peak");
    }
}

static void say_place(const struct compared *place, bool name_space, struct output *out)
{
    static const char *const states[] = {"", "", "new: ", "gone: "};
    struct words words = {0};
    words_add(&words, "  ");
    add_headline(&words, place);
    words_column(&words, PLACE_COLUMN);
    words_add(&words, "%s", states[place->change]);
    words_add(&words, "%s", place->site->title ? place->site->title : place->site->api);
    if (name_space) {
        words_add(&words, ", ");
        add_space(&words, place->space, place->device);
    }
    if (strcmp(place->layer, layer_names[LAYER_FRAMEWORK]) == 0)
        words_add(&words, ", inside the framework's own memory");
    if (place->suppressed)
        words_add(&words, ", suppressed");
    say(out, &words);
    words_column(&words, PLACE_COLUMN);
    if (place->change == CHANGE_CHANGED)
        add_changed(&words, &place->before, &place->after);
    else
        add_only(&words, place->change == CHANGE_NEW ? &place->after : &place->before);
    say(out, &words);
}

static void say_places(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    const size_t *counts = comparison->counts;
    size_t changed = counts[CHANGE_CHANGED] + counts[CHANGE_NEW] + counts[CHANGE_GONE], listed = 0;
    struct words words = {0};
    words_count(&words, changed, "place");
    words_add(&words, " changed, %zu of them new and %zu gone; %zu as before", counts[CHANGE_NEW],
              counts[CHANGE_GONE], counts[CHANGE_NONE]);
    say(out, &words);
    for (size_t i = 0; i < comparison->place_count; i++) {
        const struct compared *place = &comparison->places[i];
        if (place->change == CHANGE_NONE || (diff->top > 0 && listed == diff->top))
            continue;
        say_place(place, comparison->space_count > 1, out);
        listed++;
    }
    if (changed > listed) {
        words_add(&words, "  … and ");
        words_count(&words, changed - listed, "smaller change");
        words_add(&words, " (--top=0 lists all)");
        say(out, &words);
    }
}

static void say_doubts(const char *path, const struct saved_report *report, struct output *out)
{
    struct words words = {0};
    if (strcmp(report->end, "running") == 0)
        words_add(&words, "note: %s is of a process that still runs", path);
    else if (strcmp(report->end, "killed") == 0)
        words_add(&words,
                  "note: %s is of a process that was killed: what it had not freed yet counts as still "
                  "allocated",
                  path);
    else if (!report->complete)
        words_add(&words, "note: %s is incomplete: some events could not be recorded", path);
    if (words.used > 0)
        say(out, &words);
}

void diff_write_text(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    struct words words = {0};
    words_add(&words, "%s → %s", diff->before_path, diff->after_path);
    say(out, &words);
    say_doubts(diff->before_path, &diff->before, out);
    say_doubts(diff->after_path, &diff->after, out);
    if (comparison->same) {
        words_add(&words, "no change: the same memory at the same ");
        words_count(&words, comparison->place_count, "place");
        say(out, &words);
        return;
    }
    say_spaces(comparison, out);
    output_text(out, "\n");
    say_places(diff, out);
}
