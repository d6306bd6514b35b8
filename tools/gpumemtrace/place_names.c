/*
 * The same function under one name in two reports. Reports of one build have the same addresses in a module;
 * where most names at common addresses agree, the builds are taken for the same, and the others are names of
 * one function.
 */
#include <string.h>

#include "base/hash.h"
#include "place.h"
#include "report/frames.h"

struct seen_function {
    uint64_t offset;
    struct saved_frame *frame; /* the first that had it, in the report before */
    UT_hash_handle hh;
};

struct seen_module {
    const char *name;
    size_t agree, differ;
    struct seen_function *functions; /* by offset */
    UT_hash_handle hh;
};

struct names {
    struct arena arena;
    struct seen_module *modules;
};

static bool has_address(const struct saved_frame *frame)
{
    return !frame->python && !frame->inlined && frame->module && frame->has_offset;
}

static struct seen_module *find_module(struct names *names, const char *path)
{
    struct seen_module *found;
    const char *name = base_name(path);
    HASH_FIND_STR(names->modules, name, found);
    if (found)
        return found;
    found = arena_alloc(&names->arena, sizeof(*found));
    if (!found)
        return NULL;
    found->name = name;
    HASH_ADD_KEYPTR(hh, names->modules, found->name, strlen(found->name), found);
    return hash_added(found) ? found : NULL;
}

static struct seen_function *find_function(const struct seen_module *module, uint64_t offset)
{
    struct seen_function *found = NULL;
    if (module)
        HASH_FIND(hh, module->functions, &offset, sizeof(offset), found);
    return found;
}

static void remember(struct names *names, struct saved_frame *frame)
{
    struct seen_module *module = find_module(names, frame->module);
    struct seen_function *seen = find_function(module, frame->offset);
    if (seen && !seen->frame->function)
        seen->frame = frame;
    if (seen || !module)
        return;
    seen = arena_alloc(&names->arena, sizeof(*seen));
    if (!seen)
        return;
    seen->offset = frame->offset;
    seen->frame = frame;
    HASH_ADD(hh, module->functions, offset, sizeof(seen->offset), seen);
}

static void each_frame(struct names *names, struct saved_report *report,
                       void (*visit)(struct names *, struct saved_frame *))
{
    for (size_t i = 0; i < report->site_count; i++)
        for (size_t k = 0; k < report->sites[i].frame_count; k++)
            if (has_address(&report->sites[i].frames[k]))
                visit(names, &report->sites[i].frames[k]);
}

static void compare(struct names *names, struct saved_frame *frame)
{
    struct seen_module *module = find_module(names, frame->module);
    const struct seen_function *seen = find_function(module, frame->offset);
    if (!seen || !seen->frame->function || !frame->function)
        return;
    if (strcmp(seen->frame->function, frame->function) == 0)
        module->agree++;
    else
        module->differ++;
}

static bool is_same_build(const struct seen_module *module)
{
    return module->agree > module->differ || (module->agree == 0 && module->differ == 0);
}

/* Names the frame as the report before does; what only the report after knows goes the other way. */
static void take_name(struct names *names, struct saved_frame *frame)
{
    const struct seen_module *module = find_module(names, frame->module);
    const struct seen_function *seen = find_function(module, frame->offset);
    if (!seen || !is_same_build(module))
        return;
    if (seen->frame->function)
        frame->function = seen->frame->function;
    else
        seen->frame->function = frame->function;
}

/* Every frame of an address takes the name that one of them has by now. */
static void spread_name(struct names *names, struct saved_frame *frame)
{
    const struct seen_function *seen = find_function(find_module(names, frame->module), frame->offset);
    if (seen && !frame->function)
        frame->function = seen->frame->function;
}

void place_unify_names(struct saved_report *before, struct saved_report *after)
{
    struct names names = {0};
    struct seen_module *module, *next;
    each_frame(&names, before, remember);
    each_frame(&names, after, compare);
    each_frame(&names, after, take_name);
    each_frame(&names, before, spread_name);
    HASH_ITER (hh, names.modules, module, next) {
        HASH_CLEAR(hh, module->functions);
    }
    HASH_CLEAR(hh, names.modules);
    arena_release(&names.arena);
}
