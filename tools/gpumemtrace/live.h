/*
 * Processes looked at while they run, through the recordings that they write: what is alive, how it changes,
 * and which sites grow. Each look costs what happened since the last one.
 */
#ifndef GPUMEMTRACE_LIVE_H
#define GPUMEMTRACE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/model.h"

struct live_process;

/* One space of one process. */
struct live_space {
    const struct live_process *process;
    const struct ledger_space *space;
    double bytes_per_second, allocs_per_second; /* since the look before; 0 at the first */
};

/* One line of code of one process. */
struct live_site {
    const struct live_process *process;
    const struct report_site *site;
    uint32_t id; /* in its report */
    double bytes_per_second;
    double growth; /* bytes per second, by the whole history; 0: does not grow */
};

/* What sites are sorted by. X(symbol, key on the terminal, name) */
#define LIVE_ORDERS(X)                                                                                       \
    X(LIVE, 'l', "live")                                                                                     \
    X(PEAK, 'p', "peak")                                                                                     \
    X(RATE, 'r', "rate")                                                                                     \
    X(GROWTH, 'g', "growth")                                                                                 \
    X(ALLOCS, 'a', "allocs")

#define AS_ORDER(symbol, key, name) LIVE_BY_##symbol,
enum live_order { LIVE_ORDERS(AS_ORDER) LIVE_ORDER_COUNT };
#undef AS_ORDER

extern const char *const live_order_names[LIVE_ORDER_COUNT];
extern const char live_order_keys[LIVE_ORDER_COUNT];

struct live {
    bool finds; /* new recordings are looked for among all processes of the machine */
    enum live_order order;
    size_t process_count, process_room;
    struct live_process **processes;
    size_t space_count, site_count; /* after live_look() */
    struct live_space *spaces;
    struct live_site *sites; /* in order */
    /* Inside: */
    struct arena arena; /* of the rows */
};

/* 0, or -1 with a sentence. */
int live_add_file(struct live *live, const char *path, char *error, size_t error_bytes);
/* The recordings that the process writes. 0, or -1 with a sentence when there is none. */
int live_add_pid(struct live *live, uint32_t pid, char *error, size_t error_bytes);
/* Those of every process that we may look at. */
void live_add_all(struct live *live);
/* One look. Processes that have ended stay, as they were; of those that were found, only the living. False
 * when memory ran out. */
bool live_look(struct live *live);
/* Puts the sites in another order, without a look. */
void live_sort(struct live *live);
bool live_any_running(const struct live *live);
void live_release(struct live *live);

/* Of one process, as the last look found it. */
const struct report *live_report(const struct live_process *process);
const struct process_info *live_info(const struct live_process *process);
const char *live_path(const struct live_process *process);
/* Why it cannot be read any more; NULL: it can. */
const char *live_problem(const struct live_process *process);

/* live_find.c: calls `found` with the path of each recording that a process has mapped. */
void live_find(uint32_t pid, void (*found)(const char *path, void *arg), void *arg);
/* … that any process has. */
void live_find_all(void (*found)(const char *path, void *arg), void *arg);

#endif
