/*
 * pprof's profile: the message of profile.proto, put together in an arena, packed and compressed as gzip. Ids
 * of locations, mappings and functions count from 1, in the order of the catalog's; sites are its samples.
 */
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/version.h"
#include "export/formats.h"
#include "profile.pb-c.h"

typedef Gpumemtrace__Pprof__Profile Profile;
typedef Gpumemtrace__Pprof__Sample Sample;
typedef Gpumemtrace__Pprof__Location Location;
typedef Gpumemtrace__Pprof__Line Line;
typedef Gpumemtrace__Pprof__Function Function;
typedef Gpumemtrace__Pprof__Mapping Mapping;
typedef Gpumemtrace__Pprof__ValueType ValueType;
typedef Gpumemtrace__Pprof__Label Label;

struct known_string {
    const char *text;
    int64_t index;
    UT_hash_handle hh;
};

struct known_function {
    uint64_t key; /* the strings of function and file */
    uint64_t id;
    UT_hash_handle hh;
};

struct profiling {
    const struct export_request *request;
    struct arena arena;
    Profile profile;
    size_t string_room, function_room;
    struct known_string *strings;
    struct known_function *functions;
    bool failed; /* memory ran out */
};

static void *allocate(struct profiling *profiling, size_t count, size_t bytes)
{
    void *start = arena_alloc(&profiling->arena, (count + 1) * bytes);
    profiling->failed |= !start;
    return start;
}

/* Twice as long, where the array at `start` is full. */
static void *grow(struct profiling *profiling, void *start, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return start;
    void *longer = allocate(profiling, *room * 2 + 64, bytes);
    if (longer && count > 0)
        memcpy(longer, start, count * bytes);
    *room = *room * 2 + 64;
    return longer;
}

/* The text's index in the string table. As export_text() has it: pprof takes no bytes that are not UTF-8. */
static int64_t string(struct profiling *profiling, const char *text)
{
    Profile *profile = &profiling->profile;
    struct known_string *known;
    char clean[EXPORT_NAME_MAX];
    if (!text)
        text = "";
    text = export_text(text, clean, sizeof(clean));
    HASH_FIND_STR(profiling->strings, text, known);
    if (known)
        return known->index;
    profile->string_table = grow(profiling, profile->string_table, profile->n_string_table,
                                 &profiling->string_room, sizeof(char *));
    known = allocate(profiling, 1, sizeof(*known));
    char *copy = arena_copy(&profiling->arena, text, strlen(text));
    if (!known || !copy || !profile->string_table) {
        profiling->failed = true;
        return 0;
    }
    known->text = copy;
    known->index = (int64_t)profile->n_string_table;
    profile->string_table[profile->n_string_table++] = copy;
    HASH_ADD_KEYPTR(hh, profiling->strings, known->text, strlen(known->text), known);
    profiling->failed |= !hash_added(known);
    return known->index;
}

static uint64_t function(struct profiling *profiling, const char *name, const char *file)
{
    Profile *profile = &profiling->profile;
    int64_t name_index = string(profiling, name), file_index = string(profiling, file);
    uint64_t key = (uint64_t)name_index << 32 | (uint64_t)file_index;
    struct known_function *known;
    HASH_FIND(hh, profiling->functions, &key, sizeof(key), known);
    if (known)
        return known->id;
    profile->function = grow(profiling, profile->function, profile->n_function, &profiling->function_room,
                             sizeof(Function *));
    known = allocate(profiling, 1, sizeof(*known));
    Function *added = allocate(profiling, 1, sizeof(*added));
    if (!known || !added || !profile->function)
        return 0;
    gpumemtrace__pprof__function__init(added);
    added->id = profile->n_function + 1;
    /* Without a system name pprof takes it as it is, and "<module>" for no template. */
    added->name = name_index;
    added->filename = file_index;
    profile->function[profile->n_function++] = added;
    known->key = key;
    known->id = added->id;
    HASH_ADD(hh, profiling->functions, key, sizeof(known->key), known);
    profiling->failed |= !hash_added(known);
    return known->id;
}

static Line **lines(struct profiling *profiling, size_t count)
{
    Line **list = allocate(profiling, count, sizeof(*list));
    Line *all = allocate(profiling, count, sizeof(*all));
    for (size_t i = 0; list && all && i < count; i++) {
        gpumemtrace__pprof__line__init(&all[i]);
        list[i] = &all[i];
    }
    return all ? list : NULL;
}

static Location *add_location(struct profiling *profiling, size_t line_count)
{
    Profile *profile = &profiling->profile;
    Location *location = allocate(profiling, 1, sizeof(*location));
    Line **list = lines(profiling, line_count);
    if (!location || !list)
        return NULL;
    gpumemtrace__pprof__location__init(location);
    location->id = profile->n_location + 1;
    location->n_line = line_count;
    location->line = list;
    profile->location[profile->n_location++] = location;
    return location;
}

