/*
 * A SQLite database: process, spaces, sites with their frames, events and phases as tables; its user_version
 * is that of this schema. SQLite writes files only, so it is made in a temporary one and copied from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "export/formats.h"
#include "trace/reader.h"

static const char schema[] =
    "PRAGMA user_version = 1; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = "
    "EXCLUSIVE;"
    "CREATE TABLE process (pid INTEGER, host TEXT, exe TEXT, rank INTEGER, start_realtime_ns INTEGER,"
    " duration_ns INTEGER);"
    "CREATE TABLE spaces (layer TEXT, space TEXT, device INTEGER, live_bytes INTEGER, live_blocks INTEGER,"
    " peak_bytes INTEGER, peak_time_ns INTEGER, allocated_bytes INTEGER, allocs INTEGER, frees INTEGER);"
    "CREATE TABLE sites (id INTEGER PRIMARY KEY, title TEXT, layer TEXT, space TEXT, device INTEGER, family "
    "TEXT,"
    " api TEXT, owned INTEGER, suppressed INTEGER, allocs INTEGER, frees INTEGER, allocated_bytes INTEGER,"
    " live_bytes INTEGER, live_blocks INTEGER, bytes_at_peak INTEGER, blocks_at_peak INTEGER,"
    " bytes_per_second REAL);"
    "CREATE TABLE frames (site INTEGER REFERENCES sites, depth INTEGER, kind TEXT, function TEXT, file TEXT,"
    " line INTEGER, module TEXT, address INTEGER, inlined INTEGER, PRIMARY KEY (site, depth)) WITHOUT ROWID;"
    "CREATE TABLE events (id INTEGER PRIMARY KEY, time_ns INTEGER, type TEXT, site INTEGER REFERENCES sites,"
    " key_space INTEGER, key INTEGER, size INTEGER, device INTEGER, error INTEGER, free_bytes INTEGER,"
    " total_bytes INTEGER, name TEXT, range INTEGER);"
    "CREATE TABLE phases (name TEXT, depth INTEGER, count INTEGER, time_ns INTEGER, peak_bytes INTEGER,"
    " net_bytes INTEGER);"
    "BEGIN;";

struct database {
    sqlite3 *handle;
    const struct report *report;
    sqlite3_stmt *insert; /* of the table at hand */
    int column;
    bool failed;
};

static void prepare(struct database *database, const char *table, int columns)
{
    char text[256];
    int used = snprintf(text, sizeof(text), "INSERT INTO %s VALUES (?", table);
    for (int i = 1; i < columns; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, ",?");
    snprintf(text + used, sizeof(text) - (size_t)used, ")");
    sqlite3_finalize(database->insert);
    database->insert = NULL;
    database->column = 0;
    database->failed |= sqlite3_prepare_v2(database->handle, text, -1, &database->insert, NULL) != SQLITE_OK;
}

static void put_text(struct database *database, const char *text)
{
    char clean[EXPORT_NAME_MAX];
    if (text)
        sqlite3_bind_text(database->insert, ++database->column, export_text(text, clean, sizeof(clean)), -1,
                          SQLITE_TRANSIENT);
    else
        sqlite3_bind_null(database->insert, ++database->column);
}

static void put(struct database *database, uint64_t value)
{
    sqlite3_bind_int64(database->insert, ++database->column, (sqlite3_int64)value);
}

static void put_known(struct database *database, bool known, uint64_t value)
{
    if (known)
        put(database, value);
    else
        put_text(database, NULL);
}

static void put_row(struct database *database)
{
    database->failed |= database->failed || sqlite3_step(database->insert) != SQLITE_DONE;
    sqlite3_reset(database->insert);
    database->column = 0;
}

static void put_device(struct database *database, int device)
{
    put_known(database, device >= 0, (uint64_t)device);
}

