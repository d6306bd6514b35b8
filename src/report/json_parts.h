/* Keys of the JSON report that another output with the same data has too. */
#ifndef REPORT_JSON_PARTS_H
#define REPORT_JSON_PARTS_H

#include "report/json_emit.h"
#include "report/model.h"

/* By enum process_end, in this and every other output for programs. */
extern const char *const process_end_names[];

void json_process(struct json *json, const struct report *report);
void json_counters(struct json *json, const struct report *report);
void json_totals(struct json *json, const struct totals *totals);
/* site, sites, bytes, blocks */
void json_line_figures(struct json *json, const struct source_line *line);
/* count, times, peaks and nets of both layers */
void json_phase_figures(struct json *json, const struct program_phase *phase);
void json_memory_map(struct json *json, const struct report *report);
void json_notes(struct json *json, const struct report *report);

#endif
