/* The comparison for people: first the spaces' figures, then the places that changed, the biggest first. */
#include <string.h>

#include "diff.h"
#include "diff_words.h"
#include "report/words.h"

#define FIGURE_COLUMN 34
#define PLACE_COLUMN  24

static void say_space_figure(struct output *out, const char *what, uint64_t before, uint64_t after)
{
    struct words words = {0};
    words_add(&words, "    %s", what);
    words_column(&words, FIGURE_COLUMN);
    diff_add_sizes(&words, before, after);
    words_add(&words, ", ");
    diff_add_size_change(&words, before, after);
    diff_add_share_change(&words, before, after);
    words_end_line(&words, out);
}

static void say_spaces(const struct comparison *comparison, struct output *out)
{
    struct words words = {0};
    for (size_t i = 0; i < comparison->space_count; i++) {
        const struct compared *space = &comparison->spaces[i];
        words_add(&words, "  ");
        diff_add_space(&words, space->space, space->device);
        words_end_line(&words, out);
        say_space_figure(out, "peak", space->before.peak_bytes, space->after.peak_bytes);
        say_space_figure(out, "still allocated at the end", space->before.live_bytes,
                         space->after.live_bytes);
    }
}

static void say_place(const struct compared *place, bool name_space, struct output *out)
{
    static const char *const states[] = {"", "", "new: ", "gone: "};
    struct words words = {0};
    words_add(&words, "  ");
    diff_add_headline(&words, place);
    words_column(&words, PLACE_COLUMN);
    words_add(&words, "%s", states[place->change]);
    words_add(&words, "%s", place->site->title ? place->site->title : place->site->api);
    if (name_space) {
        words_add(&words, ", ");
        diff_add_space(&words, place->space, place->device);
    }
    if (strcmp(place->layer, layer_names[LAYER_FRAMEWORK]) == 0)
        words_add(&words, ", inside the framework's own memory");
    if (place->suppressed)
        words_add(&words, ", suppressed");
    words_end_line(&words, out);
    words_column(&words, PLACE_COLUMN);
    if (place->change == CHANGE_CHANGED)
        diff_add_changed(&words, place);
    else
        diff_add_only(&words, place->change == CHANGE_NEW ? &place->after : &place->before);
    words_end_line(&words, out);
}

static void say_places(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    const size_t *counts = comparison->counts;
    size_t changed = counts[CHANGE_CHANGED] + counts[CHANGE_NEW] + counts[CHANGE_GONE], listed = 0;
    struct words words = {0};
    if (changed > 0)
        words_count(&words, changed, "place");
    words_add(&words, "%s changed", changed > 0 ? "" : "no place");
    if (counts[CHANGE_NEW] + counts[CHANGE_GONE] > 0)
        words_add(&words, ", %zu of them new and %zu gone", counts[CHANGE_NEW], counts[CHANGE_GONE]);
    words_add(&words, "; %zu as before", counts[CHANGE_NONE] - comparison->adding_up);
    if (comparison->adding_up > 0)
        words_add(&words, "; %zu that add%s up by the length of the run", comparison->adding_up,
                  comparison->adding_up == 1 ? "s" : "");
    words_end_line(&words, out);
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
        words_end_line(&words, out);
    }
}

/* What makes totals differ besides: it adds up, and only for longer or shorter. */
static void say_by_length(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    size_t listed = 0;
    struct words words = {0};
    for (size_t i = 0; i < comparison->place_count; i++) {
        const struct compared *place = &comparison->places[i];
        if (!comparison_adds_up(place) || (diff->top > 0 && listed == diff->top))
            continue;
        words_add(&words, "by the length of the run alone: still allocated ");
        diff_add_sizes(&words, place->before.live_bytes, place->after.live_bytes);
        words_add(&words, " at %s, which adds up",
                  place->site->title ? place->site->title : place->site->api);
        words_end_line(&words, out);
        listed++;
    }
    if (comparison->adding_up > listed) {
        words_add(&words, "  … and %zu more that add up (--top=0 lists all)", comparison->adding_up - listed);
        words_end_line(&words, out);
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
        words_end_line(&words, out);
}

/* Then counts of allocations say little, and bytes and growth a second still do. */
static void say_unknown_length(const struct diff *diff, struct output *out)
{
    uint64_t before = diff->before[0].duration_ns, after = diff->after.duration_ns;
    uint64_t longer = before > after ? before : after, shorter = before > after ? after : before;
    struct words words = {0};
    if (longer / 4 * 3 < shorter || diff->comparison.same ||
        diff->comparison.lengths[0].basis != LENGTH_UNKNOWN || diff->comparison.lengths[0].phases_differ)
        return;
    words_add(&words, "note: the runs took ");
    words_time(&words, before);
    words_add(&words, " and ");
    words_time(&words, after);
    words_add(&words, ": if that is more work, --length=TIMES as much compares by it");
    words_end_line(&words, out);
}

static void say_lengths(const struct diff *diff, struct output *out)
{
    struct words words = {0};
    for (size_t i = 0; i < diff->before_count; i++) {
        words_add(&words, "note: ");
        if (diff_add_length(&words, &diff->comparison.lengths[i], diff->after_path, diff->before_paths[i]))
            words_end_line(&words, out);
        words = (struct words){0};
    }
    say_unknown_length(diff, out);
}

static void say_runs(const struct diff *diff, struct output *out)
{
    struct words words = {0};
    words_add(&words, "%s", diff->before_paths[0]);
    if (diff->before_count > 1)
        words_add(&words, " and %zu more", diff->before_count - 1);
    words_add(&words, " → %s", diff->after_path);
    words_end_line(&words, out);
    for (size_t i = 0; i < diff->before_count; i++)
        say_doubts(diff->before_paths[i], &diff->before[i], out);
    say_doubts(diff->after_path, &diff->after, out);
    say_lengths(diff, out);
    if (diff->before_count > 1) {
        words_add(&words,
                  "note: the medians of %zu runs stand for what was before; what lies within their spread is "
                  "no change",
                  diff->before_count);
        words_end_line(&words, out);
    }
}

static void say_gates(const struct diff *diff, struct output *out)
{
    struct words words = {0};
    for (size_t i = 0; i < diff->gates.count; i++) {
        words_add(&words, "%s %s: %s",
                  diff->gates.results[i].failed ? "failed:" : "good:  ", diff->gates.gates[i].text,
                  diff->gates.results[i].why);
        words_end_line(&words, out);
    }
}

static bool is_as_long(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->before_count; i++)
        if (comparison->lengths[i].ratio != 1)
            return false;
    return true;
}

void diff_write_text(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    struct words words = {0};
    say_runs(diff, out);
    if (comparison->same && comparison->adding_up == 0) {
        words_add(&words, is_as_long(comparison) ? "no change: the same memory at the same "
                                                 : "no change beyond the length of the run at the same ");
        words_count(&words, comparison->place_count, "place");
        words_end_line(&words, out);
    } else {
        say_spaces(comparison, out);
        output_text(out, "\n");
        say_places(diff, out);
        say_by_length(diff, out);
    }
    if (diff->gates.count > 0)
        output_text(out, "\n");
    say_gates(diff, out);
}
