/*
 * OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/), without timestamps, as
 * node_exporter's textfile collector wants it. That reads Prometheus' older format, which the same text is,
 * too, as long as there are no counters: they alone are named differently in the two. A run that is over
 * counts nothing further, so its totals are gauges. Sites are summed by title, since a set of labels may come
 * only once; those that hold nothing and grow by nothing are left out, so that a scrape stays small.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "export/formats.h"
#include "export/openmetrics.h"
#include "gpumemtrace/trace.h"

/* A label's value: backslash, quote and line end are escaped; what is not UTF-8, or could control a terminal,
 * becomes U+FFFD. */
static void write_value(struct output *out, const char *text)
{
    while (*text) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        if (!export_can_stand(code))
            output_text(out, "\xef\xbf\xbd");
        else if (code == '\n')
            output_text(out, "\\n");
        else if (code == '"' || code == '\\')
            output_format(out, "\\%c", (int)code);
        else
            output_bytes(out, text, length);
        text += length;
    }
}

static void write_label(struct output *out, const char *between, const char *name, const char *value)
{
    output_format(out, "%s%s=\"", between, name);
    write_value(out, value);
    output_text(out, "\"");
}

struct metric {
    const char *name, *unit, *help;
    uint64_t (*value)(const struct totals *totals);
};

#define GETTER(name)                                                                                         \
    static uint64_t get_##name(const struct totals *totals)                                                  \
    {                                                                                                        \
        return totals->name;                                                                                 \
    }
GETTER(live_bytes)
GETTER(live_blocks)
GETTER(peak_bytes)
GETTER(allocated_bytes)
GETTER(allocs)
GETTER(frees)
#undef GETTER

static const struct metric space_metrics[] = {
    {"gpumemtrace_live_bytes", "bytes", "Allocated and not given back.", get_live_bytes},
    {"gpumemtrace_live_blocks", "blocks", "Allocations not given back.", get_live_blocks},
    {"gpumemtrace_peak_bytes", "bytes", "The most that was ever allocated at once.", get_peak_bytes},
    {"gpumemtrace_allocated_bytes", "bytes", "Allocated in all.", get_allocated_bytes},
    {"gpumemtrace_allocations", "", "Allocations.", get_allocs},
    {"gpumemtrace_frees", "", "Allocations given back.", get_frees},
};