static void add_frame(struct profiling *profiling, const struct frame *frame, const struct frame_names *names)
{
    const struct module *module = catalog_module(profiling->request->report->input->catalog,
                                                 frame->kind == FRAME_NATIVE ? frame->module : CATALOG_NONE);
    char text[EXPORT_NAME_MAX];
    Location *location = add_location(profiling, names->count);
    if (!location)
        return;
    if (module) {
        location->mapping_id = frame->module + 1;
        location->address = frame->offset + module->bias;
    } else if (frame->kind == FRAME_NATIVE) {
        location->address = frame->offset;
    }
    for (uint32_t k = 0; k < names->count; k++) {
        const struct named_frame *name = &names->names[k];
        location->line[k]->function_id = function(profiling, export_function(name, text, sizeof(text)),
                                                  name->file ? name->file : name->module);
        location->line[k]->line = name->line;
    }
}

/* A location for every frame of the catalog, and behind them one for each API, for sites without a stack. */
static void add_locations(struct profiling *profiling)
{
    const struct report *report = profiling->request->report;
    const struct catalog *catalog = report->input->catalog;
    uint32_t frames = catalog_frame_count(catalog);
    profiling->profile.location = allocate(profiling, frames + report->site_count, sizeof(Location *));
    for (uint32_t id = 0; id < frames && !profiling->failed; id++)
        add_frame(profiling, catalog_frame(catalog, id), &report->names[id]);
    for (size_t i = 0; i < report->site_count && !profiling->failed; i++) {
        Location *location = add_location(profiling, 1);
        if (location)
            location->line[0]->function_id = function(profiling, report->sites[i].api, NULL);
    }
}

static void add_mapping(struct profiling *profiling, uint32_t index, const struct module *module)
{
    char build_id[2 * BUILD_ID_MAX + 1] = "";
    Mapping *mapping = allocate(profiling, 1, sizeof(*mapping));
    if (!mapping)
        return;
    for (uint32_t k = 0; k < module->build_id_bytes && k < BUILD_ID_MAX; k++)
        snprintf(build_id + 2 * k, 3, "%02x", module->build_id[k]);
    gpumemtrace__pprof__mapping__init(mapping);
    mapping->id = index + 1;
    mapping->memory_start = module->start;
    mapping->memory_limit = module->end;
    mapping->filename = string(profiling, module->path);
    mapping->build_id = string(profiling, build_id);
    /* Names are as good as they get: pprof need not look for the files. */
    mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = mapping->has_inline_frames =
        1;
    profiling->profile.mapping[profiling->profile.n_mapping++] = mapping;
}

/* pprof calls the profile by the first: that is the program, even where none of its own code is in a stack.
 */
static void add_mappings(struct profiling *profiling)
{
    const struct report_input *input = profiling->request->report->input;
    uint32_t count = catalog_module_count(input->catalog), program = count;
    const struct module unseen = {.path = input->process->exe};
    profiling->profile.mapping = allocate(profiling, count + 1, sizeof(Mapping *));
    for (uint32_t i = 0; input->process->exe && i < count; i++)
        if (strcmp(catalog_module(input->catalog, i)->path, input->process->exe) == 0)
            program = i;
    if (input->process->exe && !profiling->failed)
        add_mapping(profiling, program, program < count ? catalog_module(input->catalog, program) : &unseen);
    for (uint32_t i = 0; i < count && !profiling->failed; i++)
        if (i != program)
            add_mapping(profiling, i, catalog_module(input->catalog, i));
}

static void add_label(struct profiling *profiling, Sample *sample, const char *key, const char *value)
{
    Label *label = allocate(profiling, 1, sizeof(*label));
    if (!label)
        return;
    gpumemtrace__pprof__label__init(label);
    label->key = string(profiling, key);
    label->str = string(profiling, value);
    sample->label[sample->n_label++] = label;
}

#define LABELS 4

/* X(type, unit, value of a site) */
#define SAMPLE_TYPES(X)                                                                                      \
    X("alloc_objects", "count", site->figures.totals.allocs)                                                 \
    X("alloc_space", "bytes", site->figures.totals.allocated_bytes)                                          \
    X("inuse_objects", "count", site->figures.totals.live_blocks)                                            \
    X("inuse_space", "bytes", site->figures.totals.live_bytes)                                               \
    X("peak_objects", "count", site->figures.blocks_at_peak)                                                 \
    X("peak_space", "bytes", site->figures.bytes_at_peak)

/* The type that is shown first, by the value that was asked for. */
static const char *const default_types[EXPORT_VALUE_COUNT] = {
    [EXPORT_PEAK] = "peak_space",
    [EXPORT_LIVE] = "inuse_space",
    [EXPORT_ALLOCATED] = "alloc_space",
    [EXPORT_ALLOCS] = "alloc_objects",
};

