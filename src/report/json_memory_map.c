/*
 * memory_map: one row a device. total = free + tracked + pool_unused + graph + context + modules +
 * granule_waste + other_processes + untracked, where a part that is null is in `untracked`; where nothing
 * is known of the end, all of those that belong to one moment are null.
 */
#include "report/json_parts.h"

#define AS_NAME(symbol, name) name,
static const char *const reason_names_of_samples[] = {SAMPLE_REASONS(AS_NAME)};
static const char *const basis_names[] = {BASES(AS_NAME)};
#undef AS_NAME

static void write_sample(struct json *json, const char *key, const struct memory_sample *sample)
{
    if (sample->total_bytes == 0) {
        emit_null(json, key);
        return;
    }
    emit_open(json, key, '{');
    emit_string(json, "reason", reason_names_of_samples[sample->reason]);
    emit_u64(json, "time_ns", sample->time_ns);
    emit_u64(json, "total_bytes", sample->total_bytes);
    emit_u64(json, "free_bytes", sample->free_bytes);
    emit_u64(json, "tracked_bytes", sample->tracked_bytes);
    emit_u64(json, "context_bytes", sample->context_bytes);
    emit_u64(json, "modules_bytes", sample->code_bytes);
    emit_u64(json, "pool_unused_bytes", sample->pool_unused_bytes);
    emit_u64(json, "graph_bytes", sample->graph_bytes);
    emit_u64(json, "rest_bytes", report_rest_of(sample));
    emit_close(json, '}');
}

/* Each moment once: the last of each reason, in the order of their times. */
static void write_samples(struct json *json, const struct device_figures *figures)
{
    const struct memory_sample *written = NULL;
    emit_open(json, "samples", '[');
    for (int i = 0; i < SAMPLE_REASON_COUNT; i++) {
        const struct memory_sample *next = NULL;
        for (int reason = 0; reason < SAMPLE_REASON_COUNT; reason++) {
            const struct memory_sample *sample = &figures->last[reason];
            bool later = !written || sample->time_ns > written->time_ns ||
                         (sample->time_ns == written->time_ns && sample > written);
            if (sample->total_bytes && later && (!next || sample->time_ns < next->time_ns))
                next = sample;
        }
        if (!next)
            break;
        write_sample(json, NULL, next);
        written = next;
    }
    emit_close(json, ']');
}

static void write_row(struct json *json, const struct device_memory *row)
{
    const struct device_figures *figures = row->figures;
    bool told = row->sample->total_bytes > 0, now = row->is_current;
    emit_open(json, NULL, '{');
    emit_ordinal(json, "device", figures->device);
    emit_u64(json, "time_ns", row->sample->time_ns);
    emit_string(json, "reason", told ? reason_names_of_samples[row->sample->reason] : NULL);
    emit_known(json, "total_bytes", told, row->sample->total_bytes);
    emit_known(json, "free_bytes", told, row->sample->free_bytes);
    emit_u64(json, "tracked_bytes", row->tracked_bytes);
    emit_known(json, "context_bytes", row->context_known, row->context_bytes);
    emit_u64(json, "contexts", figures->contexts.count);
    emit_string(json, "context_basis", basis_names[figures->contexts.basis]);
    emit_known(json, "modules_bytes", row->code_known, row->code_bytes);
    emit_u64(json, "modules", figures->code.count);
    emit_string(json, "modules_basis", basis_names[figures->code.basis]);
    emit_known(json, "pool_unused_bytes", now, row->pool_unused_bytes);
    emit_known(json, "graph_bytes", now, row->graph_bytes);
    emit_known(json, "granule_waste_bytes", now, row->rounding_bytes);
    emit_known(json, "process_bytes", figures->own_bytes > 0, figures->own_bytes);
    emit_known(json, "other_processes_bytes", row->others_known, row->others_bytes);
    emit_known(json, "untracked_bytes", now, row->untracked_bytes);
    emit_bool(json, "cut_to_fit", row->was_cut);
    write_samples(json, figures);
    write_sample(json, "first", &figures->first);
    write_sample(json, "peak", &figures->fullest);
    emit_close(json, '}');
}

void json_memory_map(struct json *json, const struct report *report)
{
    emit_open(json, "memory_map", '[');
    for (size_t i = 0; i < report->memory_count; i++) {
        emit_break(json);
        write_row(json, &report->memory[i]);
    }
    emit_close(json, ']');
}
