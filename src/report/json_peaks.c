/* Peaks as JSON (json_peaks.h). */
#include "report/json_peaks.h"

#include "report/json_parts.h"

void json_holdings(struct json *json, const struct holding *holdings, size_t count)
{
    emit_open(json, "sites", '[');
    for (size_t i = 0; i < count; i++) {
        emit_open(json, NULL, '{');
        emit_u64(json, "site", holdings[i].site);
        emit_u64(json, "bytes", holdings[i].bytes);
        emit_u64(json, "blocks", holdings[i].blocks);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

/* The peak as it would have been: at most so much, where it is not exact. */
static void write_without(struct json *json, const struct peak_without *without)
{
    emit_u64(json, "peak_bytes", without->bytes);
    emit_known(json, "peak_time_ns", without->exact, without->time_ns);
    emit_bool(json, "exact", without->exact);
}

static void write_lines(struct json *json, const struct peak *peak)
{
    emit_open(json, "lines", '[');
    for (size_t i = 0; i < peak->lines.count; i++) {
        const struct source_line *line = &peak->lines.lines[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        json_line_figures(json, line);
        if (i < peak->without_count) {
            emit_open(json, "without", '{');
            write_without(json, &peak->without[i]);
            emit_close(json, '}');
        } else {
            emit_null(json, "without");
        }
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

/* All sites of the lines that would have to go. */
static void write_sites_of(struct json *json, const struct report *report, const struct peak *peak,
                           const struct peak_fall *fall)
{
    emit_open(json, "sites", '[');
    for (size_t i = 0; i < fall->line_count; i++)
        for (uint32_t site = 0; site < report->site_count; site++)
            if (report->sites[site].line == fall->lines[i].line &&
                report_is_in(&report->sites[site], peak->space))
                emit_u64(json, NULL, site);
    emit_close(json, ']');
}

static void write_falls(struct json *json, const struct report *report, const struct peak *peak)
{
    emit_open(json, "falls", '[');
    for (size_t i = 0; i < PEAK_FALL_COUNT; i++) {
        const struct peak_fall *fall = &peak->falls[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_u64(json, "percent", fall->percent);
        emit_u64(json, "target_bytes", fall->target_bytes);
        emit_open(json, "lines", '[');
        for (size_t k = 0; k < fall->line_count; k++) {
            emit_open(json, NULL, '{');
            emit_u64(json, "site", fall->lines[k].site);
            emit_u64(json, "bytes", fall->lines[k].bytes);
            emit_close(json, '}');
        }
        emit_close(json, ']');
        write_sites_of(json, report, peak, fall);
        emit_bool(json, "enough", fall->enough);
        write_without(json, &fall->then);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_peak(struct json *json, const char *key, const struct report *report,
                       const struct peak *peak)
{
    emit_open(json, key, '{');
    emit_string(json, "space", space_infos[peak->space->kind].name);
    emit_ordinal(json, "device", peak->space->device);
    emit_u64(json, "bytes", peak->space->totals.peak_bytes);
    emit_u64(json, "time_ns", peak->space->totals.peak_time_ns);
    emit_open(json, "phases", '[');
    for (uint32_t k = 0; k < peak->space->peak_phase_count; k++)
        emit_string(json, NULL, report_phase_name(report, peak->space->peak_phases[k]));
    emit_close(json, ']');
    json_holdings(json, peak->holdings, peak->count);
    write_lines(json, peak);
    write_falls(json, report, peak);
    emit_close(json, '}');
}

static void write_list(struct json *json, const char *key, const struct report *report,
                       const struct peak *peaks, size_t count)
{
    emit_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        emit_break(json);
        write_peak(json, NULL, report, &peaks[i]);
    }
    emit_close(json, ']');
}

void json_peaks(struct json *json, const struct report *report)
{
    write_list(json, "peaks", report, report->peaks, report->peak_count);
    write_list(json, "framework_peaks", report, report->framework_peaks, report->framework_peak_count);
    emit_break(json);
    if (report->whole_peak)
        write_peak(json, "whole_peak", report, report->whole_peak);
    else
        emit_null(json, "whole_peak");
}
