/* The JSON of peaks, and of who holds how much wherever that stands. */
#ifndef REPORT_JSON_PEAKS_H
#define REPORT_JSON_PEAKS_H

#include "report/json_emit.h"
#include "report/model.h"

/* The keys peaks, framework_peaks and whole_peak. */
void json_peaks(struct json *json, const struct report *report);
/* The key "sites": an array with an object for each. */
void json_holdings(struct json *json, const struct holding *holdings, size_t count);

#endif
