/* A job for people: its totals, how they are spread over the ranks, the odd rank, and the same of each place.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "diff_words.h"
#include "merge.h"
#include "report/words.h"

#define FIGURE_COLUMN 28
#define PLACE_COLUMN  24

/* Of all devices together. */
static void add_memory(struct words *words, const char *space)
{
    if (strcmp(space, space_infos[SPACE_DEVICE].name) == 0 ||
        strcmp(space, space_infos[SPACE_MANAGED].name) == 0)
        words_add(words, "%s memory", space);
    else if (strcmp(space, space_infos[SPACE_GRAPH].name) == 0)
        words_add(words, "memory of CUDA graphs");
    else
        diff_add_space(words, space, -1);
}

static void add_member(struct words *words, const struct job *job, uint32_t member)
{
    char name[MEMBER_NAME_MAX];
    words_add(words, "%s", job_member_name(job, member, name));
}

/* "278.0 MiB each"; "270.0 MiB (rank 0) to 298.0 MiB (rank 3), median 278.0 MiB" */
static void add_spread(struct words *words, const struct job *job, const struct spread *spread)
{
    if (spread->low == spread->high) {
        words_size(words, spread->high);
        words_add(words, job->member_count > 1 ? " each" : "");
        return;
    }
    words_size(words, spread->low);
    words_add(words, " (");
    add_member(words, job, spread->low_member);
    words_add(words, ") to ");
    words_size(words, spread->high);
    words_add(words, " (");
    add_member(words, job, spread->high_member);
    words_add(words, ")");
    if (job->member_count > 2) {
        words_add(words, ", median ");
        words_size(words, spread->median);
    }
}

static void add_odd(struct words *words, const struct job *job, const struct job_row *row, int figure)
{
    const struct spread *spread = &row->spreads[figure];
    bool higher = spread->odd_member == spread->high_member;
    add_member(words, job, spread->odd_member);
    words_add(words, " has ");
    words_size(words, higher ? spread->high : spread->low);
    words_add(words, figure == JOB_PEAK ? " at the peak" : " still allocated");
    words_add(words, ", the others about ");
    words_size(words, spread->median);
    if (spread->odd_count > 1) {
        words_add(words, "; so unlike are ");
        words_count(words, spread->odd_count, "member");
    }
}

/* The figure that is odd: what is still allocated first, since that is what leaks are found by. -1: none. */
static int odd_figure(const struct job_row *row)
{
    return row->spreads[JOB_LIVE].odd_count > 0   ? JOB_LIVE
           : row->spreads[JOB_PEAK].odd_count > 0 ? JOB_PEAK
                                                  : -1;
}

static size_t count_members(const struct job *job, size_t (*of)(const struct member *))
{
    size_t count = 0;
    for (size_t i = 0; i < job->member_count; i++)
        count += of(&job->members[i]) > 0;
    return count;
}

static size_t ranks_of(const struct member *member)
{
    return member->rank >= 0;
}

static size_t ooms_of(const struct member *member)
{
    return member->ooms;
}

static size_t killed_of(const struct member *member)
{
    return member->killed;
}

static size_t running_of(const struct member *member)
{
    return member->running;
}

