/* The stretches of a timeline (timeline.h): closing one, and merging them in pairs when time outgrows them.
 */
#include <stdlib.h>
#include <string.h>

#include "report/page/timeline_types.h"

static int compare_shares(const void *left, const void *right)
{
    const struct moment_share *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

static bool reach_scratch(struct timeline *timeline, uint32_t count)
{
    if (count <= timeline->scratch_room)
        return true;
    uint32_t room = 2 * count;
    struct moment_share *scratch = realloc(timeline->scratch, room * sizeof *scratch);
    if (!scratch)
        return false;
    timeline->scratch = scratch;
    timeline->scratch_room = room;
    return true;
}

/* Who held what of the space: at the open stretch's fullest moment, or now. NULL without memory. */
static struct moment *take_moment(struct timeline *timeline, const struct followed_space *space, bool fullest)
{
    uint32_t count = 0;
    if (!reach_scratch(timeline, space->sites.count))
        return NULL;
    for (uint32_t i = 0; i < space->sites.count; i++) {
        uint32_t id = *(uint32_t *)list_at(&space->sites, i);
        const struct followed_site *site = list_at(&timeline->sites, id);
        bool noted = fullest && site->epoch == space->epoch;
        uint64_t bytes = noted ? site->bytes_at_fullest : site->bytes;
        if (bytes > 0)
            timeline->scratch[count++] = (struct moment_share){id, bytes};
    }
    qsort(timeline->scratch, count, sizeof *timeline->scratch, compare_shares);
    if (count > TIMELINE_SITES)
        count = TIMELINE_SITES;
    struct moment *moment = malloc(sizeof *moment + count * sizeof moment->shares[0]);
    if (!moment)
        return NULL;
    moment->time_ns = fullest ? space->fullest_ns : space->last_ns;
    moment->bytes = fullest ? space->fullest_bytes : space->bytes;
    moment->count = count;
    memcpy(moment->shares, timeline->scratch, count * sizeof moment->shares[0]);
    return moment;
}

static void close_space(struct timeline *timeline, struct followed_space *space)
{
    struct stretch *stretch = &space->is.stretches[timeline->cell];
    stretch->least_bytes = space->least_bytes;
    stretch->fullest = take_moment(timeline, space, true);
    stretch->last = space->is_at_fullest ? stretch->fullest : take_moment(timeline, space, false);
    if (!stretch->fullest || !stretch->last) {
        timeline->incomplete = true;
        if (stretch->last != stretch->fullest)
            free(stretch->last);
        free(stretch->fullest);
        stretch->fullest = stretch->last = NULL;
    }
    space->is_open = false;
}

void timeline_close(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->spaces.count; i++) {
        struct followed_space *space = *(struct followed_space **)list_at(&timeline->spaces, i);
        if (space->is_open)
            close_space(timeline, space);
    }
}

/* Two stretches become one: the fuller of the two fullest moments, the latter of the two last ones. */
static struct stretch merged(struct stretch early, struct stretch late)
{
    if (!late.fullest)
        return early;
    if (!early.fullest)
        return late;
    bool late_is_fuller = late.fullest->bytes > early.fullest->bytes;
    struct stretch both = {
        .fullest = late_is_fuller ? late.fullest : early.fullest,
        .last = late.last,
        .least_bytes = late.least_bytes < early.least_bytes ? late.least_bytes : early.least_bytes,
    };
    if (early.last != early.fullest)
        free(early.last);
    if (late_is_fuller)
        free(early.fullest);
    else if (late.fullest != late.last)
        free(late.fullest);
    return both;
}

static void merge_pairs(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->spaces.count; i++) {
        struct stretch *stretches = (*(struct followed_space **)list_at(&timeline->spaces, i))->is.stretches;
        for (uint32_t k = 0; k < TIMELINE_CELLS / 2; k++)
            stretches[k] = merged(stretches[2 * k], stretches[2 * k + 1]);
        memset(stretches + TIMELINE_CELLS / 2, 0, TIMELINE_CELLS / 2 * sizeof *stretches);
    }
    timeline_merge_phases(timeline);
    timeline->width_log2++;
    timeline->cell /= 2;
}

void timeline_advance(struct timeline *timeline, uint64_t time_ns)
{
    /* Times of two threads may be a little out of order: an earlier one counts for the newest stretch. */
    uint64_t since = time_ns > timeline->origin_ns ? time_ns - timeline->origin_ns : 0;
    if (since >> timeline->width_log2 <= timeline->cell)
        return;
    timeline_close(timeline);
    while (since >> timeline->width_log2 >= TIMELINE_CELLS)
        merge_pairs(timeline);
    timeline->cell = (uint32_t)(since >> timeline->width_log2);
}
