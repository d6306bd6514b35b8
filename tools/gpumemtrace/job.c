/* Adding up the processes of a job; see job.h. */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "catalog/catalog.h"

struct job_row_index {
    size_t row;
    UT_hash_handle hh;
};

struct member_index {
    uint32_t member;
    char name[MEMBER_NAME_MAX];
    UT_hash_handle hh;
};

/* The array, with room for one more. NULL when memory ran out. */
static void *make_room(void *start, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return start;
    size_t wanted = *room * 2 + 16;
    void *longer = realloc(start, wanted * bytes);
    if (longer)
        *room = wanted;
    return longer;
}

static void name_member(int rank, uint32_t pid, const char *host, char text[MEMBER_NAME_MAX])
{
    if (rank >= 0)
        snprintf(text, MEMBER_NAME_MAX, "rank %d", rank);
    else
        snprintf(text, MEMBER_NAME_MAX, "pid %u%s%s", (unsigned)pid, host[0] ? " on " : "", host);
}

const char *job_member_name(const struct job *job, uint32_t member, char text[MEMBER_NAME_MAX])
{
    const struct member *of = &job->members[member];
    name_member(of->rank, of->pid, of->host, text);
    return text;
}

static struct member *find_member(struct job *job, const struct saved_report *report)
{
    struct member_index *known;
    char name[MEMBER_NAME_MAX];
    const char *host = report->host ? report->host : "";
    name_member(report->rank, report->pid, host, name);
    HASH_FIND_STR(job->by_name, name, known);
    if (known)
        return &job->members[known->member];
    struct member *members = make_room(job->members, job->member_count, &job->member_room, sizeof(*members));
    if (!members)
        return NULL;
    job->members = members;
    known = arena_alloc(&job->arena, sizeof(*known));
    const char *copy = arena_copy(&job->arena, host, strlen(host));
    if (!known || !copy)
        return NULL;
    known->member = (uint32_t)job->member_count;
    strcpy(known->name, name);
    HASH_ADD_STR(job->by_name, name, known);
    if (!hash_added(known))
        return NULL;
    job->members[job->member_count] = (struct member){.rank = report->rank, .pid = report->pid, .host = copy};
    return &job->members[job->member_count++];
}

static struct job_row *find_row(struct job *job, const char *key)
{
    struct job_row_index *known;
    HASH_FIND_STR(job->by_key, key, known);
    if (known)
        return &job->rows[known->row];
    struct job_row *rows = make_room(job->rows, job->row_count, &job->row_room, sizeof(*rows));
    if (!rows)
        return NULL;
    job->rows = rows;
    known = arena_alloc(&job->arena, sizeof(*known));
    const char *copy = arena_copy(&job->arena, key, strlen(key));
    if (!known || !copy)
        return NULL;
    known->row = job->row_count;
    HASH_ADD_KEYPTR(hh, job->by_key, copy, strlen(copy), known);
    if (!hash_added(known))
        return NULL;
    job->rows[job->row_count] = (struct job_row){.key = copy};
    return &job->rows[job->row_count++];
}

static void add_figures(struct job *job, struct job_row *row, uint32_t member,
                        const struct saved_figures *figures)
{
    struct part *part = row->part_count > 0 ? &row->parts[row->part_count - 1] : NULL;
    if (!part || part->member != member) {
        struct part *parts = make_room(row->parts, row->part_count, &row->part_room, sizeof(*parts));
        job->failed |= !parts;
        if (!parts)
            return;
        row->parts = parts;
        part = &row->parts[row->part_count++];
        *part = (struct part){.member = member};
    }
    part->figures[JOB_PEAK] += figures->peak_bytes;
    part->figures[JOB_LIVE] += figures->live_bytes;
    row->allocs += figures->allocs;
    row->frees += figures->frees;
    row->allocated_bytes += figures->allocated_bytes;
}

/* The catalog's own text, which outlives the report. */
static const char *kept_space(const char *name)
{
    for (int i = 0; i < SPACE_COUNT; i++)
        if (strcmp(space_infos[i].name, name) == 0)
            return space_infos[i].name;
    return "?";
}

static const char *kept_layer(const char *name)
{
    return layer_names[strcmp(name, layer_names[LAYER_FRAMEWORK]) == 0 ? LAYER_FRAMEWORK : LAYER_DRIVER];
}

static void add_spaces(struct job *job, const struct saved_report *report, uint32_t member)
{
    for (size_t i = 0; i < report->space_count; i++) {
        const struct saved_space *space = &report->spaces[i];
        struct job_row *row = find_row(job, space->space);
        job->failed |= !row;
        if (!row)
            return;
        row->layer = layer_names[LAYER_DRIVER];
        row->space = kept_space(space->space);
        add_figures(job, row, member, &space->figures);
        if (row->space == space_infos[SPACE_DEVICE].name) {
            job->members[member].peak_bytes += space->figures.peak_bytes;
            job->members[member].live_bytes += space->figures.live_bytes;
        }
    }
}

static void add_places(struct job *job, const struct saved_report *report, uint32_t member)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct saved_site *site = &report->sites[i];
        const char *title = site->title ? site->title : site->api;
        char *key = place_key(report, site, &job->rules);
        struct job_row *row = key ? find_row(job, key) : NULL;
        free(key);
        if (row && !row->title)
            row->title = arena_copy(&job->arena, title, strlen(title));
        job->failed |= !row || !row->title;
        if (job->failed)
            return;
        row->layer = kept_layer(site->layer);
        row->space = kept_space(site->space);
        add_figures(job, row, member, &site->figures);
    }
}

void job_add(struct job *job, const struct saved_report *report)
{
    if (job->process_count++ == 0) {
        job->rules = place_rules(report);
        job->rules.inlined = false; /* reports of one process have them and of another not */
        job->rules.any_device = true;
    }
    struct member *member = find_member(job, report);
    job->failed |= !member;
    if (!member)
        return;
    member->processes++;
    member->ooms += report->oom_count;
    member->killed += strcmp(report->end, "killed") == 0;
    member->running += strcmp(report->end, "running") == 0;
    member->incomplete += !report->complete;
    add_spaces(job, report, (uint32_t)(member - job->members));
    add_places(job, report, (uint32_t)(member - job->members));
}

void job_release(struct job *job)
{
    for (size_t i = 0; i < job->row_count; i++)
        free(job->rows[i].parts);
    HASH_CLEAR(hh, job->by_key);
    HASH_CLEAR(hh, job->by_name);
    arena_release(&job->arena);
    free(job->rows);
    free(job->members);
    free(job->values);
    *job = (struct job){0};
}