static void add_sample(struct profiling *profiling, const struct report_site *site, uint32_t index)
{
    Profile *profile = &profiling->profile;
    const struct report *report = profiling->request->report;
#define AS_FIGURE(type, unit, figure) (int64_t)(figure),
    const int64_t values[] = {SAMPLE_TYPES(AS_FIGURE)};
#undef AS_FIGURE
    uint32_t count = site->stack ? site->stack->count : 1;
    Sample *sample = allocate(profiling, 1, sizeof(*sample));
    uint64_t *locations = allocate(profiling, count, sizeof(*locations));
    int64_t *copy = allocate(profiling, 1, sizeof(values));
    Label **labels = allocate(profiling, LABELS, sizeof(*labels));
    char space[EXPORT_SPACE_MAX];
    if (!sample || !locations || !copy || !labels)
        return;
    gpumemtrace__pprof__sample__init(sample);
    for (uint32_t k = 0; k < count; k++)
        locations[k] = site->stack ? site->stack->frames[k] + UINT64_C(1)
                                   : catalog_frame_count(report->input->catalog) + index + UINT64_C(1);
    memcpy(copy, values, sizeof(values));
    sample->n_location_id = count;
    sample->location_id = locations;
    sample->n_value = sizeof(values) / sizeof(*values);
    sample->value = copy;
    sample->label = labels;
    add_label(profiling, sample, "space", export_space_name(site->key->space, site->key->device, space));
    add_label(profiling, sample, "api", site->api);
    add_label(profiling, sample, "family", family_infos[site->key->family].name);
    add_label(profiling, sample, "layer", layer_names[site->layer]);
    profile->sample[profile->n_sample++] = sample;
}

static void add_types(struct profiling *profiling)
{
    static const char *const types[][2] = {
#define AS_TYPE(type, unit, figure) {type, unit},
        SAMPLE_TYPES(AS_TYPE)
#undef AS_TYPE
    };
    Profile *profile = &profiling->profile;
    size_t count = sizeof(types) / sizeof(*types);
    profile->sample_type = allocate(profiling, count, sizeof(ValueType *));
    for (size_t i = 0; i < count && !profiling->failed; i++) {
        ValueType *type = allocate(profiling, 1, sizeof(*type));
        if (!type)
            return;
        gpumemtrace__pprof__value_type__init(type);
        type->type = string(profiling, types[i][0]);
        type->unit = string(profiling, types[i][1]);
        profile->sample_type[profile->n_sample_type++] = type;
    }
}

static void fill(struct profiling *profiling)
{
    const struct export_request *request = profiling->request;
    const struct report *report = request->report;
    Profile *profile = &profiling->profile;
    gpumemtrace__pprof__profile__init(profile);
    string(profiling, ""); /* number 0, as the format wants */
    add_types(profiling);
    add_mappings(profiling);
    add_locations(profiling);
    profile->sample = allocate(profiling, report->site_count, sizeof(Sample *));
    for (uint32_t i = 0; i < report->site_count && !profiling->failed; i++)
        if (export_is_meant(request, &report->sites[i]))
            add_sample(profiling, &report->sites[i], i);
    profile->time_nanos = (int64_t)report->input->process->start_realtime_ns;
    profile->duration_nanos = (int64_t)report->end_ns;
    profile->default_sample_type = string(profiling, default_types[request->value]);
    int64_t *comment = allocate(profiling, 1, sizeof(*comment));
    if (comment) {
        *comment = string(profiling, "gpumemtrace " GPUMEMTRACE_VERSION);
        profile->comment = comment;
        profile->n_comment = 1;
    }
}

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, with gzip's header, whose time it leaves 0 */

static int compress_to(struct output *out, uint8_t *bytes, size_t count)
{
    z_stream stream = {0};
    uint8_t buffer[16384];
    int state = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
    if (state != Z_OK)
        return -1;
    do {
        uInt part = count > (1u << 30) ? 1u << 30 : (uInt)count;
        if (stream.avail_in == 0) {
            stream.next_in = bytes;
            stream.avail_in = part;
            bytes += part;
            count -= part;
        }
        stream.next_out = buffer;
        stream.avail_out = sizeof(buffer);
        state = deflate(&stream, count > 0 ? Z_NO_FLUSH : Z_FINISH);
        output_bytes(out, (const char *)buffer, sizeof(buffer) - stream.avail_out);
    } while (state == Z_OK || state == Z_BUF_ERROR);
    deflateEnd(&stream);
    return state == Z_STREAM_END ? 0 : -1;
}

int export_pprof(const struct export_request *request, struct output *out, char *error, size_t error_bytes)
{
    struct profiling profiling = {.request = request};
    fill(&profiling);
    size_t bytes = profiling.failed ? 0 : gpumemtrace__pprof__profile__get_packed_size(&profiling.profile);
    uint8_t *packed = allocate(&profiling, bytes, 1);
    int result = -1;
    if (!profiling.failed) {
        gpumemtrace__pprof__profile__pack(&profiling.profile, packed);
        result = compress_to(out, packed, bytes);
    }
    if (result != 0)
        snprintf(error, error_bytes, "not enough memory");
    HASH_CLEAR(hh, profiling.strings);
    HASH_CLEAR(hh, profiling.functions);
    arena_release(&profiling.arena);
    return result;
}