static void write_process(struct database *database)
{
    const struct process_info *process = database->report->input->process;
    prepare(database, "process", 6);
    put(database, process->pid);
    put_text(database, process->host);
    put_text(database, process->exe);
    put_known(database, process->rank >= 0, (uint64_t)process->rank);
    put(database, process->start_realtime_ns);
    put(database, database->report->end_ns);
    put_row(database);
}

static void write_spaces(struct database *database)
{
    const struct ledger *ledger = database->report->input->ledger;
    prepare(database, "spaces", 10);
    for (size_t i = 0; i < ledger_space_count(ledger); i++) {
        const struct ledger_space *space = ledger_space(ledger, i);
        put_text(database, layer_names[space->layer]);
        put_text(database, space_infos[space->kind].name);
        put_device(database, space->device);
        put(database, space->totals.live_bytes);
        put(database, space->totals.live_blocks);
        put(database, space->totals.peak_bytes);
        put(database, space->totals.peak_time_ns);
        put(database, space->totals.allocated_bytes);
        put(database, space->totals.allocs);
        put(database, space->totals.frees);
        put_row(database);
    }
}

static void put_growth(struct database *database, uint32_t site)
{
    const struct report *report = database->report;
    const struct growing *growing = report->sites[site].grows ? report_growing(report, site) : NULL;
    if (growing)
        sqlite3_bind_double(database->insert, ++database->column, growing->growth.bytes_per_second);
    else
        put_text(database, NULL);
}

static void write_sites(struct database *database)
{
    const struct report *report = database->report;
    char title[TITLE_MAX];
    prepare(database, "sites", 17);
    for (uint32_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        const struct totals *totals = &site->figures.totals;
        put(database, i);
        put_text(database, report_site_title(report, i, TITLE_FUNCTION, title, sizeof(title)));
        put_text(database, layer_names[site->layer]);
        put_text(database, space_infos[site->key->space].name);
        put_device(database, site->key->device);
        put_text(database, family_infos[site->key->family].name);
        put_text(database, site->api);
        put(database, site->owned);
        put(database, site->suppressed);
        put(database, totals->allocs);
        put(database, totals->frees);
        put(database, totals->allocated_bytes);
        put(database, totals->live_bytes);
        put(database, totals->live_blocks);
        put(database, site->figures.bytes_at_peak);
        put(database, site->figures.blocks_at_peak);
        put_growth(database, i);
        put_row(database);
    }
}

/* Depth 0 is the innermost frame. */
static void write_frames(struct database *database)
{
    const struct report *report = database->report;
    prepare(database, "frames", 9);
    for (uint32_t i = 0; i < report->site_count; i++) {
        size_t count = 0;
        const struct named_frame *const *frames = report_stack(report, report->sites[i].stack, &count);
        for (size_t k = 0; k < count; k++) {
            bool native = frames[k]->kind == FRAME_NATIVE;
            put(database, i);
            put(database, k);
            put_text(database, native ? "native" : "python");
            put_text(database, frames[k]->function);
            put_text(database, frames[k]->file);
            put_known(database, frames[k]->line > 0, (uint64_t)frames[k]->line);
            put_text(database, frames[k]->module);
            put_known(database, native, frames[k]->offset);
            put(database, frames[k]->inlined);
            put_row(database);
        }
    }
}

static void write_phases(struct database *database)
{
    const struct report *report = database->report;
    prepare(database, "phases", 6);
    for (size_t i = 0; i < report->phase_count; i++) {
        const struct named_phase *phase = &report->phases[i];
        put_text(database, phase->name);
        put(database, phase->depth);
        put(database, phase->is.ranges);
        put(database, phase->is.time_ns);
        put(database, phase->is.layers[LAYER_DRIVER].peak_bytes);
        put(database, (uint64_t)phase->is.layers[LAYER_DRIVER].net_bytes);
        put_row(database);
    }
}

