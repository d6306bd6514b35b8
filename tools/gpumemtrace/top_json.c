/* One look for programs, in the schema gpumemtrace.top/1: one line, so that a stream of looks can be read. */
#include <time.h>

#include "report/json_emit.h"
#include "top.h"
#include "report/json_parts.h"

static void emit_rate(struct json *json, const char *key, double value)
{
    emit_i64(json, key, (int64_t)(value < 0 ? value - 0.5 : value + 0.5));
}

static void write_space(struct json *json, const struct live_space *space)
{
    const struct totals *totals = &space->space->totals;
    emit_open(json, NULL, '{');
    emit_string(json, "layer", layer_names[space->space->layer]);
    emit_string(json, "space", space_infos[space->space->kind].name);
    emit_ordinal(json, "device", space->space->device);
    emit_u64(json, "live_bytes", totals->live_bytes);
    emit_u64(json, "live_blocks", totals->live_blocks);
    emit_u64(json, "peak_bytes", totals->peak_bytes);
    emit_u64(json, "allocs", totals->allocs);
    emit_u64(json, "frees", totals->frees);
    emit_rate(json, "bytes_per_second", space->bytes_per_second);
    emit_rate(json, "allocs_per_second", space->allocs_per_second);
    emit_close(json, '}');
}

static void write_process(struct json *json, const struct live *live, const struct live_process *of)
{
    const struct process_info *process = live_info(of);
    emit_open(json, NULL, '{');
    emit_string(json, "path", live_path(of));
    emit_string(json, "problem", live_problem(of));
    if (!live_problem(of)) {
        emit_u64(json, "pid", process->pid);
        emit_ordinal(json, "rank", process->rank);
        emit_string(json, "exe", process->exe);
        emit_string(json, "end", process_end_names[process->end]);
        emit_u64(json, "duration_ns", process->duration_ns);
        emit_u64(json, "ooms", live_report(of)->oom_count);
        emit_open(json, "spaces", '[');
        for (size_t i = 0; i < live->space_count; i++)
            if (live->spaces[i].process == of)
                write_space(json, &live->spaces[i]);
        emit_close(json, ']');
    }
    emit_close(json, '}');
}

static void write_site(struct json *json, const struct live_site *site)
{
    const struct report_site *of = site->site;
    char title[TITLE_MAX];
    emit_open(json, NULL, '{');
    emit_u64(json, "pid", live_info(site->process)->pid);
    emit_string(
        json, "title",
        report_site_title(live_report(site->process), site->id, TITLE_FUNCTION, title, sizeof(title)));
    emit_string(json, "layer", layer_names[of->layer]);
    emit_string(json, "space", space_infos[of->key->space].name);
    emit_ordinal(json, "device", of->key->device);
    emit_u64(json, "live_bytes", of->figures.totals.live_bytes);
    emit_u64(json, "live_blocks", of->figures.totals.live_blocks);
    emit_u64(json, "bytes_at_peak", of->figures.bytes_at_peak);
    emit_u64(json, "allocs", of->figures.totals.allocs);
    emit_rate(json, "bytes_per_second", site->bytes_per_second);
    emit_rate(json, "growth_bytes_per_second", site->growth);
    emit_close(json, '}');
}

void top_write_json(const struct top *top, struct output *out)
{
    const struct live *live = &top->live;
    struct json json = {.out = out};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    emit_open(&json, NULL, '{');
    emit_string(&json, "schema", "gpumemtrace.top/1");
    emit_u64(&json, "time_ns", (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec);
    emit_open(&json, "processes", '[');
    for (size_t i = 0; i < live->process_count; i++)
        write_process(&json, live, live->processes[i]);
    emit_close(&json, ']');
    emit_open(&json, "sites", '[');
    for (size_t i = 0; i < live->site_count && (top->lines == 0 || i < top->lines); i++)
        write_site(&json, &live->sites[i]);
    emit_close(&json, ']');
    emit_close(&json, '}');
    output_text(out, "\n");
}
