/* The JSON report, schema gpumemtrace.report/1: one function a key, in the order a reader wants them. */
#include "base/version.h"
#include "report/json_emit.h"
#include "report/json_fragmentation.h"
#include "report/json_frames.h"
#include "report/json_parts.h"
#include "report/json_peaks.h"
#include "report/model.h"
#include "report/words.h"

static void write_start_time(struct json *json, uint64_t realtime_ns)
{
    struct words words = {0};
    if (realtime_ns == 0) {
        emit_null(json, "start_time");
        return;
    }
    words_date(&words, realtime_ns, 'T');
    words_add(&words, ".%09uZ", (unsigned)(realtime_ns % 1000000000));
    emit_string(json, "start_time", words.text);
}

const char *const process_end_names[] = {
    [PROCESS_EXITED] = "exited", [PROCESS_KILLED] = "killed", [PROCESS_RUNNING] = "running"};

void json_process(struct json *json, const struct report *report)
{
    const struct process_info *process = report->input->process;
    emit_open(json, "process", '{');
    emit_u64(json, "pid", process->pid);
    emit_u64(json, "ppid", process->ppid);
    emit_string(json, "host", process->host);
    emit_string(json, "exe", process->exe);
    emit_open(json, "argv", '[');
    for (uint32_t i = 0; i < process->argument_count; i++)
        emit_string(json, NULL, process->arguments[i]);
    emit_close(json, ']');
    emit_ordinal(json, "rank", process->rank);
    write_start_time(json, process->start_realtime_ns);
    emit_u64(json, "duration_ns", process->duration_ns);
    emit_string(json, "end", process_end_names[process->end]);
    emit_bool(json, "complete", process->complete);
    emit_close(json, '}');
}

void json_counters(struct json *json, const struct report *report)
{
    const struct ledger_counters *counters = ledger_counters(report->input->ledger);
    emit_open(json, "counters", '{');
    emit_u64(json, "allocs", counters->allocs);
    emit_u64(json, "frees", counters->frees);
    emit_u64(json, "teardown_frees", counters->teardown_frees);
    emit_u64(json, "failed_allocs", counters->failed_allocs);
    emit_u64(json, "foreign_frees", counters->foreign_frees);
    emit_u64(json, "replaced_blocks", counters->replaced_blocks);
    emit_u64(json, "dropped_events", counters->dropped_events + report->input->dropped_events);
    emit_u64(json, "events", counters->events);
    emit_u64(json, "steps", ledger_steps(report->input->ledger));
    emit_close(json, '}');
}

void json_totals(struct json *json, const struct totals *totals)
{
    emit_u64(json, "allocs", totals->allocs);
    emit_u64(json, "frees", totals->frees);
    emit_u64(json, "teardown_frees", totals->teardown_frees);
    emit_u64(json, "allocated_bytes", totals->allocated_bytes);
    emit_u64(json, "live_bytes", totals->live_bytes);
    emit_u64(json, "live_blocks", totals->live_blocks);
    emit_u64(json, "peak_bytes", totals->peak_bytes);
    emit_u64(json, "peak_time_ns", totals->peak_time_ns);
}

