/* The JSON report, schema gpumemtrace.report/1: one function a key, in the order a reader wants them. */
#include "base/version.h"
#include "report/json_emit.h"
#include "report/json_frames.h"
#include "report/model.h"
#include "report/words.h"

static void write_start_time(struct json *json, uint64_t realtime_ns)
{
    struct words words = {0};
    if (realtime_ns == 0) {
        json_null(json, "start_time");
        return;
    }
    words_date(&words, realtime_ns, 'T');
    words_add(&words, ".%09uZ", (unsigned)(realtime_ns % 1000000000));
    json_string(json, "start_time", words.text);
}

static void write_process(struct json *json, const struct report *report)
{
    static const char *const ends[] = {
        [PROCESS_EXITED] = "exited", [PROCESS_KILLED] = "killed", [PROCESS_RUNNING] = "running"};
    const struct process_info *process = report->input->process;
    json_open(json, "process", '{');
    json_u64(json, "pid", process->pid);
    json_u64(json, "ppid", process->ppid);
    json_string(json, "host", process->host);
    json_string(json, "exe", process->exe);
    json_open(json, "argv", '[');
    for (uint32_t i = 0; i < process->argument_count; i++)
        json_string(json, NULL, process->arguments[i]);
    json_close(json, ']');
    json_ordinal(json, "rank", process->rank);
    write_start_time(json, process->start_realtime_ns);
    json_u64(json, "duration_ns", process->duration_ns);
    json_string(json, "end", ends[process->end]);
    json_bool(json, "complete", process->complete);
    json_close(json, '}');
}

static void write_counters(struct json *json, const struct report *report)
{
    const struct ledger_counters *counters = ledger_counters(report->input->ledger);
    json_open(json, "counters", '{');
    json_u64(json, "allocs", counters->allocs);
    json_u64(json, "frees", counters->frees);
    json_u64(json, "teardown_frees", counters->teardown_frees);
    json_u64(json, "failed_allocs", counters->failed_allocs);
    json_u64(json, "foreign_frees", counters->foreign_frees);
    json_u64(json, "replaced_blocks", counters->replaced_blocks);
    json_u64(json, "dropped_events", counters->dropped_events + report->input->dropped_events);
    json_u64(json, "events", counters->events);
    json_close(json, '}');
}

static void write_totals(struct json *json, const struct totals *totals)
{
    json_u64(json, "allocs", totals->allocs);
    json_u64(json, "frees", totals->frees);
    json_u64(json, "teardown_frees", totals->teardown_frees);
    json_u64(json, "allocated_bytes", totals->allocated_bytes);
    json_u64(json, "live_bytes", totals->live_bytes);
    json_u64(json, "live_blocks", totals->live_blocks);
    json_u64(json, "peak_bytes", totals->peak_bytes);
    json_u64(json, "peak_time_ns", totals->peak_time_ns);
}

