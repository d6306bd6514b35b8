/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): one table of frames, and a
 * sampled profile for each value, in which every site is one sample.
 */
#include <stdio.h>

#include "base/arena.h"
#include "base/version.h"
#include "export/formats.h"
#include "report/json_emit.h"

/* Frames are numbered as they come: each name of each catalog frame once, then spaces and APIs. */
struct numbering {
    const struct report *report;
    struct arena arena;
    uint32_t *first; /* by catalog frame: the number of its innermost name */
    uint32_t count;
};

static void write_named(struct json *json, const struct named_frame *frame)
{
    char text[EXPORT_NAME_MAX];
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "name", export_function(frame, text, sizeof(text)));
    if (frame->file || frame->module)
        emit_string(json, "file", frame->file ? frame->file : frame->module);
    if (frame->line > 0)
        emit_u64(json, "line", (uint64_t)frame->line);
    emit_close(json, '}');
}

static void write_plain(struct json *json, const char *name)
{
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "name", name);
    emit_close(json, '}');
}

/* Frames of listed stacks, and after them for each site its space and its API. */
static void write_frames(struct json *json, struct numbering *numbering)
{
    const struct report *report = numbering->report;
    emit_open(json, "frames", '[');
    for (uint32_t id = 0; id < catalog_frame_count(report->input->catalog); id++) {
        const struct frame_names *names = &report->names[id];
        numbering->first[id] = numbering->count;
        for (uint32_t k = 0; k < names->count; k++)
            write_named(json, &names->names[k]);
        numbering->count += names->count;
    }
    for (size_t i = 0; i < report->site_count; i++) {
        char space[EXPORT_SPACE_MAX];
        const struct site_key *key = report->sites[i].key;
        write_plain(json, export_space_name(key->space, key->device, space));
        write_plain(json, report->sites[i].api);
    }
    emit_close(json, ']');
}

static void write_sample(struct json *json, const struct numbering *numbering, size_t index)
{
    const struct report_site *site = &numbering->report->sites[index];
    emit_break(json);
    emit_open(json, NULL, '[');
    emit_u64(json, NULL, numbering->count + 2 * index);
    for (uint32_t i = site->stack ? site->stack->count : 0; i-- > 0;) {
        uint32_t id = site->stack->frames[i];
        for (uint32_t k = numbering->report->names[id].count; k-- > 0;)
            emit_u64(json, NULL, numbering->first[id] + k);
    }
    if (!site->stack)
        emit_u64(json, NULL, numbering->count + 2 * index + 1);
    emit_close(json, ']');
}

struct profile {
    enum layer layer;
    enum export_value value;
    const char *name, *unit;
};

static bool is_sample(const struct report_site *site, const struct profile *profile)
{
    return site->owned && site->layer == profile->layer && export_value(site, profile->value) > 0;
}

static void write_profile(struct json *json, const struct numbering *numbering, const struct profile *profile)
{
    const struct report *report = numbering->report;
    uint64_t sum = 0;
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "type", "sampled");
    emit_string(json, "name", profile->name);
    emit_string(json, "unit", profile->unit);
    emit_u64(json, "startValue", 0);
    emit_open(json, "weights", '[');
    for (size_t i = 0; i < report->site_count; i++) {
        if (!is_sample(&report->sites[i], profile))
            continue;
        emit_u64(json, NULL, export_value(&report->sites[i], profile->value));
        sum += export_value(&report->sites[i], profile->value);
    }
    emit_close(json, ']');
    emit_u64(json, "endValue", sum);
    emit_open(json, "samples", '[');
    for (size_t i = 0; i < report->site_count; i++)
        if (is_sample(&report->sites[i], profile))
            write_sample(json, numbering, i);
    emit_close(json, ']');
    emit_close(json, '}');
}

static bool has_samples(const struct report *report, const struct profile *profile)
{
    for (size_t i = 0; i < report->site_count; i++)
        if (is_sample(&report->sites[i], profile))
            return true;
    return false;
}

static void write_profiles(struct json *json, const struct export_request *request,
                           const struct numbering *numbering)
{
    static const struct profile profiles[] = {
#define AS_PROFILE(symbol, name, unit, meaning)                                                              \
    {LAYER_DRIVER, EXPORT_##symbol, meaning, unit},                                                          \
        {LAYER_FRAMEWORK, EXPORT_##symbol, "tensors: " meaning, unit},
        EXPORT_VALUES(AS_PROFILE)
#undef AS_PROFILE
    };
    size_t active = 0, written = 0;
    emit_open(json, "profiles", '[');
    for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++) {
        bool is_wanted = profiles[i].layer == request->layer && profiles[i].value == request->value;
        if (!is_wanted && !has_samples(request->report, &profiles[i]))
            continue;
        if (is_wanted)
            active = written;
        write_profile(json, numbering, &profiles[i]);
        written++;
    }
    emit_close(json, ']');
    emit_u64(json, "activeProfileIndex", active);
}

int export_speedscope(const struct export_request *request, struct output *out, char *error,
                      size_t error_bytes)
{
    struct numbering numbering = {.report = request->report};
    struct json json = {.out = out};
    size_t frames = catalog_frame_count(request->report->input->catalog);
    numbering.first = arena_alloc(&numbering.arena, (frames + 1) * sizeof(*numbering.first));
    if (!numbering.first) {
        snprintf(error, error_bytes, "not enough memory");
        return -1;
    }
    emit_open(&json, NULL, '{');
    emit_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    emit_string(&json, "exporter", "gpumemtrace@" GPUMEMTRACE_VERSION);
    emit_string(&json, "name", request->report->input->process->exe);
    emit_open(&json, "shared", '{');
    write_frames(&json, &numbering);
    emit_close(&json, '}');
    write_profiles(&json, request, &numbering);
    emit_close(&json, '}');
    output_text(out, "\n");
    arena_release(&numbering.arena);
    return 0;
}
