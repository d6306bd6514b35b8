/* The catalog (catalog.h): five lists, each with a hash table that finds what is already in it. */
#include "catalog/catalog.h"

#include <string.h>

#include "base/hash.h"
#include "base/list.h"

#define AS_SPACE(symbol, name, per_device)       [SPACE_##symbol] = {name, per_device},
#define AS_FAMILY(symbol, name, layer, is_owned) [FAMILY_##symbol] = {name, LAYER_##layer, is_owned},
const struct space_info space_infos[SPACE_COUNT] = {SPACES(AS_SPACE)};
const struct family_info family_infos[FAMILY_COUNT] = {FAMILIES(AS_FAMILY)};
const char *const layer_names[LAYER_COUNT] = {[LAYER_DRIVER] = "driver", [LAYER_FRAMEWORK] = "framework"};

/* One entry of any of the lists. The key is the entry's own content, or what it points to. */
struct entry {
    UT_hash_handle hh;
    uint32_t id;
    union {
        const char *string;
        struct module module;
        struct frame frame;
        struct stack stack;
        struct site_key site;
    } is;
};

struct table {
    struct list list; /* of struct entry, cut to what the kind needs */
    struct entry *by_key;
};

struct catalog {
    struct arena *arena;
    struct table strings, modules, frames, stacks, sites;
};

/* How much of struct entry a list of one kind needs, in whole words. */
#define ENTRY_BYTES(member)                                                                                  \
    ((offsetof(struct entry, is) + sizeof(((struct entry *)NULL)->is.member) + 7) / 8 * 8)

struct catalog *catalog_create(struct arena *arena)
{
    struct catalog *catalog = arena_alloc(arena, sizeof *catalog);
    if (catalog == NULL)
        return NULL;
    catalog->arena = arena;
    list_init(&catalog->strings.list, arena, ENTRY_BYTES(string));
    list_init(&catalog->modules.list, arena, ENTRY_BYTES(module));
    list_init(&catalog->frames.list, arena, ENTRY_BYTES(frame));
    list_init(&catalog->stacks.list, arena, ENTRY_BYTES(stack));
    list_init(&catalog->sites.list, arena, ENTRY_BYTES(site));
    return catalog;
}

void catalog_destroy(struct catalog *catalog)
{
    HASH_CLEAR(hh, catalog->strings.by_key);
    HASH_CLEAR(hh, catalog->modules.by_key);
    HASH_CLEAR(hh, catalog->frames.by_key);
    HASH_CLEAR(hh, catalog->stacks.by_key);
    HASH_CLEAR(hh, catalog->sites.by_key);
}

static uint32_t count_of(const struct table *table)
{
    return HASH_COUNT(table->by_key);
}

static struct entry *find(const struct table *table, const void *key, size_t key_bytes)
{
    struct entry *entry;
    HASH_FIND(hh, table->by_key, key, key_bytes, entry);
    return entry;
}

/* An unlinked entry at the end of the list; link() makes it count. */
static struct entry *prepare(struct table *table)
{
    uint32_t id = count_of(table);
    struct entry *entry = list_reach(&table->list, id);
    if (entry != NULL)
        entry->id = id;
    return entry;
}

static uint32_t link_entry(struct table *table, struct entry *entry, const void *key, size_t key_bytes,
                           bool *is_new)
{
    HASH_ADD_KEYPTR(hh, table->by_key, key, key_bytes, entry);
    if (!hash_added(entry))
        return CATALOG_NONE;
    if (is_new != NULL)
        *is_new = true;
    return entry->id;
}

static uint32_t known(const struct entry *entry, bool *is_new)
{
    if (is_new != NULL)
        *is_new = false;
    return entry->id;
}

uint32_t catalog_add_string(struct catalog *catalog, const char *text, size_t bytes, bool *is_new)
{
    struct entry *entry = find(&catalog->strings, text, bytes);
    if (entry != NULL)
        return known(entry, is_new);
    if (is_new != NULL)
        *is_new = false;
    const char *copy = arena_copy(catalog->arena, text, bytes);
    entry = prepare(&catalog->strings);
    if (copy == NULL || entry == NULL)
        return CATALOG_NONE;
    entry->is.string = copy;
    return link_entry(&catalog->strings, entry, copy, bytes, is_new);
}

