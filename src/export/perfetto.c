/*
 * Chrome's trace event format as JSON, which Perfetto and chrome://tracing open: live bytes of each space and
 * of the sites that held most at a peak as counters, phases as async slices, refused allocations and peaks as
 * instants. Times are microseconds since the recording began.
 */
#include <stdio.h>

#include "base/list.h"
#include "base/version.h"
#include "export/formats.h"
#include "export/curve.h"
#include "report/json_emit.h"
#include "report/words.h"
#include "trace/reader.h"

#define SITES_SHOWN  16
#define SPACES_SHOWN 64

struct phase_event {
    uint64_t time_ns;
    uint32_t name, range; /* name: CATALOG_NONE for an end */
};

/* What the second reading collects. */
struct tracing {
    const struct report *report;
    struct arena arena;
    size_t space_count; /* of those seen so far */
    struct curve spaces[SPACES_SHOWN];
    size_t site_count;
    uint32_t sites[SITES_SHOWN]; /* catalog ids; the order of the report's sites */
    struct curve site_lines[SITES_SHOWN];
    struct list phases; /* struct phase_event */
    uint64_t time_ns;   /* of the newest event that the ledger knows */
    bool failed;
};

static uint64_t event_count(const struct tracing *tracing)
{
    return ledger_counters(tracing->report->input->ledger)->events;
}

static void begin(struct tracing *tracing)
{
    arena_release(&tracing->arena);
    tracing->space_count = 0;
    tracing->time_ns = 0;
    list_init(&tracing->phases, &tracing->arena, sizeof(struct phase_event));
    for (size_t i = 0; i < tracing->site_count; i++)
        curve_begin(&tracing->site_lines[i], &tracing->arena, event_count(tracing), tracing->report->end_ns);
}

/* The ledger as it is, after the event at time_ns. */
static void sample(struct tracing *tracing, const struct recording *recording)
{
    size_t count = ledger_space_count(recording->ledger);
    for (size_t i = 0; i < count && i < SPACES_SHOWN; i++) {
        if (i == tracing->space_count)
            curve_begin(&tracing->spaces[tracing->space_count++], &tracing->arena, event_count(tracing),
                        tracing->report->end_ns);
        curve_add(&tracing->spaces[i], tracing->time_ns,
                  ledger_space(recording->ledger, i)->totals.live_bytes);
    }
    for (size_t i = 0; i < tracing->site_count; i++)
        if (tracing->sites[i] < catalog_site_count(recording->catalog))
            curve_add(&tracing->site_lines[i], tracing->time_ns,
                      ledger_site(recording->ledger, tracing->sites[i]).totals.live_bytes);
}

static void take_phase(struct tracing *tracing, const struct event *event)
{
    struct phase_event *added = list_reach(&tracing->phases, tracing->phases.count);
    tracing->failed |= !added;
    if (added)
        *added = (struct phase_event){
            event->time_ns, event->type == EVENT_PHASE_BEGIN ? event->name : CATALOG_NONE, event->range};
}

static void take_event(const struct recording *recording, const struct event *event, void *arg)
{
    struct tracing *tracing = arg;
    if (!event) {
        begin(tracing);
        return;
    }
    sample(tracing, recording); /* before this event is applied */
    tracing->time_ns = event->time_ns;
    if (event->type == EVENT_PHASE_BEGIN || event->type == EVENT_PHASE_END)
        take_phase(tracing, event);
}

/* The sites of the highest peaks, as many as are shown. */
static void choose_sites(struct tracing *tracing)
{
    const struct report *report = tracing->report;
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct peak *peak = &report->peaks[i];
        size_t room = (SITES_SHOWN - tracing->site_count) / (report->peak_count - i);
        for (size_t k = 0; k < peak->count && k < room; k++)
            tracing->sites[tracing->site_count++] = report->sites[peak->holdings[k].site].catalog_id;
    }
}

static void open_event(struct json *json, const struct tracing *tracing, const char *phase, const char *name,
                       uint64_t time_ns)
{
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "ph", phase);
    emit_string(json, "name", name);
    emit_u64(json, "pid", tracing->report->input->process->pid);
    emit_u64(json, "tid", tracing->report->input->process->pid);
    emit_thousandths(json, "ts", time_ns);
}

static void write_counter(struct json *json, const struct tracing *tracing, const char *name,
                          const struct curve *curve)
{
    for (uint32_t i = 0; i < curve->points.count; i++) {
        const struct curve_point *point = list_at(&curve->points, i);
        open_event(json, tracing, "C", name, point->time_ns);
        emit_open(json, "args", '{');
        emit_u64(json, "bytes", point->value);
        emit_close(json, '}');
        emit_close(json, '}');
    }
}

