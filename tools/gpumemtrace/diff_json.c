/*
 * The comparison for programs, schema gpumemtrace.diff/1: spaces and sites with their figures before and
 * after; null stands for a run that has no such space or site. `expected` is what was before, had nothing but
 * the length of the run changed: a change is from that. Of a site, peak_bytes is what it held at its space's
 * peak; leaks and growth are told of sites only.
 */
#include "base/version.h"
#include "diff.h"
#include "report/json_emit.h"

static void write_figures(struct json *json, const char *key, const struct saved_figures *figures, bool known)
{
    if (!known) {
        emit_null(json, key);
        return;
    }
    emit_open(json, key, '{');
    emit_u64(json, "live_bytes", figures->live_bytes);
    emit_u64(json, "live_blocks", figures->live_blocks);
    emit_u64(json, "peak_bytes", figures->peak_bytes);
    emit_u64(json, "allocs", figures->allocs);
    emit_u64(json, "frees", figures->frees);
    emit_u64(json, "allocated_bytes", figures->allocated_bytes);
    emit_u64(json, "leaked_bytes", figures->leaked_bytes);
    emit_u64(json, "growth_bytes_per_second", figures->growth_per_second);
    emit_close(json, '}');
}

static void write_compared(struct json *json, const struct compared *row)
{
    static const char *const changes[] = {"none", "changed", "new", "gone"};
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "change", changes[row->change]);
    if (row->site) {
        emit_string(json, "title", row->site->title);
        emit_string(json, "layer", row->layer);
    }
    emit_string(json, "space", row->space);
    emit_ordinal(json, "device", row->device);
    if (row->site) {
        emit_string(json, "family", row->site->family);
        emit_string(json, "api", row->site->api);
        emit_bool(json, "suppressed", row->suppressed);
    }
    write_figures(json, "before", &row->before, row->change != CHANGE_NEW);
    write_figures(json, "expected", &row->expected, row->change != CHANGE_NEW);
    write_figures(json, "after", &row->after, row->change != CHANGE_GONE);
    emit_close(json, '}');
}

static void write_list(struct json *json, const char *key, const struct compared *rows, size_t count)
{
    emit_break(json);
    emit_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        write_compared(json, &rows[i]);
    emit_close(json, ']');
}

/* How long the run after is beside it. */
static void write_length(struct json *json, const struct run_length *length)
{
    static const char *const names[] = {
        [LENGTH_UNKNOWN] = "unknown", [LENGTH_GIVEN] = "given", [LENGTH_STEPS] = "steps",
        [LENGTH_PHASE] = "phase",     [LENGTH_CALLS] = "calls",
    };
    bool counted = length->basis == LENGTH_STEPS || length->basis == LENGTH_PHASE;
    emit_open(json, "length", '{');
    emit_string(json, "basis", names[length->basis]);
    emit_thousandths(json, "ratio", (uint64_t)(length->ratio * 1000 + 0.5));
    emit_string(json, "phase", length->phase);
    emit_known(json, "before", counted, length->before);
    emit_known(json, "after", counted, length->after);
    emit_close(json, '}');
}

static void write_run(struct json *json, const char *key, const char *path, const struct saved_report *report,
                      const struct run_length *length)
{
    emit_break(json);
    emit_open(json, key, '{');
    emit_string(json, "path", path);
    emit_string(json, "exe", report->program);
    emit_string(json, "end", report->end);
    emit_bool(json, "complete", report->complete);
    emit_u64(json, "duration_ns", report->duration_ns);
    if (length)
        write_length(json, length);
    emit_close(json, '}');
}

static void write_gates(struct json *json, const struct gates *gates)
{
    emit_open(json, "gates", '[');
    for (size_t i = 0; i < gates->count; i++) {
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_string(json, "condition", gates->gates[i].text);
        emit_bool(json, "failed", gates->results[i].failed);
        emit_string(json, "why", gates->results[i].why);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

void diff_write_json(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    struct json json = {.out = out};
    emit_open(&json, NULL, '{');
    emit_string(&json, "schema", "gpumemtrace.diff/1");
    emit_string(&json, "version", GPUMEMTRACE_VERSION);
    emit_bool(&json, "same", comparison->same);
    write_run(&json, "before", diff->before_paths[0], &diff->before[0], &comparison->lengths[0]);
    emit_open(&json, "baselines", '[');
    for (size_t i = 0; i < diff->before_count; i++)
        write_run(&json, NULL, diff->before_paths[i], &diff->before[i], &comparison->lengths[i]);
    emit_close(&json, ']');
    write_run(&json, "after", diff->after_path, &diff->after, NULL);
    write_list(&json, "spaces", comparison->spaces, comparison->space_count);
    write_list(&json, "sites", comparison->places, comparison->place_count);
    write_gates(&json, &diff->gates);
    emit_close(&json, '}');
    output_text(out, "\n");
}
