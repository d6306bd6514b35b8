/*
 * How figures are spread over the members of a job, and which member is unlike the others: its distance from
 * the median is more than a twentieth of it, more than a MiB, and more than six times the middle distance of
 * all. Where more than one, and a quarter or more, would be odd, none is: that is two kinds of members.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define MEMBERS_MIN 3 /* of two that differ, neither is the odd one */
#define SHARE       20
#define BYTES_MIN   (1 << 20)
#define DISTANCES   6
#define ODD_PART    4

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static void spread_values(struct spread *spread, const uint64_t *values, size_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        spread->total += values[i];
        if (values[i] < values[spread->low_member])
            spread->low_member = i;
        if (values[i] > values[spread->high_member])
            spread->high_member = i;
    }
    spread->low = values[spread->low_member];
    spread->high = values[spread->high_member];
}

static void find_odd(struct spread *spread, const uint64_t *values, uint64_t *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sorted[i] = distance(values[i], spread->median);
    qsort(sorted, count, sizeof(*sorted), by_value);
    uint64_t limit = DISTANCES * sorted[count / 2];
    if (limit < spread->median / SHARE)
        limit = spread->median / SHARE;
    if (limit < BYTES_MIN)
        limit = BYTES_MIN;
    for (uint32_t i = 0; i < count; i++) {
        if (distance(values[i], spread->median) <= limit)
            continue;
        spread->odd_count++;
        if (spread->odd_count == 1 ||
            distance(values[i], spread->median) > distance(values[spread->odd_member], spread->median))
            spread->odd_member = i;
    }
    if (count < MEMBERS_MIN || (spread->odd_count > 1 && spread->odd_count * ODD_PART >= count))
        spread->odd_count = 0;
}

static int by_member(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return a->member < b->member ? -1 : a->member > b->member;
}

static void count_members(struct job_row *row)
{
    if (row->part_count > 0)
        qsort(row->parts, row->part_count, sizeof(*row->parts), by_member);
    for (size_t i = 0; i < row->part_count; i++)
        row->member_count += i == 0 || row->parts[i].member != row->parts[i - 1].member;
}

static void spread_row(const struct job *job, struct job_row *row)
{
    size_t count = job->member_count;
    uint64_t *sorted = job->values + count;
    count_members(row);
    for (int figure = 0; figure < JOB_FIGURE_COUNT; figure++) {
        struct spread *spread = &row->spreads[figure];
        memset(job->values, 0, count * sizeof(*job->values));
        for (size_t i = 0; i < row->part_count; i++)
            job->values[row->parts[i].member] += row->parts[i].figures[figure];
        memcpy(sorted, job->values, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), by_value);
        spread->median = sorted[count / 2];
        spread_values(spread, job->values, count);
        find_odd(spread, job->values, sorted, count);
    }
}

static int by_size(const void *left, const void *right)
{
    const struct job_row *a = left, *b = right;
    if (!a->title != !b->title)
        return a->title ? 1 : -1;
    uint64_t x = a->spreads[JOB_PEAK].total, y = b->spreads[JOB_PEAK].total;
    if (x == y) {
        x = a->allocated_bytes;
        y = b->allocated_bytes;
    }
    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->key, b->key);
}

int job_finish(struct job *job)
{
    job->values = calloc(2 * job->member_count + 1, sizeof(*job->values));
    if (!job->values || job->failed)
        return -1;
    for (size_t i = 0; job->member_count > 0 && i < job->row_count; i++)
        spread_row(job, &job->rows[i]);
    if (job->row_count > 0)
        qsort(job->rows, job->row_count, sizeof(*job->rows), by_size);
    for (job->space_count = 0; job->space_count < job->row_count && !job->rows[job->space_count].title;)
        job->space_count++;
    return 0;
}
