/*
 * Names the frames of a stack never seen before (learn.h). What needs the dynamic linker or the interpreter's
 * strings is collected without our lock; the catalog and the recording are then brought up to date under it.
 */
#include "preload/learn.h"

#include <string.h>

#include "base/hash.h"
#include "capture/modules.h"
#include "preload/state.h"

/* A native frame by address and generation, a Python one by fingerprint and byte offset. */
struct frame_key {
    uint64_t what;
    uint32_t where;
    uint32_t kind; /* enum frame_kind */
};

struct frame_entry {
    struct frame_key key;
    uint32_t frame;
    UT_hash_handle hh;
};

/* Too large for a small thread stack, so it is mapped for as long as one stack is learnt. */
struct scratch {
    struct loaded_module module;
    struct python_name name;
    uint32_t frames[2 * CAPTURE_DEPTH_MAX];
};

static struct frame_key key_of(const struct raw_stack *raw, uint32_t index, uint32_t generation)
{
    if (index < raw->native_count)
        return (struct frame_key){.what = raw->native[index], .where = generation, .kind = FRAME_NATIVE};
    const struct python_frame *frame = &raw->python[index - raw->native_count];
    return (struct frame_key){
        .what = frame->fingerprint, .where = (uint32_t)frame->byte_offset, .kind = FRAME_PYTHON};
}

static uint32_t find_frame(const struct frame_key *key)
{
    struct frame_entry *entry;
    HASH_FIND(hh, preload.frames, key, sizeof *key, entry);
    return entry == NULL ? CATALOG_NONE : entry->frame;
}

static void remember_frame(const struct frame_key *key, uint32_t frame)
{
    struct frame_entry *entry = arena_alloc(&preload.arena, sizeof *entry);
    if (entry == NULL)
        return;
    entry->key = *key;
    entry->frame = frame;
    HASH_ADD(hh, preload.frames, key, sizeof entry->key, entry);
}

uint32_t learn_string(const char *text)
{
    bool is_new;
    size_t bytes = strnlen(text, TRACE_STRING_MAX);
    uint32_t id = catalog_add_string(preload.catalog, text, bytes, &is_new);
    if (is_new)
        trace_put_string(&preload.writer, text, bytes);
    return id;
}

static uint32_t learn_module(const struct module *module)
{
    bool is_new;
    uint32_t path = learn_string(module->path);
    if (path == CATALOG_NONE)
        return CATALOG_NONE;
    uint32_t id = catalog_add_module(preload.catalog, module, &is_new);
    if (is_new)
        trace_put_module(&preload.writer, catalog_module(preload.catalog, id), path);
    return id;
}

static uint32_t learn_frame(const struct frame_key *key, const struct frame *frame)
{
    bool is_new;
    uint32_t id = catalog_add_frame(preload.catalog, frame, &is_new);
    if (is_new)
        trace_put_frame(&preload.writer, frame);
    if (id != CATALOG_NONE)
        remember_frame(key, id);
    return id;
}

static uint32_t learn_native(const struct frame_key *key, const struct loaded_module *loaded)
{
    struct frame frame = {.kind = FRAME_NATIVE, .module = CATALOG_NONE, .offset = key->what};
    if (loaded != NULL) {
        frame.module = learn_module(&loaded->module);
        frame.offset -= loaded->module.bias;
        if (frame.module == CATALOG_NONE)
            return CATALOG_NONE;
    }
    return learn_frame(key, &frame);
}

static uint32_t learn_python(const struct frame_key *key, const struct python_name *name)
{
    struct frame frame = {.kind = FRAME_PYTHON, .line = name->line};
    frame.function = learn_string(name->function);
    frame.file = learn_string(name->file);
    if (frame.function == CATALOG_NONE || frame.file == CATALOG_NONE)
        return CATALOG_NONE;
    return learn_frame(key, &frame);
}

/* One frame that the table does not know: looked up outside the lock, added inside. */
static uint32_t learn_one(const struct raw_stack *raw, uint32_t index, const struct frame_key *key,
                          struct scratch *scratch)
{
    bool found = false;
    if (key->kind == FRAME_NATIVE)
        found = modules_find(raw->native[index], &scratch->module);
    else if (!capture_python_name(&raw->python[index - raw->native_count], &scratch->name))
        return CATALOG_NONE;
    if (!preload_lock())
        return CATALOG_NONE;
    uint32_t id = find_frame(key); /* another thread may have been faster */
    if (id == CATALOG_NONE && key->kind == FRAME_NATIVE)
        id = learn_native(key, found ? &scratch->module : NULL);
    else if (id == CATALOG_NONE)
        id = learn_python(key, &scratch->name);
    preload_unlock();
    return id;
}

static uint32_t add_stack(const struct raw_stack *raw, uint32_t generation, const uint32_t *frames,
                          uint32_t count)
{
    bool is_new;
    if (!preload_lock())
        return CATALOG_NONE;
    uint32_t id = catalog_add_stack(preload.catalog, frames, count, &is_new);
    if (is_new)
        trace_put_stack(&preload.writer, frames, count);
    if (id != CATALOG_NONE)
        stack_table_add(preload.stacks, raw, generation, id);
    preload_unlock();
    return id;
}

uint32_t learn_stack(const struct raw_stack *raw, uint32_t generation)
{
    uint32_t count = raw->native_count + raw->python_count;
    struct scratch *scratch = pages_alloc(sizeof *scratch);
    if (scratch == NULL)
        return CATALOG_NONE;
    uint32_t known = 0;
    if (preload_lock()) {
        for (uint32_t i = 0; i < count; i++) {
            struct frame_key key = key_of(raw, i, generation);
            scratch->frames[i] = find_frame(&key);
        }
        preload_unlock();
        for (; known < count; known++) {
            struct frame_key key = key_of(raw, known, generation);
            if (scratch->frames[known] == CATALOG_NONE)
                scratch->frames[known] = learn_one(raw, known, &key, scratch);
            if (scratch->frames[known] == CATALOG_NONE)
                break;
        }
    }
    uint32_t id = known == count ? add_stack(raw, generation, scratch->frames, count) : CATALOG_NONE;
    pages_free(scratch, sizeof *scratch);
    return id;
}

void learn_reset(void)
{
    HASH_CLEAR(hh, preload.frames);
    preload.frames = NULL;
}
