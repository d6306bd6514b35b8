/*
 * The same function under one name in two reports. Reports of one build have the same addresses in a module;
 * where most names at common addresses agree, the builds are taken for the same, and the others are names of
 * one function.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "place.h"
#include "report/model.h"

struct seen_module {
    const char *name;
    size_t agree, differ;
    UT_hash_handle hh;
};

struct address {
    const struct seen_module *module;
    uint64_t offset;
};

struct seen_function {
    struct address address;
    struct saved_frame *frame; /* the first that had it, in the report before */
    UT_hash_handle hh;
};

struct names {
    struct seen_module *modules;
    struct seen_function *functions;
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
    found = calloc(1, sizeof(*found));
    if (!found)
        return NULL;
    found->name = name;
    HASH_ADD_KEYPTR(hh, names->modules, found->name, strlen(found->name), found);
    if (hash_added(found))
        return found;
    free(found);
    return NULL;
}

static struct seen_function *find_function(struct names *names, const struct saved_frame *frame)
{
    struct address address = {find_module(names, frame->module), frame->offset};
    struct seen_function *found;
    HASH_FIND(hh, names->functions, &address, sizeof(address), found);
    return found;
}

static void remember(struct names *names, struct saved_frame *frame)
{
    struct seen_function *seen = find_function(names, frame);
    if (seen) {
        if (!seen->frame->function)
            seen->frame = frame;
        return;
    }
    seen = calloc(1, sizeof(*seen));
    if (!seen)
        return;
    seen->address = (struct address){find_module(names, frame->module), frame->offset};
    seen->frame = frame;
    HASH_ADD(hh, names->functions, address, sizeof(seen->address), seen);
    if (!hash_added(seen))
        free(seen);
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
    const struct seen_function *seen = find_function(names, frame);
    struct seen_module *module = find_module(names, frame->module);
    if (!seen || !module || !seen->frame->function || !frame->function)
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
    const struct seen_function *seen = find_function(names, frame);
    if (!seen || !is_same_build(seen->address.module))
        return;
    if (seen->frame->function)
        frame->function = seen->frame->function;
    else
        seen->frame->function = frame->function;
}

/* Every frame of an address takes the name that one of them has by now. */
static void spread_name(struct names *names, struct saved_frame *frame)
{
    const struct seen_function *seen = find_function(names, frame);
    if (seen && !frame->function)
        frame->function = seen->frame->function;
}

void place_unify_names(struct saved_report *before, struct saved_report *after)
{
    struct names names = {0};
    struct seen_module *module, *next_module;
    struct seen_function *function, *next_function;
    each_frame(&names, before, remember);
    each_frame(&names, after, compare);
    each_frame(&names, after, take_name);
    each_frame(&names, before, spread_name);
    HASH_ITER (hh, names.functions, function, next_function) {
        HASH_DEL(names.functions, function);
        free(function);
    }
    HASH_ITER (hh, names.modules, module, next_module) {
        HASH_DEL(names.modules, module);
        free(module);
    }
}
