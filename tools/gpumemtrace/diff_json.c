/*
 * The comparison for programs, schema gpumemtrace.diff/1: spaces and sites with their figures before and
 * after; null stands for a run that has no such space or site. Of a site, peak_bytes is what it held at its
 * space's peak.
 */
#include "base/version.h"
#include "diff.h"
#include "report/json_emit.h"

static void write_figures(struct json *json, const char *key, const struct saved_figures *figures, bool known)
{
    if (!known) {
        json_null(json, key);
        return;
    }
    json_open(json, key, '{');
    json_u64(json, "live_bytes", figures->live_bytes);
    json_u64(json, "live_blocks", figures->live_blocks);
    json_u64(json, "peak_bytes", figures->peak_bytes);
    json_u64(json, "allocs", figures->allocs);
    json_u64(json, "frees", figures->frees);
    json_u64(json, "allocated_bytes", figures->allocated_bytes);
    json_close(json, '}');
}

static void write_compared(struct json *json, const struct compared *row)
{
    static const char *const changes[] = {"none", "changed", "new", "gone"};
    json_break(json);
    json_open(json, NULL, '{');
    json_string(json, "change", changes[row->change]);
    if (row->site) {
        json_string(json, "title", row->site->title);
        json_string(json, "layer", row->layer);
    }
    json_string(json, "space", row->space);
    json_ordinal(json, "device", row->device);
    if (row->site) {
        json_string(json, "family", row->site->family);
        json_string(json, "api", row->site->api);
        json_bool(json, "suppressed", row->suppressed);
    }
    write_figures(json, "before", &row->before, row->change != CHANGE_NEW);
    write_figures(json, "after", &row->after, row->change != CHANGE_GONE);
    json_close(json, '}');
}

static void write_list(struct json *json, const char *key, const struct compared *rows, size_t count)
{
    json_break(json);
    json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        write_compared(json, &rows[i]);
    json_close(json, ']');
}

static void write_run(struct json *json, const char *key, const char *path, const struct saved_report *report)
{
    json_break(json);
    json_open(json, key, '{');
    json_string(json, "path", path);
    json_string(json, "exe", report->program);
    json_string(json, "end", report->end);
    json_bool(json, "complete", report->complete);
    json_u64(json, "duration_ns", report->duration_ns);
    json_close(json, '}');
}

void diff_write_json(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_string(&json, "schema", "gpumemtrace.diff/1");
    json_string(&json, "version", GPUMEMTRACE_VERSION);
    json_bool(&json, "same", comparison->same);
    write_run(&json, "before", diff->before_path, &diff->before);
    write_run(&json, "after", diff->after_path, &diff->after);
    write_list(&json, "spaces", comparison->spaces, comparison->space_count);
    write_list(&json, "sites", comparison->places, comparison->place_count);
    json_close(&json, '}');
    output_text(out, "\n");
}