static void write_head(struct output *out, const char *name, const char *unit, const char *help)
{
    output_format(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
    if (unit[0])
        output_format(out, "# UNIT %s %s\n", name, unit);
}

struct place;

/* One recording of those that are written. */
struct subject {
    const struct report *report;
    const char *label; /* no other has it */
    struct place *places;
    size_t place_count;
};

static void write_process_labels(struct output *out, const struct subject *subject)
{
    const struct process_info *process = subject->report->input->process;
    char number[16];
    write_label(out, "{", "recording", subject->label);
    if (process->host && process->host[0])
        write_label(out, ",", "host", process->host);
    snprintf(number, sizeof(number), "%u", (unsigned)process->pid);
    write_label(out, ",", "pid", number);
    write_label(out, ",", "program", process->exe ? base_name(process->exe) : "");
    if (process->rank >= 0) {
        snprintf(number, sizeof(number), "%d", process->rank);
        write_label(out, ",", "rank", number);
    }
}

static void write_space_labels(struct output *out, enum layer layer, enum space_kind kind, int device)
{
    char text[16] = "";
    if (device >= 0)
        snprintf(text, sizeof(text), "%d", device);
    write_label(out, ",", "layer", layer_names[layer]);
    write_label(out, ",", "space", space_infos[kind].name);
    write_label(out, ",", "device", text);
}

/* Of a metric all that there is comes together: of every process. */
static void write_spaces(struct output *out, const struct subject *subjects, size_t count,
                         const struct metric *family)
{
    write_head(out, family->name, family->unit, family->help);
    for (size_t k = 0; k < count; k++) {
        const struct ledger *ledger = subjects[k].report->input->ledger;
        for (size_t i = 0; i < ledger_space_count(ledger); i++) {
            const struct ledger_space *space = ledger_space(ledger, i);
            output_text(out, family->name);
            write_process_labels(out, &subjects[k]);
            write_space_labels(out, space->layer, space->kind, space->device);
            output_format(out, "} %llu\n", (unsigned long long)family->value(&space->totals));
        }
    }
}

struct place {
    uint32_t site;
    char title[TITLE_MAX];
    uint64_t live_bytes, peak_bytes, growth;
};

static bool is_same_label(const struct report *report, const struct place *a, const struct place *b)
{
    const struct report_site *x = &report->sites[a->site], *y = &report->sites[b->site];
    return x->layer == y->layer && x->key->space == y->key->space && x->key->device == y->key->device &&
           strcmp(a->title, b->title) == 0;
}

static int by_label(const void *left, const void *right, void *arg)
{
    const struct report *report = arg;
    const struct place *a = left, *b = right;
    const struct report_site *x = &report->sites[a->site], *y = &report->sites[b->site];
    int order = strcmp(a->title, b->title);
    if (order == 0)
        order = (int)x->layer - (int)y->layer;
    if (order == 0)
        order = (int)x->key->space - (int)y->key->space;
    return order ? order : x->key->device - y->key->device;
}

static uint64_t growth_of(const struct report *report, uint32_t site)
{
    const struct growing *growing = report->sites[site].grows ? report_growing(report, site) : NULL;
    return growing ? (uint64_t)(growing->growth.bytes_per_second + 0.5) : 0;
}

static struct place *collect(const struct report *report, struct arena *arena, size_t *count)
{
    struct place *places = arena_alloc(arena, (report->site_count + 1) * sizeof(*places));
    size_t used = 0;
    *count = 0;
    for (uint32_t i = 0; places && i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        struct place place = {.site = i,
                              .live_bytes = site->figures.totals.live_bytes,
                              .peak_bytes = site->figures.bytes_at_peak,
                              .growth = growth_of(report, i)};
        if (place.live_bytes == 0 && place.peak_bytes == 0)
            continue;
        report_site_title(report, i, TITLE_FUNCTION, place.title, sizeof(place.title));
        places[used++] = place;
    }
    if (used > 0)
        qsort_r(places, used, sizeof(*places), by_label, (void *)report);
    for (size_t i = 0; i < used; i++) {
        if (*count == 0 || !is_same_label(report, &places[*count - 1], &places[i])) {
            places[(*count)++] = places[i];
            continue;
        }
        places[*count - 1].live_bytes += places[i].live_bytes;
        places[*count - 1].peak_bytes += places[i].peak_bytes;
        places[*count - 1].growth += places[i].growth;
    }
    return places;
}

static uint64_t live_of(const struct place *place)
{
    return place->live_bytes;
}

static uint64_t peak_of(const struct place *place)
{
    return place->peak_bytes;
}

static uint64_t rate_of(const struct place *place)
{
    return place->growth;
}

static const struct place_metric {
    const char *name, *unit, *help;
    uint64_t (*value)(const struct place *place);
} place_metrics[] = {
    {"gpumemtrace_site_live_bytes", "bytes", "Allocated at a line of code and not given back.", live_of},
    {"gpumemtrace_site_peak_bytes", "bytes", "Held by a line of code at the peak of its memory.", peak_of},
    {"gpumemtrace_site_growth_bytes_per_second", "bytes_per_second",
     "Gained by a line of code whose memory keeps growing.", rate_of},
};

static void write_places(struct output *out, const struct subject *subject, const struct place_metric *family)
{
    for (size_t i = 0; i < subject->place_count; i++) {
        const struct place *place = &subject->places[i];
        const struct report_site *site = &subject->report->sites[place->site];
        if (family->value(place) == 0)
            continue;
        output_text(out, family->name);
        write_process_labels(out, subject);
        write_space_labels(out, site->layer, site->key->space, site->key->device);
        write_label(out, ",", "site", place->title);
        output_format(out, "} %llu\n", (unsigned long long)family->value(place));
    }
}

static void write_all_places(struct output *out, const struct subject *subjects, size_t count)
{
    for (size_t i = 0; i < sizeof(place_metrics) / sizeof(*place_metrics); i++) {
        const struct place_metric *family = &place_metrics[i];
        write_head(out, family->name, family->unit, family->help);
        for (size_t k = 0; k < count; k++)
            write_places(out, &subjects[k], family);
    }
}

static uint64_t ooms_of(const struct report *report)
{
    return report->oom_count;
}

static uint64_t is_running(const struct report *report)
{
    return report->input->process->end == PROCESS_RUNNING;
}

static const struct process_metric {
    const char *name, *help;
    uint64_t (*value)(const struct report *report);
} process_metrics[] = {
    {"gpumemtrace_out_of_memory", "Allocations that were refused for want of memory.", ooms_of},
    {"gpumemtrace_running", "1: the process was running when this was written.", is_running},
};

static void write_process(struct output *out, const struct subject *subjects, size_t count,
                          const struct process_metric *metric)
{
    write_head(out, metric->name, "", metric->help);
    for (size_t i = 0; i < count; i++) {
        output_text(out, metric->name);
        write_process_labels(out, &subjects[i]);
        output_format(out, "} %llu\n", (unsigned long long)metric->value(subjects[i].report));
    }
}

/* "out/train.4711.gmt" gives "train.4711". */
static int stem_length(const char *path)
{
    size_t length = strlen(base_name(path)), tail = strlen(TRACE_SUFFIX);
    bool has_suffix = length > tail && strcmp(base_name(path) + length - tail, TRACE_SUFFIX) == 0;
    return (int)(has_suffix ? length - tail : length);
}

static bool is_label_taken(const struct subject *subjects, size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(subjects[i].label, label) == 0)
            return true;
    return false;
}