uint32_t catalog_add_stack(struct catalog *catalog, const uint32_t *frames, uint32_t count, bool *is_new)
{
    struct entry *entry = find(&catalog->stacks, frames, count * sizeof *frames);
    if (entry != NULL)
        return known(entry, is_new);
    if (is_new != NULL)
        *is_new = false;
    uint32_t *copy = arena_alloc(catalog->arena, count * sizeof *frames);
    entry = prepare(&catalog->stacks);
    if (copy == NULL || entry == NULL)
        return CATALOG_NONE;
    memcpy(copy, frames, count * sizeof *frames);
    entry->is.stack = (struct stack){.count = count, .frames = copy};
    return link_entry(&catalog->stacks, entry, copy, count * sizeof *frames, is_new);
}

/* Entries whose content is the key; `bytes` from its start, padding included, so it must be zeroed there. */
static uint32_t add_plain(struct table *table, const void *content, size_t bytes, size_t key_bytes,
                          bool *is_new)
{
    struct entry *entry = find(table, content, key_bytes);
    if (entry != NULL)
        return known(entry, is_new);
    if (is_new != NULL)
        *is_new = false;
    entry = prepare(table);
    if (entry == NULL)
        return CATALOG_NONE;
    memcpy(&entry->is, content, bytes);
    return link_entry(table, entry, &entry->is, key_bytes, is_new);
}

uint32_t catalog_add_module(struct catalog *catalog, const struct module *module, bool *is_new)
{
    /* The path by its content: two spellings of one pointer are the same module. */
    struct module copy;
    memset(&copy, 0, sizeof copy);
    uint32_t path = catalog_add_string(catalog, module->path, strlen(module->path), NULL);
    if (path == CATALOG_NONE)
        return CATALOG_NONE;
    copy.path = catalog_string(catalog, path);
    copy.bias = module->bias;
    copy.start = module->start;
    copy.end = module->end;
    copy.file_size = module->file_size;
    copy.file_mtime_ns = module->file_mtime_ns;
    copy.build_id_bytes = module->build_id_bytes < BUILD_ID_MAX ? module->build_id_bytes : BUILD_ID_MAX;
    memcpy(copy.build_id, module->build_id, copy.build_id_bytes);
    bool is_identified = copy.file_size != 0 || copy.build_id_bytes != 0;
    size_t key_bytes = is_identified ? offsetof(struct module, bias) : sizeof copy;
    return add_plain(&catalog->modules, &copy, sizeof copy, key_bytes, is_new);
}

uint32_t catalog_add_frame(struct catalog *catalog, const struct frame *frame, bool *is_new)
{
    struct frame copy;
    memset(&copy, 0, sizeof copy);
    copy.kind = frame->kind;
    if (frame->kind == FRAME_NATIVE) {
        copy.module = frame->module;
        copy.offset = frame->offset;
    } else {
        copy.function = frame->function;
        copy.file = frame->file;
        copy.line = frame->line;
    }
    return add_plain(&catalog->frames, &copy, sizeof copy, sizeof copy, is_new);
}

uint32_t catalog_add_site(struct catalog *catalog, const struct site_key *site, bool *is_new)
{
    return add_plain(&catalog->sites, site, sizeof *site, sizeof *site, is_new);
}

uint32_t catalog_string_count(const struct catalog *catalog)
{
    return count_of(&catalog->strings);
}

uint32_t catalog_module_count(const struct catalog *catalog)
{
    return count_of(&catalog->modules);
}

uint32_t catalog_frame_count(const struct catalog *catalog)
{
    return count_of(&catalog->frames);
}

uint32_t catalog_stack_count(const struct catalog *catalog)
{
    return count_of(&catalog->stacks);
}

uint32_t catalog_site_count(const struct catalog *catalog)
{
    return count_of(&catalog->sites);
}

static const struct entry *at(const struct table *table, uint32_t id)
{
    return id < count_of(table) ? list_at(&table->list, id) : NULL;
}

const char *catalog_string(const struct catalog *catalog, uint32_t id)
{
    const struct entry *entry = at(&catalog->strings, id);
    return entry == NULL ? NULL : entry->is.string;
}

const struct module *catalog_module(const struct catalog *catalog, uint32_t id)
{
    const struct entry *entry = at(&catalog->modules, id);
    return entry == NULL ? NULL : &entry->is.module;
}

const struct frame *catalog_frame(const struct catalog *catalog, uint32_t id)
{
    const struct entry *entry = at(&catalog->frames, id);
    return entry == NULL ? NULL : &entry->is.frame;
}

const struct stack *catalog_stack(const struct catalog *catalog, uint32_t id)
{
    const struct entry *entry = at(&catalog->stacks, id);
    return entry == NULL ? NULL : &entry->is.stack;
}

const struct site_key *catalog_site(const struct catalog *catalog, uint32_t id)
{
    const struct entry *entry = at(&catalog->sites, id);
    return entry == NULL ? NULL : &entry->is.site;
}
