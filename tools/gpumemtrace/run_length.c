/* Runs of different length; see run_length.h. */
#include "run_length.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define UNKNOWN     UINT64_MAX
#define TOLERANCE   0.01 /* of a figure that follows the length */
#define CALLS_MIN   4    /* of a place that has a say in how long a run is */
#define PLACES_MIN  4    /* that are asked, and of which two thirds agree */
#define RATIO_LEAST 1.25 /* by calls: less is rather a change of the program, as one layer more */

/* Half of the time between two moments: from the first allocation of a run, or the beginning of its work
 * where that is known, to the last allocation. A place that is still at work then was not set up once. */
static uint64_t middle(const struct saved_report *report, uint64_t begin_ns)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct saved_site *site = &report->sites[i];
        if (site->figures.last_time_ns > last)
            last = site->figures.last_time_ns;
        if (site->figures.last_time_ns > 0 && site->first_time_ns < first)
            first = site->first_time_ns;
    }
    if (begin_ns == UNKNOWN)
        begin_ns = first;
    return last > begin_ns ? begin_ns + (last - begin_ns) / 2 : last;
}

/* Something that happens every so many steps: in a run of twice the length twice as often, or once more or
 * less for what was left over of its round. */
static bool follows(double ratio, uint64_t before, uint64_t after)
{
    double least = ratio * (double)before * (1 - TOLERANCE) - 1;
    double most = ratio * (double)(before + 1) * (1 + TOLERANCE);
    return (double)after >= least && (double)after <= most;
}

/* All phases of one name. */
struct rounds {
    const char *name;
    uint64_t before, after;
    uint64_t first_before_ns, first_after_ns;
    UT_hash_handle hh;
};

static void add_rounds(uint64_t *sum, uint64_t *first_ns, const struct saved_phase *phase)
{
    if (__builtin_add_overflow(*sum, phase->count, sum))
        *sum = UINT64_MAX;
    if (phase->first_time_ns < *first_ns)
        *first_ns = phase->first_time_ns;
}

/* Those that began twice or more in both runs, which is where counting says something; how many. `rounds` is
 * room for all of the run before. */
static size_t find_rounds(struct rounds *rounds, const struct saved_report *before,
                          const struct saved_report *after)
{
    struct rounds *by_name = NULL, *one;
    size_t names = 0, count = 0;
    for (size_t i = 0; i < before->phase_count; i++) {
        const struct saved_phase *phase = &before->phases[i];
        HASH_FIND_STR(by_name, phase->name, one);
        if (!one) {
            one = &rounds[names];
            *one =
                (struct rounds){.name = phase->name, .first_before_ns = UNKNOWN, .first_after_ns = UNKNOWN};
            HASH_ADD_KEYPTR(hh, by_name, one->name, strlen(one->name), one);
            if (!hash_added(one))
                break;
            names++;
        }
        add_rounds(&one->before, &one->first_before_ns, phase);
    }
    for (size_t i = 0; i < after->phase_count; i++) {
        HASH_FIND_STR(by_name, after->phases[i].name, one);
        if (one)
            add_rounds(&one->after, &one->first_after_ns, &after->phases[i]);
    }
    HASH_CLEAR(hh, by_name);
    for (size_t i = 0; i < names; i++)
        if (rounds[i].before >= 2 && rounds[i].after >= 2)
            rounds[count++] = rounds[i];
    return count;
}

static uint64_t fewer(const struct rounds *rounds)
{
    return rounds->before < rounds->after ? rounds->before : rounds->after;
}

static int by_rounds(const void *left, const void *right)
{
    uint64_t a = fewer(left), b = fewer(right);
    return a > b ? -1 : a < b;
}

/* Candidates are those with the most, which tell a ratio most exactly: a few, for the time. */
#define CANDIDATES 16

/* The phase of the most rounds that most phases follow. Where they do not agree, as with one in a loop that
 * got longer inside of each step, nothing is known. */
static void by_phase(struct run_length *length, const struct saved_report *before,
                     const struct saved_report *after)
{
    struct rounds *rounds = calloc(before->phase_count + 1, sizeof(*rounds));
    size_t count = rounds ? find_rounds(rounds, before, after) : 0;
    if (count > 0)
        qsort(rounds, count, sizeof(*rounds), by_rounds);
    length->phases_differ = count > 0;
    for (size_t i = 0; length->phases_differ && i < count && i < CANDIDATES; i++) {
        double ratio = (double)rounds[i].after / (double)rounds[i].before;
        size_t agreeing = 0;
        for (size_t j = 0; j < count; j++)
            agreeing += follows(ratio, rounds[j].before, rounds[j].after);
        if (agreeing * 2 <= count)
            continue;
        *length = (struct run_length){.basis = LENGTH_PHASE,
                                      .phase = rounds[i].name,
                                      .before = rounds[i].before,
                                      .after = rounds[i].after,
                                      .middle_before_ns = middle(before, rounds[i].first_before_ns),
                                      .middle_after_ns = middle(after, rounds[i].first_after_ns)};
    }
    free(rounds);
}

static bool is_possible(double ratio)
{
    return ratio >= LENGTH_LEAST && ratio <= 1 / LENGTH_LEAST;
}

struct run_length run_length_of(const struct saved_report *before, const struct saved_report *after,
                                double given)
{
    const struct run_length unknown = {
        .ratio = 1, .middle_before_ns = middle(before, UNKNOWN), .middle_after_ns = middle(after, UNKNOWN)};
    struct run_length length = unknown;
    if (given > 0) {
        length.basis = LENGTH_GIVEN;
        length.ratio = given;
        return length;
    }
    if (before->steps > 0 && after->steps > 0) {
        length.basis = LENGTH_STEPS;
        length.before = before->steps;
        length.after = after->steps;
    } else {
        by_phase(&length, before, after);
    }
    if (length.basis == LENGTH_UNKNOWN)
        return length;
    length.ratio = (double)length.after / (double)length.before;
    return is_possible(length.ratio) ? length : unknown;
}