static const char *event_name(enum event_type type)
{
#define AS_CASE(symbol, code, fields)                                                                        \
    case EVENT_##symbol:                                                                                     \
        return #symbol;
    switch (type) {
        EVENTS(AS_CASE)
    }
#undef AS_CASE
    return "?";
}

/* The catalog of this second reading numbers as the first did. */
static void write_event(const struct recording *recording, const struct event *event, void *arg)
{
    struct database *database = arg;
    if (!event) {
        sqlite3_exec(database->handle, "DELETE FROM events", NULL, NULL, NULL);
        return;
    }
    unsigned fields = event_fields(event->type);
    const struct report *report = database->report;
    uint32_t site = fields & FIELD_SITE && event->site < catalog_site_count(report->input->catalog)
                        ? report->site_of_catalog[event->site]
                        : REPORT_NONE;
    put_text(database, NULL);
    put(database, event->time_ns);
    put_text(database, event_name(event->type));
    put_known(database, site != REPORT_NONE, site);
    put_known(database, fields & FIELD_KEY, block_key_space(event->key));
    put_known(database, fields & FIELD_KEY, block_key_number(event->key));
    put_known(database, fields & FIELD_SIZE, event->size);
    put_known(database, fields & FIELD_DEVICE, (uint64_t)event->device);
    put_known(database, fields & FIELD_ERROR, (uint64_t)event->error);
    put_known(database, fields & FIELD_FREE_BYTES, event->free_bytes);
    put_known(database, fields & FIELD_TOTAL_BYTES, event->total_bytes);
    put_text(database, fields & FIELD_NAME ? catalog_string(recording->catalog, event->name) : NULL);
    put_known(database, fields & FIELD_RANGE, event->range);
    put_row(database);
}

static int write_events(struct database *database, const char *path, char *error, size_t error_bytes)
{
    struct recording recording;
    prepare(database, "events", 13);
    if (recording_read(&recording, path, write_event, database, error, error_bytes) != 0)
        return -1;
    recording_release(&recording);
    return 0;
}

static int fill(const struct export_request *request, const char *path, char *error, size_t error_bytes)
{
    struct database database = {.report = request->report};
    int result = -1;
    snprintf(error, error_bytes, "SQLite cannot open its temporary file %s", path);
    if (sqlite3_open(path, &database.handle) == SQLITE_OK &&
        sqlite3_exec(database.handle, schema, NULL, NULL, NULL) == SQLITE_OK) {
        write_process(&database);
        write_spaces(&database);
        write_sites(&database);
        write_frames(&database);
        write_phases(&database);
        result = write_events(&database, request->path, error, error_bytes);
        sqlite3_finalize(database.insert);
        database.failed |= sqlite3_exec(database.handle, "COMMIT", NULL, NULL, NULL) != SQLITE_OK;
        if (result == 0 && database.failed) {
            snprintf(error, error_bytes, "SQLite: %s", sqlite3_errmsg(database.handle));
            result = -1;
        }
    }
    sqlite3_close(database.handle);
    return result;
}

static int copy(int fd, struct output *out, char *error, size_t error_bytes)
{
    char buffer[65536];
    ssize_t got;
    if (lseek(fd, 0, SEEK_SET) != 0)
        return -1;
    while ((got = read(fd, buffer, sizeof(buffer))) > 0)
        output_bytes(out, buffer, (size_t)got);
    if (got < 0)
        snprintf(error, error_bytes, "%s", strerror(errno));
    return got < 0 ? -1 : 0;
}

int export_sqlite(const struct export_request *request, struct output *out, char *error, size_t error_bytes)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof(path), "%s/gpumemtrace.XXXXXX", folder && folder[0] ? folder : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, error_bytes, "a temporary file is needed and cannot be made in TMPDIR: %s",
                 strerror(errno));
        return -1;
    }
    int result = fill(request, path, error, error_bytes);
    if (result == 0)
        result = copy(fd, out, error, error_bytes);
    close(fd);
    unlink(path);
    return result;
}
