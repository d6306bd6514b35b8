/* The wording of differences; see diff_words.h. */
#include "diff_words.h"

#include <math.h>
#include <string.h>

#include "report/model.h"

bool diff_add_space(struct words *words, const char *space, int device)
{
    for (int kind = 0; kind < SPACE_COUNT; kind++) {
        if (strcmp(space_infos[kind].name, space) == 0) {
            words_space(words, (enum space_kind)kind, device);
            return true;
        }
    }
    words_add(words, "%s", space);
    return false;
}

/* "+64.0 MiB", "no change" */
void diff_add_size_change(struct words *words, uint64_t before, uint64_t after)
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
void diff_add_share_change(struct words *words, uint64_t before, uint64_t after)
{
    struct difference change = difference(before, after);
    if (change.amount == 0 || before == 0 || after == 0)
        return;
    words_add(words, " (%s", change.less ? "-" : "+");
    words_share(words, change.amount, before);
    words_add(words, ")");
}

/* "10.0 MiB -> 11.0 MiB", or the one size that both are. */
void diff_add_sizes(struct words *words, uint64_t before, uint64_t after)
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

/* One or the other run has the place only: its figures as they are. */
void diff_add_only(struct words *words, const struct saved_figures *figures)
{
    words_size(words, figures->live_bytes);
    words_add(words, " still allocated in ");
    words_count(words, figures->live_blocks, "block");
    words_add(words, "; ");
    words_size(words, figures->peak_bytes);
    words_add(words, " at the peak; ");
    words_count(words, figures->allocs, "allocation");
}

/* "; 100.0 MiB expected": by the length of the run alone */
static void add_expected_size(struct words *words, uint64_t before, uint64_t expected)
{
    if (expected == before)
        return;
    words_add(words, ", ");
    words_size(words, expected);
    words_add(words, " expected,");
}

static void add_size_changed(struct words *words, uint64_t before, uint64_t expected, uint64_t after)
{
    diff_add_sizes(words, before, after);
    if (expected == before)
        diff_add_share_change(words, before, after);
    add_expected_size(words, before, expected);
}

static void add_counts_changed(struct words *words, uint64_t before, uint64_t expected, uint64_t after,
                               const char *singular)
{
    add_counts(words, before, after, singular);
    if (expected != before && expected != after)
        words_add(words, ", %llu expected", (unsigned long long)expected);
}

void diff_add_changed(struct words *words, const struct compared *place)
{
    const struct saved_figures *before = &place->before, *expected = &place->expected, *after = &place->after;
    const char *between = "";
    if (expected->live_bytes != after->live_bytes || expected->live_blocks != after->live_blocks) {
        words_add(words, "still allocated ");
        add_size_changed(words, before->live_bytes, expected->live_bytes, after->live_bytes);
        words_add(words, " in ");
        add_counts(words, before->live_blocks, after->live_blocks, "block");
        between = "; ";
    }
    if (expected->peak_bytes != after->peak_bytes) {
        words_add(words, "%sat the peak ", between);
        add_size_changed(words, before->peak_bytes, expected->peak_bytes, after->peak_bytes);
        between = "; ";
    }
    if (expected->allocs != after->allocs) {
        words_add(words, "%s", between);
        add_counts_changed(words, before->allocs, expected->allocs, after->allocs, "allocation");
        between = "; ";
    }
    if (between[0])
        return;
    if (expected->allocated_bytes != after->allocated_bytes) {
        add_size_changed(words, before->allocated_bytes, expected->allocated_bytes, after->allocated_bytes);
        words_add(words, " allocated in all");
    } else if (expected->frees != after->frees) {
        add_counts_changed(words, before->frees, expected->frees, after->frees, "free");
    } else {
        words_add(words, "the same bytes in another number of blocks");
    }
}

static const char what_is_compared[] = "what goes on all through a run is compared";

/* As many as tell it from 0 and from 1. */
static int digits(double ratio)
{
    return ratio < 0.1 || fabs(ratio - 1) < 0.1 ? 3 : 1;
}

bool diff_add_length(struct words *words, const struct run_length *length, const char *after_path,
                     const char *before_path)
{
    unsigned long long before = length->before, after = length->after;
    const char *is = length->basis == LENGTH_CALLS ? "is taken for" : "is";
    if (length->phases_differ) {
        words_add(
            words,
            "how long %s is beside %s is unknown, for their phases do not agree: numbers are compared as "
            "they are; --length=TIMES compares by it",
            after_path, before_path);
        return true;
    }
    if (length->ratio == 1)
        return false;
    if (fabs(length->ratio - 1) < 0.0005) /* would be 1.000 */
        words_add(words, "%s %s almost as long as %s ", after_path, is, before_path);
    else
        words_add(words, "%s %s %.*f times as long as %s ", after_path, is, digits(length->ratio),
                  length->ratio, before_path);
    switch (length->basis) {
    case LENGTH_STEPS:
        words_add(words, "(%llu → %llu steps): %s per step", before, after, what_is_compared);
        break;
    case LENGTH_PHASE:
        words_add(words, "(phase %s: %llu → %llu times): %s by that", length->phase, before, after,
                  what_is_compared);
        break;
    case LENGTH_CALLS:
        words_add(words,
                  "(%zu of %zu places allocate so much more often): %s by that; --length=1 compares "
                  "numbers as they are",
                  length->agreeing, length->asked, what_is_compared);
        break;
    default:
        words_add(words, "(as --length says): %s by that", what_is_compared);
    }
    return true;
}

/* The figure a place is listed for, and ranked by: the bigger change of what is still allocated and of what
 * it held at the peak. */
void diff_add_headline(struct words *words, const struct compared *place)
{
    const struct saved_figures *expected = &place->expected, *after = &place->after;
    struct difference live = difference(expected->live_bytes, after->live_bytes);
    struct difference peak = difference(expected->peak_bytes, after->peak_bytes);
    if (live.amount == 0 && peak.amount == 0) {
        words_add(words, "same bytes");
    } else if (live.amount >= peak.amount) {
        diff_add_size_change(words, expected->live_bytes, after->live_bytes);
    } else {
        diff_add_size_change(words, expected->peak_bytes, after->peak_bytes);
        words_add(words, " at peak");
    }
}
