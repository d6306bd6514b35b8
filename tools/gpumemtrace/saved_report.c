/* Reading reports back from JSON, with every type checked; see saved_report.h. */
#include "saved_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "gpumemtrace/trace.h"
#include "rendering.h"

#define SCHEMA "gpumemtrace.report/1"
static const char too_large[] = "its report is too large to be compared";

/* Reading one file: the first thing that is wrong is what is told. */
struct reading {
    char *error;
    size_t error_bytes;
    const char *list; /* the list and the place in it that is being read, for the sentence */
    size_t index;
};

static bool wrong(struct reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(struct reading *reading, const char *format, ...)
{
    va_list arguments;
    int used = reading->list ? snprintf(reading->error, reading->error_bytes,
                                        "damaged report: %s[%zu]: ", reading->list, reading->index)
                             : snprintf(reading->error, reading->error_bytes, "damaged report: ");
    va_start(arguments, format);
    if (used > 0 && (size_t)used < reading->error_bytes)
        vsnprintf(reading->error + used, reading->error_bytes - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

static bool get_count(struct reading *reading, json_t *object, const char *key, uint64_t *value)
{
    json_t *found = json_object_get(object, key);
    if (!json_is_integer(found) || json_integer_value(found) < 0)
        return wrong(reading, "%s is no count", key);
    *value = (uint64_t)json_integer_value(found);
    return true;
}

static bool get_text(struct reading *reading, json_t *object, const char *key, const char **value)
{
    *value = json_string_value(json_object_get(object, key));
    return *value || wrong(reading, "%s is no text", key);
}

/* NULL where the key is missing or null. */
static bool get_optional_text(struct reading *reading, json_t *object, const char *key, const char **value)
{
    json_t *found = json_object_get(object, key);
    *value = json_string_value(found);
    return *value || !found || json_is_null(found) || wrong(reading, "%s is neither text nor null", key);
}

/* False where the key is missing. */
static bool get_optional_bool(struct reading *reading, json_t *object, const char *key, bool *value)
{
    json_t *found = json_object_get(object, key);
    *value = json_is_true(found);
    return !found || json_is_boolean(found) || wrong(reading, "%s is neither true nor false", key);
}

/* -1 where the key is missing or null. */
static bool get_ordinal(struct reading *reading, json_t *object, const char *key, int *ordinal)
{
    json_t *found = json_object_get(object, key);
    *ordinal = -1;
    if (!found || json_is_null(found))
        return true;
    if (!json_is_integer(found) || json_integer_value(found) < 0 || json_integer_value(found) > INT_MAX)
        return wrong(reading, "%s is no ordinal", key);
    *ordinal = (int)json_integer_value(found);
    return true;
}

/* 0 where the key is missing or null. */
static bool get_optional_count(struct reading *reading, json_t *object, const char *key, uint64_t *value)
{
    json_t *found = json_object_get(object, key);
    *value = 0;
    return !found || json_is_null(found) || get_count(reading, object, key, value);
}

static bool get_list(struct reading *reading, json_t *object, const char *key, json_t **list)
{
    *list = json_object_get(object, key);
    return json_is_array(*list) || wrong(reading, "%s is no list", key);
}

/* calloc() that never returns NULL for want of elements. */
static void *allocate(struct reading *reading, size_t count, size_t bytes)
{
    void *start = calloc(count + 1, bytes);
    if (!start)
        wrong(reading, "not enough memory");
    return start;
}

static bool read_figures(struct reading *reading, json_t *object, const char *peak_key,
                         struct saved_figures *figures)
{
    return get_count(reading, object, "live_bytes", &figures->live_bytes) &&
           get_count(reading, object, "live_blocks", &figures->live_blocks) &&
           get_count(reading, object, peak_key, &figures->peak_bytes) &&
           get_count(reading, object, "allocs", &figures->allocs) &&
           get_count(reading, object, "frees", &figures->frees) &&
           get_count(reading, object, "allocated_bytes", &figures->allocated_bytes);
}

static bool read_frame(struct reading *reading, json_t *object, struct saved_frame *frame)
{
    const char *kind;
    json_t *offset = json_object_get(object, "offset");
    if (!get_text(reading, object, "kind", &kind) ||
        !get_optional_text(reading, object, "function", &frame->function) ||
        !get_optional_text(reading, object, "file", &frame->file) ||
        !get_optional_text(reading, object, "module", &frame->module) ||
        !get_optional_bool(reading, object, "inlined", &frame->inlined))
        return false;
    frame->python = strcmp(kind, "python") == 0;
    if (!frame->python && strcmp(kind, "native") != 0)
        return wrong(reading, "a frame's kind is neither python nor native");
    frame->has_offset = json_is_integer(offset);
    frame->offset = (uint64_t)json_integer_value(offset);
    return true;
}

static bool read_frames(struct reading *reading, json_t *object, struct saved_site *site)
{
    json_t *list;
    if (!get_list(reading, object, "frames", &list))
        return false;
    site->frames = allocate(reading, json_array_size(list), sizeof(*site->frames));
    if (!site->frames)
        return false;
    site->frame_count = json_array_size(list);
    for (size_t i = 0; i < site->frame_count; i++)
        if (!read_frame(reading, json_array_get(list, i), &site->frames[i]))
            return false;
    return true;
}

static bool read_site(struct reading *reading, json_t *object, struct saved_site *site)
{
    return get_optional_text(reading, object, "title", &site->title) &&
           get_text(reading, object, "layer", &site->layer) &&
           get_text(reading, object, "space", &site->space) &&
           get_text(reading, object, "family", &site->family) &&
           get_text(reading, object, "api", &site->api) &&
           get_ordinal(reading, object, "device", &site->device) &&
           get_optional_bool(reading, object, "suppressed", &site->suppressed) &&
           read_figures(reading, object, "bytes_at_peak", &site->figures) &&
           get_count(reading, object, "blocks_at_peak", &site->figures.peak_blocks) &&
           get_optional_count(reading, object, "first_time_ns", &site->first_time_ns) &&
           get_optional_count(reading, object, "last_time_ns", &site->figures.last_time_ns) &&
           get_optional_count(reading, object, "peak_bytes", &site->figures.own_peak_bytes) &&
           read_frames(reading, object, site);
}

/* Room for what the list has; what is wrong with it is told by the list's name from here on. */
static void *begin_list(struct reading *reading, const char *name, json_t *list, size_t item_bytes)
{
    void *items = allocate(reading, json_array_size(list), item_bytes);
    if (items)
        reading->list = name;
    return items;
}

static bool read_sites(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *list;
    if (!get_list(reading, root, "sites", &list))
        return false;
    report->sites = begin_list(reading, "sites", list, sizeof(*report->sites));
    if (!report->sites)
        return false;
    report->site_count = json_array_size(list);
    for (reading->index = 0; reading->index < report->site_count; reading->index++)
        if (!read_site(reading, json_array_get(list, reading->index), &report->sites[reading->index]))
            return false;
    reading->list = NULL;
    return true;
}

static struct saved_site *site_of(struct reading *reading, json_t *id, struct saved_report *report)
{
    if (json_is_integer(id) && json_integer_value(id) >= 0 &&
        (uint64_t)json_integer_value(id) < report->site_count)
        return &report->sites[json_integer_value(id)];
    wrong(reading, "it names a site that is not there");
    return NULL;
}

/* Which lines keep adding up; not in reports of version 0.1.0. */
static bool read_leaking_lines(struct reading *reading, json_t *leaks, struct saved_report *report)
{
    json_t *list = json_object_get(leaks, "lines");
    if (!list)
        return true;
    if (!json_is_array(list))
        return wrong(reading, "lines is no list");
    reading->list = "leaks.lines";
    for (reading->index = 0; reading->index < json_array_size(list); reading->index++) {
        json_t *row = json_array_get(list, reading->index);
        struct saved_site *site = site_of(reading, json_object_get(row, "site"), report);
        const char *reason = NULL;
        uint64_t bytes = 0;
        if (!site || !get_text(reading, row, "reason", &reason) || !get_count(reading, row, "bytes", &bytes))
            return false;
        if (strcmp(reason, "adds_up") == 0)
            site->figures.adding_bytes = bytes;
    }
    reading->list = NULL;
    return true;
}

static bool read_leaks(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *leaks = json_object_get(root, "leaks"), *list;
    if (!json_is_object(leaks))
        return wrong(reading, "leaks is no object");
    if (!get_list(reading, leaks, "sites", &list))
        return false;
    reading->list = "leaks.sites";
    for (reading->index = 0; reading->index < json_array_size(list); reading->index++) {
        struct saved_site *site = site_of(reading, json_array_get(list, reading->index), report);
        if (!site)
            return false;
        site->figures.leaked_bytes = site->figures.live_bytes;
    }
    reading->list = NULL;
    return read_leaking_lines(reading, leaks, report);
}

static bool read_ooms(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *list;
    if (!get_list(reading, root, "ooms", &list))
        return false;
    report->oom_count = json_array_size(list);
    return report->oom_count == 0 ||
           get_text(reading, json_array_get(list, report->oom_count - 1), "verdict", &report->verdict);
}

/* By line where the report has that: the rate of a whole line stands at its biggest site. */
static bool read_growth(struct reading *reading, json_t *root, struct saved_report *report)
{
    const char *key = json_object_get(root, "growth_lines") ? "growth_lines" : "growth";
    json_t *list;
    if (!get_list(reading, root, key, &list))
        return false;
    reading->list = key;
    for (reading->index = 0; reading->index < json_array_size(list); reading->index++) {
        json_t *row = json_array_get(list, reading->index), *rate = json_object_get(row, "bytes_per_second");
        struct saved_site *site = site_of(reading, json_object_get(row, "site"), report);
        if (!site)
            return false;
        if (!json_is_number(rate) || json_number_value(rate) < 0 || json_number_value(rate) > 1e18)
            return wrong(reading, "bytes_per_second is no rate");
        site->figures.growth_per_second = (uint64_t)(json_number_value(rate) + 0.5);
    }
    reading->list = NULL;
    return true;
}

static bool read_spaces(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *list;
    if (!get_list(reading, root, "spaces", &list))
        return false;
    report->spaces = begin_list(reading, "spaces", list, sizeof(*report->spaces));
    if (!report->spaces)
        return false;
    report->space_count = json_array_size(list);
    for (reading->index = 0; reading->index < report->space_count; reading->index++) {
        json_t *object = json_array_get(list, reading->index);
        struct saved_space *space = &report->spaces[reading->index];
        if (!get_text(reading, object, "space", &space->space) ||
            !get_ordinal(reading, object, "device", &space->device) ||
            !read_figures(reading, object, "peak_bytes", &space->figures))
            return false;
    }
    reading->list = NULL;
    return true;
}

static bool read_phases(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *list = json_object_get(root, "phases");
    if (!list)
        return true;
    if (!json_is_array(list))
        return wrong(reading, "phases is no list");
    report->phases = begin_list(reading, "phases", list, sizeof(*report->phases));
    if (!report->phases)
        return false;
    report->phase_count = json_array_size(list);
    for (reading->index = 0; reading->index < report->phase_count; reading->index++) {
        json_t *object = json_array_get(list, reading->index);
        struct saved_phase *phase = &report->phases[reading->index];
        if (!get_text(reading, object, "name", &phase->name) ||
            !get_count(reading, object, "count", &phase->count) ||
            !get_optional_count(reading, object, "first_time_ns", &phase->first_time_ns))
            return false;
    }
    reading->list = NULL;
    return true;
}

static bool read_steps(struct reading *reading, json_t *root, struct saved_report *report)
{
    return get_optional_count(reading, json_object_get(root, "counters"), "steps", &report->steps);
}

static bool read_process(struct reading *reading, json_t *root, struct saved_report *report)
{
    json_t *process = json_object_get(root, "process");
    if (!json_is_object(process))
        return wrong(reading, "process is no object");
    int pid = 0;
    if (!get_ordinal(reading, process, "rank", &report->rank) || !get_ordinal(reading, process, "pid", &pid))
        return false;
    report->pid = pid > 0 ? (uint32_t)pid : 0;
    return get_optional_text(reading, process, "exe", &report->program) &&
           get_optional_text(reading, process, "host", &report->host) &&
           get_text(reading, process, "end", &report->end) &&
           get_count(reading, process, "duration_ns", &report->duration_ns) &&
           get_optional_bool(reading, process, "complete", &report->complete);
}

static bool read_report(struct reading *reading, json_t *root, struct saved_report *report)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema || strcmp(schema, SCHEMA) != 0) {
        snprintf(reading->error, reading->error_bytes, "not a report of gpumemtrace (no schema %s)", SCHEMA);
        return false;
    }
    return read_process(reading, root, report) && read_spaces(reading, root, report) &&
           read_sites(reading, root, report) && read_leaks(reading, root, report) &&
           read_growth(reading, root, report) && read_ooms(reading, root, report) &&
           read_phases(reading, root, report) && read_steps(reading, root, report);
}

/* Takes the tree, which may be NULL. */
static int take_json(struct saved_report *report, json_t *root, const json_error_t *problem, char *error,
                     size_t error_bytes)
{
    struct reading reading = {.error = error, .error_bytes = error_bytes};
    memset(report, 0, sizeof(*report));
    if (!root) {
        snprintf(error, error_bytes, "neither a recording nor a JSON report (line %d: %s)", problem->line,
                 problem->text);
        return -1;
    }
    report->json = root;
    if (read_report(&reading, root, report))
        return 0;
    saved_report_release(report);
    return -1;
}

int saved_report_parse(struct saved_report *report, const char *text, size_t bytes, char *error,
                       size_t error_bytes)
{
    json_error_t problem;
    json_t *root = json_loadb(text, bytes, 0, &problem);
    return take_json(report, root, &problem, error, error_bytes);
}

/* Takes the descriptor. */
static int load_json(struct saved_report *report, int fd, char *error, size_t error_bytes)
{
    json_error_t problem;
    FILE *file = fdopen(fd, "r"); /* json_loadfd() would read byte by byte */
    if (!file) {
        snprintf(error, error_bytes, "not enough memory");
        close(fd);
        return -1;
    }
    json_t *root = json_loadf(file, 0, &problem);
    fclose(file);
    return take_json(report, root, &problem, error, error_bytes);
}

/* A file in memory with the JSON of a recording, or -1. */
static int render_to_json(const char *path, const struct symbol_places *places, char *error,
                          size_t error_bytes)
{
    struct rendering rendering;
    struct output out;
    int problem = 0;
    if (rendering_open(&rendering, path, places, NULL, NULL, error, error_bytes) != 0)
        return -1;
    int fd = memfd_create("gpumemtrace report", MFD_CLOEXEC);
    if (fd >= 0) {
        output_init(&out, fd);
        output_limit(&out, SAVED_REPORT_BYTES_MAX);
        report_write_json(rendering.report, &out);
        problem = output_flush(&out);
        if (problem != 0 || lseek(fd, 0, SEEK_SET) != 0) {
            close(fd);
            fd = -1;
        }
    }
    rendering_close(&rendering);
    if (fd < 0)
        snprintf(error, error_bytes, "%s", problem == EFBIG ? too_large : "not enough memory");
    return fd;
}

/* The file, open, or -1 with a sentence. */
static int open_report(const char *path, bool *is_recording, char *error, size_t error_bytes)
{
    char magic[sizeof(TRACE_MAGIC)] = "";
    struct stat status = {0};
    const char *why = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) != 0)
        why = strerror(errno);
    else if (!S_ISREG(status.st_mode))
        why = "not a regular file";
    *is_recording = !why && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
                    memcmp(magic, TRACE_MAGIC, sizeof(magic)) == 0;
    if (!why && !*is_recording && (uint64_t)status.st_size > SAVED_REPORT_BYTES_MAX)
        why = too_large;
    if (!why)
        return fd;
    snprintf(error, error_bytes, "%s", why);
    if (fd >= 0)
        close(fd);
    return -1;
}

int saved_report_render(const char *path, const struct symbol_places *places, char *error, size_t error_bytes)
{
    bool is_recording;
    int fd = open_report(path, &is_recording, error, error_bytes);
    if (fd < 0)
        return -1;
    close(fd);
    error[0] = 0;
    return is_recording ? render_to_json(path, places, error, error_bytes) : -1;
}

int saved_report_load(struct saved_report *report, const char *path, const struct symbol_places *places,
                      char *error, size_t error_bytes)
{
    bool is_recording;
    memset(report, 0, sizeof(*report));
    int fd = open_report(path, &is_recording, error, error_bytes);
    if (fd >= 0 && is_recording) {
        close(fd);
        fd = render_to_json(path, places, error, error_bytes);
    }
    return fd < 0 ? -1 : load_json(report, fd, error, error_bytes);
}

void saved_report_release(struct saved_report *report)
{
    for (size_t i = 0; i < report->site_count && report->sites; i++)
        free(report->sites[i].frames);
    free(report->sites);
    free(report->spaces);
    free(report->phases);
    json_decref(report->json);
    memset(report, 0, sizeof(*report));
}