static void write_spaces(struct json *json, const struct report *report)
{
    emit_open(json, "spaces", '[');
    for (size_t i = 0; i < report->space_count; i++) {
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_string(json, "space", space_infos[report->spaces[i]->kind].name);
        emit_ordinal(json, "device", report->spaces[i]->device);
        json_totals(json, &report->spaces[i]->totals);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_site(struct json *json, const struct report *report, uint32_t index)
{
    const struct report_site *site = &report->sites[index];
    char title[TITLE_MAX];
    emit_open(json, NULL, '{');
    emit_u64(json, "id", index);
    emit_string(json, "title", report_site_title(report, index, TITLE_FUNCTION, title, sizeof title));
    emit_string(json, "layer", layer_names[site->layer]);
    emit_string(json, "space", space_infos[site->key->space].name);
    emit_ordinal(json, "device", site->key->device);
    emit_string(json, "family", family_infos[site->key->family].name);
    emit_string(json, "api", site->api);
    emit_bool(json, "owned", site->owned);
    json_totals(json, &site->figures.totals);
    emit_u64(json, "failed_allocs", site->figures.failed);
    emit_u64(json, "bytes_at_peak", site->figures.bytes_at_peak);
    emit_u64(json, "blocks_at_peak", site->figures.blocks_at_peak);
    emit_known(json, "first_time_ns", site->figures.totals.allocs > 0, site->figures.first_time_ns);
    emit_known(json, "last_time_ns", site->figures.totals.allocs > 0, site->figures.last_time_ns);
    emit_bool(json, "suppressed", site->suppressed);
    emit_frames(json, report, site->stack);
    emit_close(json, '}');
}

static void write_sites(struct json *json, const struct report *report)
{
    emit_open(json, "sites", '[');
    for (uint32_t i = 0; i < report->site_count && !json->out->error; i++) {
        emit_break(json);
        write_site(json, report, i);
    }
    emit_close(json, ']');
}

void json_line_figures(struct json *json, const struct source_line *line)
{
    emit_u64(json, "site", line->site);
    emit_u64(json, "sites", line->site_count);
    emit_u64(json, "bytes", line->bytes);
    emit_u64(json, "blocks", line->blocks);
}

static void write_lines(struct json *json, const char *key, const struct line_list *list)
{
    emit_open(json, key, '[');
    for (size_t i = 0; i < list->count; i++) {
        const struct source_line *line = &list->lines[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        json_line_figures(json, line);
        emit_string(json, "reason", reason_names[line->reason]);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_suppressed(struct json *json, const struct leaks *leaks)
{
    emit_open(json, "suppressed", '[');
    for (size_t i = 0; i < leaks->suppressed_count; i++) {
        const struct suppressed *row = &leaks->suppressed[i];
        if (row->blocks == 0)
            continue;
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_string(json, "pattern", row->by->pattern);
        emit_string(json, "reason", row->by->reason);
        emit_string(json, "file", row->by->file);
        emit_known(json, "line", row->by->file != NULL, row->by->line);
        emit_u64(json, "bytes", row->bytes);
        emit_u64(json, "blocks", row->blocks);
        emit_u64(json, "sites", row->site_count);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_leaks(struct json *json, const struct report *report)
{
    const struct leaks *leaks = &report->leaks;
    emit_open(json, "leaks", '{');
    emit_u64(json, "live_bytes", leaks->live_bytes);
    emit_u64(json, "live_blocks", leaks->live_blocks);
    emit_u64(json, "suppressed_bytes", leaks->suppressed_bytes);
    emit_u64(json, "suppressed_blocks", leaks->suppressed_blocks);
    emit_open(json, "sites", '[');
    for (size_t i = 0; i < leaks->count; i++)
        emit_u64(json, NULL, leaks->sites[i]);
    emit_close(json, ']');
    write_lines(json, "lines", &leaks->lines);
    write_suppressed(json, leaks);
    emit_u64(json, "framework_bytes", leaks->framework_bytes);
    emit_u64(json, "framework_blocks", leaks->framework_blocks);
    write_lines(json, "framework_lines", &leaks->framework_lines);
    emit_close(json, '}');
}

static void write_growing(struct json *json, const char *key, const struct growing *rows, size_t count,
                          bool by_line)
{
    emit_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        const struct growing *row = &rows[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_u64(json, "site", row->site);
        if (by_line) {
            emit_open(json, "sites", '[');
            for (size_t k = 0; k < row->site_count; k++)
                emit_u64(json, NULL, row->sites[k]);
            emit_close(json, ']');
        }
        emit_thousandths(json, "bytes_per_second", (uint64_t)(row->growth.bytes_per_second * 1000 + 0.5));
        if (row->steps > 0)
            emit_thousandths(json, "bytes_per_step", row->growth.risen_bytes * 1000 / row->steps);
        else
            emit_null(json, "bytes_per_step");
        emit_thousandths(json, "confidence", (uint64_t)(row->growth.confidence * 1000 + 0.5));
        if (row->exhausted_known)
            emit_thousandths(json, "exhausted_in_seconds", row->exhausted_ns / 1000000);
        else
            emit_null(json, "exhausted_in_seconds");
        emit_u64(json, "since_ns", row->growth.since_ns);
        emit_u64(json, "risen_bytes", row->growth.risen_bytes);
        emit_u64(json, "rises", row->growth.rises);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_growth(struct json *json, const struct report *report)
{
    write_growing(json, "growth", report->growing, report->growing_count, false);
    write_growing(json, "growth_lines", report->growing_lines, report->growing_line_count, true);
}

static void write_ooms(struct json *json, const struct report *report)
{
    emit_open(json, "ooms", '[');
    for (size_t i = 0; i < report->oom_count; i++) {
        const struct out_of_memory *row = &report->ooms[i];
        const struct report_site *site = &report->sites[row->site];
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_u64(json, "time_ns", row->oom->time_ns);
        emit_u64(json, "site", row->site);
        emit_string(json, "api", site->api);
        emit_string(json, "space", space_infos[site->key->space].name);
        emit_ordinal(json, "device", site->key->device);
        emit_u64(json, "requested_bytes", row->oom->requested_bytes);
        emit_known(json, "free_bytes", row->oom->total_bytes > 0, row->oom->free_bytes);
        emit_known(json, "total_bytes", row->oom->total_bytes > 0, row->oom->total_bytes);
        emit_u64(json, "live_bytes", row->oom->live_bytes);
        emit_frames(json, report, site->stack);
        json_holdings(json, row->holdings, row->count);
        json_layouts(json, "frameworks", report, row->oom->layouts, row->oom->layout_count);
        emit_u64(json, "pool_unused_bytes", row->oom->pool_unused_bytes);
        emit_u64(json, "releasable_bytes", row->releasable_bytes);
        emit_u64(json, "stranded_bytes", row->stranded_bytes);
        emit_known(json, "elsewhere_bytes", row->oom->total_bytes > 0, row->elsewhere_bytes);
        emit_known(json, "other_processes_bytes", row->oom->own_bytes > 0, report_oom_others(row->oom));
        emit_known(json, "context_bytes", row->oom->context_bytes > 0, row->oom->context_bytes);
        emit_known(json, "largest_request_bytes", row->largest_known, row->largest_bytes);
        emit_string(json, "cause", oom_cause_names[row->cause]);
        emit_string(json, "verdict", row->verdict);
        emit_string(json, "advice", row->advice);
        emit_bool(json, "went_on", row->outcome != OOM_ENDED);
        emit_string(json, "outcome", oom_outcome_names[row->outcome]);
        emit_known(json, "granted_time_ns", row->outcome == OOM_GRANTED, row->oom->granted_ns);
        emit_known(json, "freed_before_granted_bytes", row->outcome == OOM_GRANTED, row->oom->freed_bytes);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_phase_sites(struct json *json, const struct named_phase *phase)
{
    emit_open(json, "sites", '[');
    for (size_t i = 0; i < phase->site_count; i++) {
        emit_open(json, NULL, '{');
        emit_u64(json, "site", phase->sites[i].site);
        emit_u64(json, "rise_bytes", phase->sites[i].rise_bytes);
        emit_i64(json, "net_bytes", phase->sites[i].net_bytes);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

void json_phase_figures(struct json *json, const struct program_phase *phase)
{
    emit_u64(json, "count", phase->ranges);
    emit_u64(json, "first_time_ns", phase->first_ns);
    emit_u64(json, "duration_ns", phase->time_ns);
    emit_u64(json, "peak_bytes", phase->layers[LAYER_DRIVER].peak_bytes);
    emit_i64(json, "net_bytes", phase->layers[LAYER_DRIVER].net_bytes);
    emit_u64(json, "framework_peak_bytes", phase->layers[LAYER_FRAMEWORK].peak_bytes);
    emit_i64(json, "framework_net_bytes", phase->layers[LAYER_FRAMEWORK].net_bytes);
}

static void write_phases(struct json *json, const struct report *report)
{
    emit_open(json, "phases", '[');
    for (size_t i = 0; i < report->phase_count; i++) {
        const struct named_phase *phase = &report->phases[i];
        const struct program_phase *is = &phase->is;
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_string(json, "name", phase->name);
        emit_string(json, "parent", is->parent == PHASE_NONE ? NULL : report_phase_name(report, is->parent));
        emit_u64(json, "open", is->open);
        json_phase_figures(json, is);
        write_phase_sites(json, phase);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

void json_notes(struct json *json, const struct report *report)
{
    emit_open(json, "notes", '[');
    for (size_t i = 0; i < report->note_count; i++)
        emit_string(json, NULL, report->notes[i]);
    emit_close(json, ']');
}

void report_write_json(const struct report *report, struct output *out)
{
    static void (*const keys[])(struct json *, const struct report *) = {
        json_process,       json_counters, write_spaces, write_sites,  write_leaks,     json_peaks,
        json_fragmentation, write_growth,  write_ooms,   write_phases, json_memory_map, json_notes,
    };
    struct json json = {.out = out};
    emit_open(&json, NULL, '{');
    emit_string(&json, "schema", "gpumemtrace.report/1");
    emit_string(&json, "version", GPUMEMTRACE_VERSION);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        emit_break(&json);
        keys[i](&json, report);
    }
    emit_close(&json, '}');
    output_text(out, "\n");
}
