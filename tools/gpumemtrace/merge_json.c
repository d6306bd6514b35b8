/*
 * A job for programs, schema gpumemtrace.merge/1. A member is a rank, or a process that has none; `odd` is
 * the index of the member that is unlike all others, or null.
 */
#include "base/version.h"
#include "merge.h"
#include "report/json_emit.h"

static void write_member(struct json *json, const struct job *job, uint32_t index)
{
    const struct member *member = &job->members[index];
    char name[MEMBER_NAME_MAX];
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "name", job_member_name(job, index, name));
    emit_ordinal(json, "rank", member->rank);
    emit_u64(json, "pid", member->pid);
    emit_string(json, "host", member->host);
    emit_u64(json, "processes", member->processes);
    emit_u64(json, "peak_bytes", member->peak_bytes);
    emit_u64(json, "live_bytes", member->live_bytes);
    emit_u64(json, "ooms", member->ooms);
    emit_u64(json, "killed", member->killed);
    emit_u64(json, "running", member->running);
    emit_close(json, '}');
}

static void write_spread(struct json *json, const char *key, const struct spread *spread)
{
    emit_open(json, key, '{');
    emit_u64(json, "total", spread->total);
    emit_u64(json, "median", spread->median);
    emit_u64(json, "low", spread->low);
    emit_u64(json, "low_member", spread->low_member);
    emit_u64(json, "high", spread->high);
    emit_u64(json, "high_member", spread->high_member);
    emit_known(json, "odd", spread->odd_count > 0, spread->odd_member);
    emit_u64(json, "odd_count", spread->odd_count);
    emit_close(json, '}');
}

/* Of the rows from `first` up to `end`. */
static void write_rows(struct json *json, const char *key, const struct job_row *rows, size_t first,
                       size_t end)
{
    emit_break(json);
    emit_open(json, key, '[');
    for (size_t i = first; i < end; i++) {
        emit_break(json);
        emit_open(json, NULL, '{');
        if (rows[i].title) {
            emit_string(json, "title", rows[i].title);
            emit_string(json, "layer", rows[i].layer);
        }
        emit_string(json, "space", rows[i].space);
        emit_u64(json, "members", rows[i].member_count);
        emit_u64(json, "allocs", rows[i].allocs);
        emit_u64(json, "frees", rows[i].frees);
        emit_u64(json, "allocated_bytes", rows[i].allocated_bytes);
        write_spread(json, "peak_bytes", &rows[i].spreads[JOB_PEAK]);
        write_spread(json, "live_bytes", &rows[i].spreads[JOB_LIVE]);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

void merge_write_json(const struct merge *merge, struct output *out)
{
    const struct job *job = &merge->job;
    struct json json = {.out = out};
    emit_open(&json, NULL, '{');
    emit_string(&json, "schema", "gpumemtrace.merge/1");
    emit_string(&json, "version", GPUMEMTRACE_VERSION);
    emit_u64(&json, "processes", job->process_count);
    emit_u64(&json, "unreadable", merge->unusable);
    emit_break(&json);
    emit_open(&json, "members", '[');
    for (uint32_t i = 0; i < job->member_count; i++)
        write_member(&json, job, i);
    emit_close(&json, ']');
    write_rows(&json, "spaces", job->rows, 0, job->space_count);
    write_rows(&json, "sites", job->rows, job->space_count, job->row_count);
    emit_close(&json, '}');
    output_text(out, "\n");
}
