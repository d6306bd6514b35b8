/*
 * Books kept by hand for the tests of reports: a catalog and a ledger filled through their own functions, as
 * the recorder does, and the reports written from them.
 */
#ifndef TESTS_REPORT_BOOKS_H
#define TESTS_REPORT_BOOKS_H

#include <string.h>

#include <jansson.h>

#include "report/report.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

struct books {
    struct arena arena;
    struct catalog *catalog;
    struct ledger *ledger;
    struct process_info process;
    struct report_input input;
    struct report *report; /* built by the first books_* that writes */
};

/* A process that exited after ten seconds; change `process` and `input` before writing. */
void books_open(struct books *books);
void books_close(struct books *books);

uint32_t books_python(struct books *books, const char *function, const char *file, int line);
uint32_t books_module(struct books *books, const char *path);
uint32_t books_native(struct books *books, uint32_t module, uint64_t offset);
/* Frames innermost first; none: no stack. */
uint32_t books_site(struct books *books, const char *api, enum family family, enum space_kind space,
                    int device, const uint32_t *frames, uint32_t count);
/* cuMemAlloc on device 0. */
uint32_t books_plain(struct books *books, const uint32_t *frames, uint32_t count);

void books_alloc(struct books *books, uint32_t site, uint64_t address, uint64_t size, uint64_t time_ns);
void books_free(struct books *books, uint32_t site, uint64_t address, uint64_t time_ns);
void books_event(struct books *books, struct event event);
/* The key of a block of this site, as a hook would make it. */
uint64_t books_key(const struct books *books, uint32_t site, uint64_t number);

json_t *books_json(struct books *books);
/* Freed by the caller. */
char *books_json_text(struct books *books);
char *books_text(struct books *books, bool full);
char *books_summary(struct books *books);

/* Integer at a path like "process.pid" or "sites.0.live_bytes"; fails the test where there is none. */
long long json_at(const json_t *json, const char *path);
const json_t *json_node(const json_t *json, const char *path);
const char *json_text_at(const json_t *json, const char *path);

/* Number of the line, from 1, that holds `part`; 0: none. */
int line_with(const char *text, const char *part);
#define assert_has(text, part)                                                                               \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("\"%s\" is not in:\n%s", part, text);                                                   \
    } while (0)
#define assert_lacks(text, part)                                                                             \
    do {                                                                                                     \
        if (strstr(text, part))                                                                              \
            fail_msg("\"%s\" is in:\n%s", part, text);                                                       \
    } while (0)

#endif
