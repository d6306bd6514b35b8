/* The wording of differences; see diff_words.h. */
#include "diff_words.h"

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

void diff_add_changed(struct words *words, const struct saved_figures *before,
                      const struct saved_figures *after)
{
    const char *between = "";
    if (before->live_bytes != after->live_bytes || before->live_blocks != after->live_blocks) {
        words_add(words, "still allocated ");
        diff_add_sizes(words, before->live_bytes, after->live_bytes);
        diff_add_share_change(words, before->live_bytes, after->live_bytes);
        words_add(words, " in ");
        add_counts(words, before->live_blocks, after->live_blocks, "block");
        between = "; ";
    }
    if (before->peak_bytes != after->peak_bytes) {
        words_add(words, "%sat the peak ", between);
        diff_add_sizes(words, before->peak_bytes, after->peak_bytes);
        diff_add_share_change(words, before->peak_bytes, after->peak_bytes);
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
        diff_add_sizes(words, before->allocated_bytes, after->allocated_bytes);
        words_add(words, " allocated in all");
    } else if (before->frees != after->frees) {
        add_counts(words, before->frees, after->frees, "free");
    } else {
        words_add(words, "the same bytes in another number of blocks");
    }
}

/* The figure a place is listed for, and ranked by: the bigger change of what is still allocated and of what
 * it held at the peak. */
void diff_add_headline(struct words *words, const struct compared *place)
{
    struct difference live = difference(place->before.live_bytes, place->after.live_bytes);
    struct difference peak = difference(place->before.peak_bytes, place->after.peak_bytes);
    if (live.amount == 0 && peak.amount == 0) {
        words_add(words, "same bytes");
    } else if (live.amount >= peak.amount) {
        diff_add_size_change(words, place->before.live_bytes, place->after.live_bytes);
    } else {
        diff_add_size_change(words, place->before.peak_bytes, place->after.peak_bytes);
        words_add(words, " at peak");
    }
}
