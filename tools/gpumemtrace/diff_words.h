/* How differences are worded, the same in every output of `gpumemtrace diff`. Adds to `words`; raw text. */
#ifndef GPUMEMTRACE_DIFF_WORDS_H
#define GPUMEMTRACE_DIFF_WORDS_H

#include "comparison.h"
#include "report/words.h"

/* "device 0", "pinned host memory", from a space's name in reports. False: that is an unknown one, which was
 * taken as it is. */
bool diff_add_space(struct words *words, const char *space, int device);
/* "+64.0 MiB", "no change" */
void diff_add_size_change(struct words *words, uint64_t before, uint64_t after);
/* " (+6.7%)"; nothing to say of what was 0 */
void diff_add_share_change(struct words *words, uint64_t before, uint64_t after);
/* "10.0 MiB → 11.0 MiB", or the one size that both are */
void diff_add_sizes(struct words *words, uint64_t before, uint64_t after);
/* The figure a place is listed for, and ranked by: the bigger change of what is still allocated and of what
 * it held at the peak. */
void diff_add_headline(struct words *words, const struct compared *place);
/* The figures of a place that only one of the runs has */
void diff_add_only(struct words *words, const struct saved_figures *figures);
/* … and what changed at one that both have, and what was to be expected where that is not what was before */
void diff_add_changed(struct words *words, const struct compared *place);
/* "after.gmt is 2.0 times as long as before.gmt (50 → 100 steps); what goes on …": a run of another length,
 * and what that means for the comparison; or that it is unknown since phases do not agree. False, and
 * nothing, where it is not known to be of another. */
bool diff_add_length(struct words *words, const struct run_length *length, const char *after_path,
                     const char *before_path);

#endif
