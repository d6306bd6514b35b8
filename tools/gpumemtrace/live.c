/* Looking at running processes; see live.h. */
#include "live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "symbols/symbols.h"
#include "trace/follow.h"

struct before {
    uint64_t live_bytes, allocs;
};

struct live_process {
    char *path, *problem;
    struct follow *follow;
    struct arena names, model; /* the symbol source; the report of the last look */
    struct symbol_source *symbols;
    struct report_input input;
    struct report *report;
    uint64_t looked_ns; /* 0: never */
    double seconds;     /* between the last two looks; 0: there was one */
    uint32_t site_room, space_room;
    struct before *sites;  /* by catalog id, at the look before the last */
    struct before *spaces; /* by the ledger's index */
};

const char *const live_order_names[LIVE_ORDER_COUNT] = {
#define AS_NAME(symbol, key, name) name,
    LIVE_ORDERS(AS_NAME)
#undef AS_NAME
};

const char live_order_keys[LIVE_ORDER_COUNT] = {
#define AS_KEY(symbol, key, name) key,
    LIVE_ORDERS(AS_KEY)
#undef AS_KEY
};

static void close_process(struct live_process *process)
{
    if (process->follow)
        follow_close(process->follow);
    if (process->symbols)
        dynsym_source_close(process->symbols);
    arena_release(&process->names);
    arena_release(&process->model);
    free(process->path);
    free(process->problem);
    free(process->sites);
    free(process->spaces);
    free(process);
}

static struct live_process *open_process(const char *path, char *error, size_t error_bytes)
{
    struct live_process *process = calloc(1, sizeof(*process));
    snprintf(error, error_bytes, "not enough memory");
    if (!process)
        return NULL;
    process->path = strdup(path);
    process->follow = process->path ? follow_open(path, error, error_bytes) : NULL;
    if (process->follow)
        return process;
    close_process(process);
    return NULL;
}

int live_add_file(struct live *live, const char *path, char *error, size_t error_bytes)
{
    for (size_t i = 0; i < live->process_count; i++)
        if (strcmp(live->processes[i]->path, path) == 0)
            return 0;
    if (live->process_count == live->process_room) {
        size_t room = live->process_room * 2 + 8;
        struct live_process **longer = realloc(live->processes, room * sizeof(struct live_process *));
        if (!longer) {
            snprintf(error, error_bytes, "not enough memory");
            return -1;
        }
        live->processes = longer;
        live->process_room = room;
    }
    struct live_process *process = open_process(path, error, error_bytes);
    if (!process)
        return -1;
    live->processes[live->process_count++] = process;
    return 0;
}

static void add_found(const char *path, void *arg)
{
    char error[512];
    live_add_file(arg, path, error, sizeof(error)); /* one that is gone already is no loss */
}

int live_add_pid(struct live *live, uint32_t pid, char *error, size_t error_bytes)
{
    size_t before = live->process_count;
    live_find(pid, add_found, live);
    if (live->process_count > before)
        return 0;
    snprintf(error, error_bytes,
             "process %u writes no recording that we may read; was it started by 'gpumemtrace run'?",
             (unsigned)pid);
    return -1;
}

void live_add_all(struct live *live)
{
    live->finds = true;
    live_find_all(add_found, live);
}

static bool reach(struct before **start, uint32_t *room, uint32_t count)
{
    if (count <= *room)
        return true;
    struct before *longer = realloc(*start, (size_t)count * sizeof(*longer));
    if (!longer)
        return false;
    memset(longer + *room, 0, (count - *room) * sizeof(*longer));
    *start = longer;
    *room = count;
    return true;
}

/* What the next look is compared with. */
static bool remember(struct live_process *process)
{
    const struct recording *recording = follow_recording(process->follow);
    uint32_t sites = catalog_site_count(recording->catalog);
    uint32_t spaces = (uint32_t)ledger_space_count(recording->ledger);
    if (!reach(&process->sites, &process->site_room, sites) ||
        !reach(&process->spaces, &process->space_room, spaces))
        return false;
    for (uint32_t i = 0; i < sites; i++) {
        struct site_totals site = ledger_site(recording->ledger, i);
        process->sites[i] = (struct before){site.totals.live_bytes, site.totals.allocs};
    }
    for (uint32_t i = 0; i < spaces; i++) {
        const struct totals *totals = &ledger_space(recording->ledger, i)->totals;
        process->spaces[i] = (struct before){totals->live_bytes, totals->allocs};
    }
    return true;
}

static bool build(struct live_process *process, bool anew)
{
    const struct recording *recording = follow_recording(process->follow);
    if (anew) {
        if (process->symbols)
            dynsym_source_close(process->symbols);
        arena_release(&process->names);
        process->symbols = dynsym_source_create(&process->names);
    }
    arena_release(&process->model);
    process->input = (struct report_input){
        .catalog = recording->catalog,
        .ledger = recording->ledger,
        .process = &recording->process,
        .symbols = process->symbols,
    };
    process->report = report_build(&process->input, &process->model);
    return process->report != NULL;
}

