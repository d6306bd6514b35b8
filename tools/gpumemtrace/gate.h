/*
 * Conditions that a run must not meet, for --fail-on: [WHERE:]METRIC>LIMIT, as "peak>+5%" or
 * "site:train.py:leak>64M". They are read here, and decided on a comparison, which may be one with nothing
 * before. A gate never prints; whoever asks says what came of it.
 *
 *   METRIC  peak    bytes at the highest moment
 *           leak    bytes still allocated at the end, without what is suppressed
 *           growth  bytes per second that sites which grow gain
 *   WHERE   none    each space of memory by itself for peak; all together for leak and growth
 *           a space's name (device, managed, pinned, …), or device:N
 *           site:PATTERN    places whose title has PATTERN in it, together; * stands for anything
 *   LIMIT   a number, with K, M, G or T for powers of 1024; with + it is counted from the runs before, and
 * may then be a percentage. Of several runs before, from the highest, and their spread is added; but
 * where they differ in length, which growth does not depend on, only those as long as the run after count, or
 * no spread is added.
 */
#ifndef GPUMEMTRACE_GATE_H
#define GPUMEMTRACE_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "comparison.h"

enum gate_metric { GATE_PEAK, GATE_LEAK, GATE_GROWTH, GATE_METRIC_COUNT };

struct gate {
    const char *text; /* as it was written */
    enum gate_metric metric;
    const char *site;  /* PATTERN, of site_bytes; NULL: not by site */
    size_t site_bytes; /* … */
    const char *space; /* NULL: all */
    int device;        /* -1: all */
    bool relative, percent;
    double amount; /* bytes, or per cent */
};

struct gate_result {
    bool failed;
    char why[512]; /* "device 0: 278.0 MiB → 320.0 MiB, …": what came of it, failed or not */
};

/* `text` must outlive the gate. 0, or -1 with a sentence. */
int gate_read(struct gate *gate, const char *text, char *error, size_t error_bytes);
void gate_check(const struct gate *gate, const struct comparison *comparison, struct gate_result *result);

#define GATES_MAX 64

struct gates {
    size_t count;
    struct gate gates[GATES_MAX];
    struct gate_result results[GATES_MAX];
};

struct command;

/* One --fail-on; what cannot be read ends the process with a sentence. */
void gates_add(struct gates *gates, const struct command *command, const char *text);
/* Whether a word that follows --fail-on is one more of its expressions: it reads as one, and is no file. */
bool gates_take_word(struct gates *gates, const char *word);
bool gates_need_baseline(const struct gates *gates);
/* Decides all. Returns how many failed. */
size_t gates_check(struct gates *gates, const struct comparison *comparison);
/* One line on stderr for those that failed; `subject` as in complain(). */
void gates_complain(const struct gates *gates, const char *subject);

#endif
