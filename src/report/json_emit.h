/*
 * Emits JSON in order: keys, values and closings; commas and quoting are done here. A value inside an object
 * has a key; inside an array its key is NULL. Integers above 2^63-1, which many readers refuse, become that.
 */
#ifndef REPORT_JSON_EMIT_H
#define REPORT_JSON_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/output.h"

struct json {
    struct output *out;
    uint64_t begun; /* one bit a level: it has an element */
    int depth;      /* below 64 */
    bool in_html;   /* inside a <script> of a page */
};

void emit_open(struct json *json, const char *key, char bracket);
void emit_close(struct json *json, char bracket);
void emit_string(struct json *json, const char *key, const char *text); /* NULL gives null */
void emit_u64(struct json *json, const char *key, uint64_t value);
void emit_i64(struct json *json, const char *key, int64_t value);
/* A number with up to three digits behind the point: 1500 gives 1.5. */
void emit_thousandths(struct json *json, const char *key, uint64_t thousandths);
/* part / whole, from 0 to 1, with six digits; 0 of nothing. */
void emit_ratio(struct json *json, const char *key, uint64_t part, uint64_t whole);
void emit_bool(struct json *json, const char *key, bool value);
void emit_null(struct json *json, const char *key);
/* null where `known` is false */
void emit_known(struct json *json, const char *key, bool known, uint64_t value);
/* null below 0 */
void emit_ordinal(struct json *json, const char *key, int value);
/* One or more elements that are JSON already. */
void emit_raw(struct json *json, const char *text, size_t bytes);
/* Before the next element: a line break, so that the file has a line for each and can be searched with grep.
 */
void emit_break(struct json *json);

#endif