/* The file's name; the path, where a file in another folder has that name; and a number behind it, where one
 * file was given twice. NULL when memory ran out. */
static const char *name_recording(const struct subject *before, size_t count, const char *path,
                                  struct arena *arena)
{
    size_t room = strlen(path) + 24;
    char *label = arena_alloc(arena, room);
    if (!label)
        return NULL;
    snprintf(label, room, "%.*s", stem_length(path), base_name(path));
    if (is_label_taken(before, count, label))
        snprintf(label, room, "%s", path);
    for (size_t number = 2; is_label_taken(before, count, label); number++)
        snprintf(label, room, "%s %zu", path, number);
    return label;
}

static struct subject *prepare(const struct openmetrics_recording *recordings, size_t count,
                               struct arena *arena)
{
    struct subject *subjects = arena_alloc(arena, (count + 1) * sizeof(*subjects));
    for (size_t i = 0; subjects && i < count; i++) {
        struct subject *subject = &subjects[i];
        *subject = (struct subject){.report = recordings[i].report};
        subject->label = name_recording(subjects, i, recordings[i].path, arena);
        subject->places = collect(recordings[i].report, arena, &subject->place_count);
        if (!subject->label || !subject->places)
            return NULL;
    }
    return subjects;
}

bool openmetrics_write(const struct openmetrics_recording *recordings, size_t count, struct output *out)
{
    struct arena arena = {0};
    const struct subject *subjects = prepare(recordings, count, &arena);
    for (size_t i = 0; subjects && i < sizeof(space_metrics) / sizeof(*space_metrics); i++)
        write_spaces(out, subjects, count, &space_metrics[i]);
    if (subjects) {
        write_all_places(out, subjects, count);
        for (size_t i = 0; i < sizeof(process_metrics) / sizeof(*process_metrics); i++)
            write_process(out, subjects, count, &process_metrics[i]);
        output_text(out, "# EOF\n");
    }
    arena_release(&arena);
    return subjects != NULL;
}

int export_openmetrics(const struct export_request *request, struct output *out, char *error,
                       size_t error_bytes)
{
    const struct openmetrics_recording recording = {request->report, request->path};
    if (openmetrics_write(&recording, 1, out))
        return 0;
    snprintf(error, error_bytes, "not enough memory");
    return -1;
}
