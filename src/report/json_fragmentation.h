/* The JSON of fragmentation, and of allocators' layouts wherever they stand. */
#ifndef REPORT_JSON_FRAGMENTATION_H
#define REPORT_JSON_FRAGMENTATION_H

#include "report/json_emit.h"
#include "report/model.h"

void json_fragmentation(struct json *json, const struct report *report);
/* `key`: an array with an object for each layout. */
void json_layouts(struct json *json, const char *key, const struct report *report,
                  const struct layout *layouts, size_t count);

#endif