static size_t incomplete_of(const struct member *member)
{
    return member->incomplete;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static size_t count_hosts(const struct job *job)
{
    size_t hosts = 0;
    const char **names = calloc(job->member_count + 1, sizeof(*names));
    for (size_t i = 0; names && i < job->member_count; i++)
        names[i] = job->members[i].host;
    if (names && job->member_count > 0)
        qsort(names, job->member_count, sizeof(*names), by_text);
    for (size_t i = 0; names && i < job->member_count; i++)
        hosts += i == 0 || strcmp(names[i], names[i - 1]) != 0;
    free(names);
    return hosts;
}

static void say_job(const struct merge *merge, struct output *out)
{
    static const struct {
        size_t (*of)(const struct member *);
        const char *what;
    } doubts[] = {
        {ooms_of, "ran out of memory"},
        {killed_of, "had a process killed: what it had not freed yet counts as still allocated"},
        {running_of, "still runs"},
        {incomplete_of, "could not record all events"},
    };
    const struct job *job = &merge->job;
    struct words words = {0};
    size_t ranks = count_members(job, ranks_of);
    words_add(&words, "%zu process%s", job->process_count, job->process_count == 1 ? "" : "es");
    if (ranks > 0) {
        words_add(&words, ", ");
        words_count(&words, ranks, "rank");
    }
    words_add(&words, " on ");
    words_count(&words, count_hosts(job), "host");
    words_end_line(&words, out);
    for (size_t i = 0; i < sizeof(doubts) / sizeof(*doubts); i++) {
        size_t count = count_members(job, doubts[i].of);
        if (count == 0)
            continue;
        words_add(&words, "note: ");
        words_count(&words, count, "member");
        words_add(&words, " %s", doubts[i].what);
        for (uint32_t k = 0; count == 1 && k < job->member_count; k++) {
            if (doubts[i].of(&job->members[k]) == 0)
                continue;
            words_add(&words, " (");
            add_member(&words, job, k);
            words_add(&words, ")");
        }
        words_end_line(&words, out);
    }
}

static void say_space_figure(struct output *out, const struct job *job, const struct job_row *row, int figure)
{
    struct words words = {0};
    words_add(&words, figure == JOB_PEAK ? "    peaks" : "    still allocated");
    words_column(&words, FIGURE_COLUMN);
    words_size(&words, row->spreads[figure].total);
    words_add(&words, " in all; ");
    add_spread(&words, job, &row->spreads[figure]);
    words_end_line(&words, out);
}

static void say_odd_ranks(struct output *out, const struct job *job)
{
    struct words words = {0};
    for (size_t i = 0; i < job->space_count; i++) {
        int figure = odd_figure(&job->rows[i]);
        if (figure < 0)
            continue;
        words_add(&words, "odd: ");
        add_odd(&words, job, &job->rows[i], figure);
        words_add(&words, " of ");
        add_memory(&words, job->rows[i].space);
        words_end_line(&words, out);
    }
}

static void say_place(struct output *out, const struct job *job, const struct job_row *row)
{
    struct words words = {0};
    words_add(&words, "  ");
    words_size(&words, row->spreads[JOB_PEAK].total);
    words_column(&words, PLACE_COLUMN);
    words_add(&words, "%s", row->title);
    if (strcmp(row->space, space_infos[SPACE_DEVICE].name) != 0) {
        words_add(&words, ", ");
        add_memory(&words, row->space);
    }
    if (strcmp(row->layer, layer_names[LAYER_FRAMEWORK]) == 0)
        words_add(&words, ", inside the framework's own memory");
    words_end_line(&words, out);
    words_column(&words, PLACE_COLUMN);
    add_spread(&words, job, &row->spreads[JOB_PEAK]);
    if (row->spreads[JOB_LIVE].total > 0) {
        words_add(&words, "; still allocated ");
        add_spread(&words, job, &row->spreads[JOB_LIVE]);
    }
    if (row->member_count < job->member_count) {
        words_add(&words, "; in ");
        words_count(&words, row->member_count, "member");
    }
    words_end_line(&words, out);
    if (odd_figure(row) < 0)
        return;
    words_column(&words, PLACE_COLUMN);
    words_add(&words, "odd: ");
    add_odd(&words, job, row, odd_figure(row));
    words_end_line(&words, out);
}

void merge_write_text(const struct merge *merge, struct output *out)
{
    const struct job *job = &merge->job;
    struct words words = {0};
    say_job(merge, out);
    for (size_t i = 0; i < job->space_count; i++) {
        words_add(&words, "  ");
        add_memory(&words, job->rows[i].space);
        words_end_line(&words, out);
        say_space_figure(out, job, &job->rows[i], JOB_PEAK);
        say_space_figure(out, job, &job->rows[i], JOB_LIVE);
    }
    say_odd_ranks(out, job);
    size_t places = job->row_count - job->space_count;
    size_t listed = merge->top > 0 && merge->top < places ? merge->top : places;
    output_text(out, "\n");
    words_count(&words, places, "place");
    words_add(&words, ", the biggest at the peak first");
    words_end_line(&words, out);
    for (size_t i = 0; i < listed; i++)
        say_place(out, job, &job->rows[job->space_count + i]);
    if (listed < places) {
        words_add(&words, "  … and ");
        words_count(&words, places - listed, "smaller place");
        words_add(&words, " (--top=0 lists all)");
        words_end_line(&words, out);
    }
}