static bool look(struct live_process *process)
{
    char error[512];
    bool anew, is_first = process->looked_ns == 0;
    uint64_t now = clock_monotonic_ns();
    if (process->problem)
        return true;
    if (!is_first && !remember(process))
        return false;
    if (follow_read(process->follow, &anew, error, sizeof(error)) != 0) {
        process->problem = strdup(error);
        process->report = NULL;
        return process->problem != NULL;
    }
    process->seconds = is_first ? 0 : (double)(now - process->looked_ns) / 1e9;
    process->looked_ns = now;
    return build(process, anew);
}

static double per_second(const struct live_process *process, uint64_t before, uint64_t now)
{
    return process->seconds > 0 ? ((double)now - (double)before) / process->seconds : 0;
}

static void add_spaces(struct live *live, const struct live_process *process)
{
    const struct ledger *ledger = process->input.ledger;
    for (uint32_t i = 0; i < ledger_space_count(ledger); i++) {
        const struct ledger_space *space = ledger_space(ledger, i);
        struct before before = i < process->space_room ? process->spaces[i] : (struct before){0};
        live->spaces[live->space_count++] = (struct live_space){
            process,
            space,
            per_second(process, before.live_bytes, space->totals.live_bytes),
            per_second(process, before.allocs, space->totals.allocs),
        };
    }
}

static void add_sites(struct live *live, const struct live_process *process)
{
    const struct report *report = process->report;
    struct live_site *first = live->sites + live->site_count;
    for (uint32_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        uint64_t before =
            site->catalog_id < process->site_room ? process->sites[site->catalog_id].live_bytes : 0;
        live->sites[live->site_count++] = (struct live_site){
            process, site, i, per_second(process, before, site->figures.totals.live_bytes), 0};
    }
    for (size_t i = 0; i < report->growing_count; i++)
        first[report->growing[i].site].growth = report->growing[i].growth.bytes_per_second;
}

static double order_value(const struct live_site *site, enum live_order order)
{
    switch (order) {
    case LIVE_BY_PEAK:
        return (double)site->site->figures.bytes_at_peak;
    case LIVE_BY_RATE:
        return site->bytes_per_second < 0 ? -site->bytes_per_second : site->bytes_per_second;
    case LIVE_BY_GROWTH:
        return site->growth;
    case LIVE_BY_ALLOCS:
        return (double)site->site->figures.totals.allocs;
    default:
        return (double)site->site->figures.totals.live_bytes;
    }
}

static int by_order(const void *left, const void *right, void *arg)
{
    const struct live_site *a = left, *b = right;
    enum live_order order = *(const enum live_order *)arg;
    double x = order_value(a, order), y = order_value(b, order);
    if (x == y) {
        x = (double)a->site->figures.totals.live_bytes;
        y = (double)b->site->figures.totals.live_bytes;
    }
    if (x != y)
        return x > y ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Of the processes that were found, those that ended make room. */
static void drop_ended(struct live *live)
{
    size_t kept = 0;
    for (size_t i = 0; i < live->process_count; i++) {
        struct live_process *process = live->processes[i];
        if (process->report && live_info(process)->end == PROCESS_RUNNING)
            live->processes[kept++] = process;
        else
            close_process(process);
    }
    live->process_count = kept;
}

bool live_look(struct live *live)
{
    size_t spaces = 1, sites = 1;
    if (live->finds)
        live_find_all(add_found, live);
    for (size_t i = 0; i < live->process_count; i++)
        if (!look(live->processes[i]))
            return false;
    if (live->finds)
        drop_ended(live);
    for (size_t i = 0; i < live->process_count; i++) {
        const struct report *report = live->processes[i]->report;
        spaces += report ? ledger_space_count(report->input->ledger) : 0;
        sites += report ? report->site_count : 0;
    }
    arena_release(&live->arena);
    live->space_count = live->site_count = 0;
    live->spaces = arena_alloc(&live->arena, spaces * sizeof(*live->spaces));
    live->sites = arena_alloc(&live->arena, sites * sizeof(*live->sites));
    if (!live->spaces || !live->sites)
        return false;
    for (size_t i = 0; i < live->process_count; i++) {
        if (!live->processes[i]->report)
            continue;
        add_spaces(live, live->processes[i]);
        add_sites(live, live->processes[i]);
    }
    live_sort(live);
    return true;
}

void live_sort(struct live *live)
{
    if (live->site_count > 0)
        qsort_r(live->sites, live->site_count, sizeof(*live->sites), by_order, &live->order);
}

bool live_any_running(const struct live *live)
{
    for (size_t i = 0; i < live->process_count; i++)
        if (live->processes[i]->report && live_info(live->processes[i])->end == PROCESS_RUNNING)
            return true;
    return false;
}

void live_release(struct live *live)
{
    for (size_t i = 0; i < live->process_count; i++)
        close_process(live->processes[i]);
    free(live->processes);
    arena_release(&live->arena);
    *live = (struct live){0};
}

const struct report *live_report(const struct live_process *process)
{
    return process->report;
}

const struct process_info *live_info(const struct live_process *process)
{
    return &follow_recording(process->follow)->process;
}

const char *live_path(const struct live_process *process)
{
    return process->path;
}

const char *live_problem(const struct live_process *process)
{
    return process->problem;
}