static bool goes_on(const struct run_length *length, const struct saved_figures *before,
                    const struct saved_figures *after)
{
    return before->last_time_ns > length->middle_before_ns && after->last_time_ns > length->middle_after_ns;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= TOLERANCE * (fabs(a) > fabs(b) ? fabs(a) : fabs(b));
}

static uint64_t whole(double figure)
{
    return figure < (double)INT64_MAX ? (uint64_t)(figure + 0.5) : INT64_MAX;
}

/* As many in a run of another length is no change of what is freed again, as a cache that is filled once. Of
 * what is kept, `adds_up`, it is: it was less, or more, for each step. */
static uint64_t expect_count(double ratio, bool adds_up, uint64_t before, uint64_t after)
{
    if ((before == after && !adds_up) || follows(ratio, before, after))
        return after;
    return whole((double)before * ratio);
}

/* Bytes of so many blocks: as many more as blocks are expected, if these have the size that they had. */
static uint64_t expect_bytes(uint64_t before, uint64_t blocks_before, uint64_t after, uint64_t blocks_after,
                             uint64_t blocks_expected)
{
    if (blocks_before == 0 || blocks_before == blocks_expected)
        return before;
    double size = (double)before / (double)blocks_before;
    if (blocks_expected == blocks_after && is_near(size * (double)blocks_after, (double)after))
        return after;
    return whole(size * (double)blocks_expected);
}

static bool keeps(const struct saved_figures *figures)
{
    return figures->live_blocks > figures->allocs / 2;
}

struct saved_figures run_length_expect(const struct run_length *length, const struct saved_figures *before,
                                       const struct saved_figures *after)
{
    struct saved_figures expected = *before;
    if (length->ratio == 1 || !goes_on(length, before, after))
        return expected;
    bool adds_up = keeps(before) && keeps(after);
    expected.allocs = expect_count(length->ratio, adds_up, before->allocs, after->allocs);
    expected.frees = expect_count(length->ratio, adds_up, before->frees, after->frees);
    expected.allocated_bytes = expect_bytes(before->allocated_bytes, before->allocs, after->allocated_bytes,
                                            after->allocs, expected.allocs);
    if (!adds_up) {
        /* Whether it was at work just when the peak came says nothing: that is another moment of a longer
         * run. */
        if (before->own_peak_bytes > 0 && before->own_peak_bytes == after->own_peak_bytes) {
            expected.peak_blocks = after->peak_blocks;
            expected.peak_bytes = after->peak_bytes;
        }
        return expected;
    }
    expected.live_blocks = expect_count(length->ratio, adds_up, before->live_blocks, after->live_blocks);
    expected.live_bytes = expect_bytes(before->live_bytes, before->live_blocks, after->live_bytes,
                                       after->live_blocks, expected.live_blocks);
    /* Of what is kept, so much is there at the peak as there was by then, and the peak may come at any time.
     */
    expected.peak_blocks =
        expected.live_blocks == after->live_blocks
            ? after->peak_blocks
            : expect_count(length->ratio, adds_up, before->peak_blocks, after->peak_blocks);
    expected.peak_bytes = expect_bytes(before->peak_bytes, before->peak_blocks, after->peak_bytes,
                                       after->peak_blocks, expected.peak_blocks);
    if (before->leaked_bytes == before->live_bytes && after->leaked_bytes == after->live_bytes)
        expected.leaked_bytes = expected.live_bytes;
    return expected;
}

static bool has_a_say(const struct run_length *length, const struct compared *place, size_t run)
{
    const struct saved_figures *before = &place->each[run], *after = &place->after;
    if (keeps(before) || keeps(after))
        return false; /* how often it allocates is what is to be judged */
    return before->allocs >= CALLS_MIN && after->allocs >= CALLS_MIN && goes_on(length, before, after);
}

/* How many places follow the length that one of them has. */
static size_t count_agreeing(const struct run_length *length, const struct compared *places, size_t count,
                             size_t run, double ratio, size_t *asked)
{
    size_t agreeing = 0;
    *asked = 0;
    for (size_t i = 0; i < count; i++) {
        if (!has_a_say(length, &places[i], run))
            continue;
        ++*asked;
        agreeing += follows(ratio, places[i].each[run].allocs, places[i].after.allocs);
    }
    return agreeing;
}

void run_length_by_calls(struct run_length *length, const struct compared *places, size_t count, size_t run)
{
    uint64_t below = UINT64_MAX;
    if (length->phases_differ)
        return;
    for (int tried = 0; length->basis == LENGTH_UNKNOWN && tried < CANDIDATES; tried++) {
        const struct compared *found = NULL;
        for (size_t i = 0; i < count; i++)
            if (has_a_say(length, &places[i], run) && places[i].each[run].allocs < below &&
                (!found || places[i].each[run].allocs > found->each[run].allocs))
                found = &places[i];
        if (!found)
            return;
        below = found->each[run].allocs;
        double ratio = (double)found->after.allocs / (double)found->each[run].allocs;
        size_t asked, agreeing = count_agreeing(length, places, count, run, ratio, &asked);
        if (asked < PLACES_MIN || agreeing * 3 < asked * 2 || !is_possible(ratio))
            continue;
        bool differs = ratio >= RATIO_LEAST || ratio <= 1 / RATIO_LEAST;
        length->basis = LENGTH_CALLS;
        length->ratio = differs ? ratio : 1;
        length->agreeing = agreeing;
        length->asked = asked;
    }
}
