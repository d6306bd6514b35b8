/* The JSON emitter (json_emit.h). Reports hold millions of figures: digits are made here, not by printf. */
#include "report/json_emit.h"

#include <string.h>

static void put(struct json *json, const char *text, size_t bytes)
{
    output_bytes(json->out, text, bytes);
}

static void begin(struct json *json, const char *key)
{
    uint64_t bit = UINT64_C(1) << json->depth;
    if (json->begun & bit)
        put(json, ",", 1);
    json->begun |= bit;
    if (key) { /* keys are ours and need no escape */
        put(json, "\"", 1);
        put(json, key, strlen(key));
        put(json, "\":", 2);
    }
}

void emit_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    put(json, &bracket, 1);
    json->depth++;
    json->begun &= ~(UINT64_C(1) << json->depth);
}

void emit_close(struct json *json, char bracket)
{
    json->depth--;
    put(json, &bracket, 1);
}

void emit_string(struct json *json, const char *key, const char *text)
{
    begin(json, key);
    if (json->in_html)
        output_json_string_in_html(json->out, text);
    else
        output_json_string(json->out, text);
}

void emit_u64(struct json *json, const char *key, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    if (value > INT64_MAX)
        value = INT64_MAX;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    begin(json, key);
    put(json, digits + at, sizeof digits - at);
}

void emit_i64(struct json *json, const char *key, int64_t value)
{
    if (value >= 0) {
        emit_u64(json, key, (uint64_t)value);
        return;
    }
    char digits[21];
    size_t at = sizeof digits;
    uint64_t left = -(uint64_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    digits[--at] = '-';
    begin(json, key);
    put(json, digits + at, sizeof digits - at);
}

void emit_thousandths(struct json *json, const char *key, uint64_t thousandths)
{
    char fraction[4] = {'.', (char)('0' + thousandths / 100 % 10), (char)('0' + thousandths / 10 % 10),
                        (char)('0' + thousandths % 10)};
    size_t bytes = sizeof fraction;
    while (bytes > 1 && fraction[bytes - 1] == '0')
        bytes--;
    emit_u64(json, key, thousandths / 1000);
    if (bytes > 1)
        put(json, fraction, bytes);
}

void emit_ratio(struct json *json, const char *key, uint64_t part, uint64_t whole)
{
    enum { DIGITS = 6, SCALE = 1000000 };
    uint64_t value = whole == 0 ? 0 : (uint64_t)(((unsigned __int128)part * SCALE + whole / 2) / whole);
    char fraction[1 + DIGITS] = {'.'};
    emit_u64(json, key, value / SCALE);
    value %= SCALE;
    for (int i = DIGITS; i > 0; i--, value /= 10)
        fraction[i] = (char)('0' + value % 10);
    put(json, fraction, sizeof fraction);
}

void emit_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    output_text(json->out, value ? "true" : "false");
}

void emit_null(struct json *json, const char *key)
{
    begin(json, key);
    put(json, "null", 4);
}

void emit_raw(struct json *json, const char *text, size_t bytes)
{
    begin(json, NULL);
    put(json, text, bytes);
}

void emit_known(struct json *json, const char *key, bool known, uint64_t value)
{
    if (known)
        emit_u64(json, key, value);
    else
        emit_null(json, key);
}

void emit_ordinal(struct json *json, const char *key, int value)
{
    emit_known(json, key, value >= 0, (uint64_t)value);
}

void emit_break(struct json *json)
{
    if (json->begun & UINT64_C(1) << json->depth) { /* the comma goes before the break */
        put(json, ",\n", 2);
        json->begun &= ~(UINT64_C(1) << json->depth);
    } else {
        put(json, "\n", 1);
    }
}