static void write_spaces(struct json *json, const struct report *report)
{
    json_open(json, "spaces", '[');
    for (size_t i = 0; i < report->space_count; i++) {
        json_break(json);
        json_open(json, NULL, '{');
        json_string(json, "space", space_infos[report->spaces[i]->kind].name);
        json_ordinal(json, "device", report->spaces[i]->device);
        write_totals(json, &report->spaces[i]->totals);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_site(struct json *json, const struct report *report, uint32_t index)
{
    const struct report_site *site = &report->sites[index];
    char title[TITLE_MAX];
    json_open(json, NULL, '{');
    json_u64(json, "id", index);
    json_string(json, "title", report_site_title(report, index, title, sizeof title));
    json_string(json, "layer", layer_names[site->layer]);
    json_string(json, "space", space_infos[site->key->space].name);
    json_ordinal(json, "device", site->key->device);
    json_string(json, "family", family_infos[site->key->family].name);
    json_string(json, "api", site->api);
    json_bool(json, "owned", site->owned);
    write_totals(json, &site->figures.totals);
    json_u64(json, "failed_allocs", site->figures.failed);
    json_u64(json, "bytes_at_peak", site->figures.bytes_at_peak);
    json_u64(json, "blocks_at_peak", site->figures.blocks_at_peak);
    json_known(json, "first_time_ns", site->figures.totals.allocs > 0, site->figures.first_time_ns);
    json_known(json, "last_time_ns", site->figures.totals.allocs > 0, site->figures.last_time_ns);
    json_bool(json, "suppressed", site->suppressed);
    json_frames(json, report, site->stack);
    json_close(json, '}');
}

static void write_sites(struct json *json, const struct report *report)
{
    json_open(json, "sites", '[');
    for (uint32_t i = 0; i < report->site_count; i++) {
        json_break(json);
        write_site(json, report, i);
    }
    json_close(json, ']');
}

static void write_leaks(struct json *json, const struct report *report)
{
    json_open(json, "leaks", '{');
    json_u64(json, "live_bytes", report->leaks.live_bytes);
    json_u64(json, "live_blocks", report->leaks.live_blocks);
    json_u64(json, "suppressed_bytes", report->leaks.suppressed_bytes);
    json_open(json, "sites", '[');
    for (size_t i = 0; i < report->leaks.count; i++)
        json_u64(json, NULL, report->leaks.sites[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static void write_holdings(struct json *json, const struct holding *holdings, size_t count)
{
    json_open(json, "sites", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_u64(json, "site", holdings[i].site);
        json_u64(json, "bytes", holdings[i].bytes);
        json_u64(json, "blocks", holdings[i].blocks);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_peaks(struct json *json, const struct report *report)
{
    json_open(json, "peaks", '[');
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct peak *peak = &report->peaks[i];
        json_break(json);
        json_open(json, NULL, '{');
        json_string(json, "space", space_infos[peak->space->kind].name);
        json_ordinal(json, "device", peak->space->device);
        json_u64(json, "bytes", peak->space->totals.peak_bytes);
        json_u64(json, "time_ns", peak->space->totals.peak_time_ns);
        write_holdings(json, peak->holdings, peak->count);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_fragmentation(struct json *json, const struct report *report)
{
    json_open(json, "fragmentation", '[');
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        json_break(json);
        json_open(json, NULL, '{');
        json_ordinal(json, "device", row->device);
        json_u64(json, "granule_bytes", row->granule_bytes);
        json_u64(json, "live_bytes", row->live_bytes);
        json_u64(json, "footprint_bytes", row->footprint_bytes);
        json_u64(json, "waste_bytes", row->waste_bytes);
        json_open(json, "pools", '[');
        json_close(json, ']');
        json_open(json, "frameworks", '[');
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_growth(struct json *json, const struct report *report)
{
    json_open(json, "growth", '[');
    for (size_t i = 0; i < report->growing_count; i++) {
        const struct growing *row = &report->growing[i];
        json_break(json);
        json_open(json, NULL, '{');
        json_u64(json, "site", row->site);
        json_thousandths(json, "bytes_per_second", (uint64_t)(row->growth.bytes_per_second * 1000 + 0.5));
        json_null(json, "bytes_per_step");
        json_thousandths(json, "confidence", (uint64_t)(row->growth.confidence * 1000 + 0.5));
        if (row->exhausted_known)
            json_thousandths(json, "exhausted_in_seconds", row->exhausted_ns / 1000000);
        else
            json_null(json, "exhausted_in_seconds");
        json_u64(json, "since_ns", row->growth.since_ns);
        json_u64(json, "risen_bytes", row->growth.risen_bytes);
        json_u64(json, "rises", row->growth.rises);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_ooms(struct json *json, const struct report *report)
{
    json_open(json, "ooms", '[');
    for (size_t i = 0; i < report->oom_count; i++) {
        const struct out_of_memory *row = &report->ooms[i];
        const struct report_site *site = &report->sites[row->site];
        json_break(json);
        json_open(json, NULL, '{');
        json_u64(json, "time_ns", row->oom->time_ns);
        json_u64(json, "site", row->site);
        json_string(json, "api", site->api);
        json_string(json, "space", space_infos[site->key->space].name);
        json_ordinal(json, "device", site->key->device);
        json_u64(json, "requested_bytes", row->oom->requested_bytes);
        json_known(json, "free_bytes", row->oom->total_bytes > 0, row->oom->free_bytes);
        json_known(json, "total_bytes", row->oom->total_bytes > 0, row->oom->total_bytes);
        json_u64(json, "live_bytes", row->oom->live_bytes);
        json_frames(json, report, site->stack);
        write_holdings(json, row->holdings, row->count);
        json_string(json, "verdict", row->verdict);
        json_string(json, "advice", row->advice);
        json_bool(json, "went_on", row->went_on);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_phases(struct json *json, const struct report *report)
{
    (void)report;
    json_open(json, "phases", '[');
    json_close(json, ']');
}

static void write_memory_map(struct json *json, const struct report *report)
{
    json_open(json, "memory_map", '[');
    for (size_t i = 0; i < report->memory_count; i++) {
        const struct device_memory *row = &report->memory[i];
        json_break(json);
        json_open(json, NULL, '{');
        json_ordinal(json, "device", row->sample->device);
        json_u64(json, "time_ns", row->sample->time_ns);
        json_known(json, "total_bytes", row->sample->total_bytes > 0, row->sample->total_bytes);
        json_known(json, "free_bytes", row->sample->total_bytes > 0, row->sample->free_bytes);
        json_u64(json, "tracked_bytes", row->tracked_bytes);
        json_null(json, "context_bytes");
        json_known(json, "untracked_bytes", row->untracked_known, row->untracked_bytes);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_notes(struct json *json, const struct report *report)
{
    json_open(json, "notes", '[');
    for (size_t i = 0; i < report->note_count; i++)
        json_string(json, NULL, report->notes[i]);
    json_close(json, ']');
}

void report_write_json(const struct report *report, struct output *out)
{
    static void (*const keys[])(struct json *, const struct report *) = {
        write_process,       write_counters, write_spaces, write_sites,  write_leaks,      write_peaks,
        write_fragmentation, write_growth,   write_ooms,   write_phases, write_memory_map, write_notes,
    };
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_string(&json, "schema", "gpumemtrace.report/1");
    json_string(&json, "version", GPUMEMTRACE_VERSION);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_break(&json);
        keys[i](&json, report);
    }
    json_close(&json, '}');
    output_text(out, "\n");
}
