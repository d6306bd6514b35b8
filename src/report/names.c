/*
 * Names for the frames of listed sites. The symbol source is asked once for each frame, however many stacks
 * it is in.
 */
#include <string.h>

#include "base/sort.h"
#include "report/model.h"

#define INLINES_MAX 16 /* names for one address */

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* An empty name is none. */
static const char *known(const char *text)
{
    return text && *text ? text : NULL;
}

static bool name_python(struct report *report, const struct frame *frame, struct frame_names *names)
{
    struct named_frame *name = arena_alloc(report->arena, sizeof *name);
    if (!name)
        return false;
    name->kind = FRAME_PYTHON;
    name->function = known(catalog_string(report->input->catalog, frame->function));
    name->file = known(catalog_string(report->input->catalog, frame->file));
    name->line = frame->line > 0 ? frame->line : 0;
    name->rank = rank_python_file(name->file);
    *names = (struct frame_names){.count = 1, .names = name};
    return true;
}

static bool name_native(struct report *report, const struct frame *frame, struct frame_names *names)
{
    const struct module *module = catalog_module(report->input->catalog, frame->module);
    const struct symbol_source *symbols = report->input->symbols;
    struct native_name found[INLINES_MAX] = {0};
    size_t count = 0;
    if (module && symbols)
        count = symbols->resolve(symbols->source, module, frame->offset, found, INLINES_MAX);
    if (count == 0)
        found[count++] = (struct native_name){0};

    struct named_frame *name = arena_alloc(report->arena, count * sizeof *name);
    if (!name)
        return false;
    *names = (struct frame_names){.count = (uint32_t)count, .names = name};
    for (size_t i = 0; i < count; i++, name++) {
        name->kind = FRAME_NATIVE;
        name->inlined = i + 1 < count;
        name->function = known(found[i].function);
        name->file = known(found[i].file);
        name->line = found[i].line > 0 ? found[i].line : 0;
        name->module = module ? known(module->path) : NULL;
        name->offset = frame->offset;
        name->rank = rank_native(name->module, name->function, name->file, report->input->process->exe);
        if (!name->function && module && symbols && symbols->why)
            name->why = symbols->why(symbols->source, module);
    }
    return true;
}

static bool name_frame(struct report *report, uint32_t id, struct frame_names *names)
{
    const struct frame *frame = catalog_frame(report->input->catalog, id);
    if (names->count || !frame)
        return true;
    return (frame->kind == FRAME_PYTHON ? name_python : name_native)(report, frame, names);
}

static bool is_torch_cache(const struct named_frame *frame)
{
    return frame->module && strncmp(base_name(frame->module), "libc10_cuda", strlen("libc10_cuda")) == 0;
}

/* Some programs are a few lines in a bin folder that call an installed package (pip's "console_scripts");
 * those lines are no more the reader's own than the package. `inner`: the Python frame they call; NULL: none.
 */
static bool is_entry_script(const struct named_frame *frame, const struct named_frame *inner)
{
    return inner && inner->rank == RANK_LIBRARY && inner->file && frame->file &&
           !strchr(base_name(frame->file), '.') && is_of_environment(inner->file, frame->file);
}

/* Names the frames of a site's stack, and keeps what only a look at all of them tells. */
static bool name_stack(struct report *report, struct report_site *site, size_t *count)
{
    const struct named_frame *inner = NULL;
    for (uint32_t k = 0; site->stack && k < site->stack->count; k++) {
        uint32_t id = site->stack->frames[k];
        struct frame_names *names = &report->names[id];
        if (!name_frame(report, id, names))
            return false;
        names->uses++;
        *count += names->count;
        if (names->count == 0)
            continue;
        site->is_cached |= is_torch_cache(names->names);
        if (names->names->kind != FRAME_PYTHON)
            continue;
        site->has_python = true;
        if (is_entry_script(names->names, inner))
            names->names->rank = RANK_LIBRARY;
        inner = names->names;
    }
    return true;
}

/* Files of one base name, say two utils.py, need their folder in a title. */
struct used_file {
    uint32_t string;
    const char *base;
};

static int compare_files(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct used_file *a = left, *b = right;
    return strcmp(a->base, b->base);
}

/* The string id of a named Python frame's file; CATALOG_NONE for any other frame. */
static uint32_t python_file(const struct report *report, uint32_t id)
{
    const struct frame *frame = catalog_frame(report->input->catalog, id);
    bool named =
        frame && report->names[id].count && frame->kind == FRAME_PYTHON && report->names[id].names->file;
    return named ? frame->file : CATALOG_NONE;
}

enum { UNSEEN, SEEN, AMBIGUOUS };

static bool find_ambiguous(const struct report *report, uint32_t frames, struct used_file *files,
                           uint8_t *state)
{
    size_t count = 0;
    for (uint32_t id = 0; id < frames; id++) {
        uint32_t string = python_file(report, id);
        if (string == CATALOG_NONE || state[string] != UNSEEN)
            continue;
        state[string] = SEEN;
        files[count++] =
            (struct used_file){string, base_name(catalog_string(report->input->catalog, string))};
    }
    if (!sort_items(files, count, sizeof *files, compare_files, NULL))
        return false;
    for (size_t i = 1; i < count; i++)
        if (strcmp(files[i - 1].base, files[i].base) == 0)
            state[files[i - 1].string] = state[files[i].string] = AMBIGUOUS;
    return true;
}

static bool mark_ambiguous(struct report *report, uint32_t frames)
{
    size_t strings = (size_t)catalog_string_count(report->input->catalog) + 1;
    struct used_file *files = pages_alloc(strings * sizeof *files);
    uint8_t *state = arena_alloc(report->arena, strings);
    bool done = files && state && find_ambiguous(report, frames, files, state);
    for (uint32_t id = 0; done && id < frames; id++) {
        uint32_t string = python_file(report, id);
        if (string != CATALOG_NONE)
            report->names[id].names->ambiguous = state[string] == AMBIGUOUS;
    }
    pages_free(files, strings * sizeof *files);
    return done;
}

bool report_build_names(struct report *report)
{
    uint32_t frames = catalog_frame_count(report->input->catalog);
    size_t longest = 0;
    report->names = arena_alloc(report->arena, ((size_t)frames + 1) * sizeof *report->names);
    if (!report->names)
        return false;
    for (size_t i = 0; i < report->site_count; i++) {
        size_t count = 0;
        if (!name_stack(report, &report->sites[i], &count))
            return false;
        longest = count > longest ? count : longest;
    }
    report->scratch = arena_alloc(report->arena, (longest + 1) * sizeof *report->scratch);
    return report->scratch && mark_ambiguous(report, frames);
}

const struct named_frame *const *report_stack(const struct report *report, const struct stack *stack,
                                              size_t *count)
{
    *count = 0;
    for (uint32_t k = 0; stack && k < stack->count; k++) {
        if (!catalog_frame(report->input->catalog, stack->frames[k]))
            continue;
        const struct frame_names *names = &report->names[stack->frames[k]];
        for (uint32_t i = 0; i < names->count; i++)
            report->scratch[(*count)++] = &names->names[i];
    }
    return report->scratch;
}

const struct named_frame *report_own_frame(const struct report *report, const struct stack *stack,
                                           enum frame_kind kind)
{
    size_t count;
    const struct named_frame *const *frames = report_stack(report, stack, &count);
    for (size_t i = 0; i < count; i++)
        if (frames[i]->kind == kind && frames[i]->rank == RANK_OWN)
            return frames[i];
    return NULL;
}