static void write_counters(struct json *json, const struct tracing *tracing,
                           const struct recording *recording)
{
    struct words words = {0};
    char title[TITLE_MAX];
    for (size_t i = 0; i < tracing->space_count; i++) {
        const struct ledger_space *space = ledger_space(recording->ledger, i);
        words.used = 0;
        words_space(&words, space->kind, space->device);
        if (space->layer == LAYER_FRAMEWORK)
            words_add(&words, ", tensors");
        write_counter(json, tracing, words.text, &tracing->spaces[i]);
    }
    for (size_t i = 0; i < tracing->site_count; i++) {
        uint32_t site = tracing->report->site_of_catalog[tracing->sites[i]];
        words.used = 0;
        words_add(&words, "site %u: %s", (unsigned)site,
                  report_site_title(tracing->report, site, TITLE_FUNCTION, title, sizeof(title)));
        write_counter(json, tracing, words.text, &tracing->site_lines[i]);
    }
}

static void write_phases(struct json *json, const struct tracing *tracing, const struct recording *recording)
{
    for (uint32_t i = 0; i < tracing->phases.count; i++) {
        const struct phase_event *event = list_at(&tracing->phases, i);
        bool begins = event->name != CATALOG_NONE;
        /* An end is matched with its beginning by category and id. */
        open_event(json, tracing, begins ? "b" : "e",
                   begins ? catalog_string(recording->catalog, event->name) : "", event->time_ns);
        emit_string(json, "cat", "phase");
        emit_u64(json, "id", event->range);
        emit_close(json, '}');
    }
}

static void write_instants(struct json *json, const struct tracing *tracing)
{
    const struct report *report = tracing->report;
    struct words words;
    char title[TITLE_MAX];
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct ledger_space *space = report->peaks[i].space;
        words = (struct words){0};
        words_add(&words, "peak of ");
        words_space(&words, space->kind, space->device);
        open_event(json, tracing, "i", words.text, space->totals.peak_time_ns);
        emit_string(json, "s", "p");
        emit_open(json, "args", '{');
        emit_u64(json, "bytes", space->totals.peak_bytes);
        emit_close(json, '}');
        emit_close(json, '}');
    }
    for (size_t i = 0; i < report->oom_count; i++) {
        const struct out_of_memory *row = &report->ooms[i];
        open_event(json, tracing, "i", "out of memory", row->oom->time_ns);
        emit_string(json, "s", "p");
        emit_open(json, "args", '{');
        emit_u64(json, "requested_bytes", row->oom->requested_bytes);
        emit_string(json, "place",
                    report_site_title(report, row->site, TITLE_FUNCTION, title, sizeof(title)));
        emit_string(json, "verdict", row->verdict);
        emit_close(json, '}');
        emit_close(json, '}');
    }
}

static void write_process(struct json *json, const struct tracing *tracing)
{
    const struct process_info *process = tracing->report->input->process;
    open_event(json, tracing, "M", "process_name", 0);
    emit_open(json, "args", '{');
    emit_string(json, "name", process->exe ? base_name(process->exe) : "?");
    emit_close(json, '}');
    emit_close(json, '}');
}

static void write_trace(const struct tracing *tracing, const struct recording *recording, struct output *out)
{
    struct json json = {.out = out};
    emit_open(&json, NULL, '{');
    emit_string(&json, "displayTimeUnit", "ms");
    emit_open(&json, "otherData", '{');
    emit_string(&json, "version", "gpumemtrace " GPUMEMTRACE_VERSION);
    emit_close(&json, '}');
    emit_open(&json, "traceEvents", '[');
    write_process(&json, tracing);
    write_counters(&json, tracing, recording);
    write_phases(&json, tracing, recording);
    write_instants(&json, tracing);
    emit_close(&json, ']');
    emit_close(&json, '}');
    output_text(out, "\n");
}

static bool end(struct tracing *tracing, const struct recording *recording)
{
    sample(tracing, recording);
    for (size_t i = 0; i < tracing->space_count; i++) {
        curve_end(&tracing->spaces[i]);
        tracing->failed |= tracing->spaces[i].failed;
    }
    for (size_t i = 0; i < tracing->site_count; i++) {
        curve_end(&tracing->site_lines[i]);
        tracing->failed |= tracing->site_lines[i].failed;
    }
    return !tracing->failed;
}

int export_perfetto(const struct export_request *request, struct output *out, char *error, size_t error_bytes)
{
    struct tracing *tracing = pages_alloc(sizeof(*tracing));
    struct recording recording;
    int result = -1;
    if (!tracing) {
        snprintf(error, error_bytes, "not enough memory");
        return -1;
    }
    tracing->report = request->report;
    choose_sites(tracing);
    begin(tracing);
    if (recording_read(&recording, request->path, take_event, tracing, error, error_bytes) == 0) {
        if (end(tracing, &recording)) {
            write_trace(tracing, &recording, out);
            result = 0;
        } else {
            snprintf(error, error_bytes, "not enough memory");
        }
        recording_release(&recording);
    }
    arena_release(&tracing->arena);
    pages_free(tracing, sizeof(*tracing));
    return result;
}
