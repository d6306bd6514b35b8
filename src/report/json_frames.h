/*
 * The frames of a stack as JSON. Each frame's text is made once: a report of 10,000 sites names half a
 * million frames, and few of them are distinct.
 */
#ifndef REPORT_JSON_FRAMES_H
#define REPORT_JSON_FRAMES_H

#include "report/json_emit.h"
#include "report/model.h"

void emit_frames(struct json *json, const struct report *report, const struct stack *stack);

#endif
