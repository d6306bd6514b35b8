/*
 * The site of an allocation (sites.h). Whatever is new of it goes into the catalog and the recording at once,
 * so that the event that names it may follow.
 */
#include "preload/sites.h"

#include "base/hash.h"
#include "preload/learn.h"
#include "preload/state.h"

struct api_entry {
    const char *literal;
    uint32_t string;
    UT_hash_handle hh;
};

static uint32_t api_string(const char *literal)
{
    struct api_entry *entry;
    HASH_FIND_PTR(preload.apis, &literal, entry);
    if (entry != NULL)
        return entry->string;
    uint32_t string = learn_string(literal);
    entry = string == CATALOG_NONE ? NULL : arena_alloc(&preload.arena, sizeof *entry);
    if (entry != NULL) {
        entry->literal = literal;
        entry->string = string;
        HASH_ADD_PTR(preload.apis, literal, entry);
    }
    return string;
}

void sites_forget(void)
{
    HASH_CLEAR(hh, preload.apis);
}

static uint32_t add_site(const struct site_key *key)
{
    bool is_new;
    uint32_t site = catalog_add_site(preload.catalog, key, &is_new);
    if (is_new)
        trace_put_site(&preload.writer, key);
    return site;
}

static uint32_t find_site(const struct allocation *allocation, uint32_t stack)
{
    struct site_key key = {.stack = stack,
                           .api = allocation->allocator != NULL ? learn_string(allocation->allocator)
                                                                : api_string(allocation->api),
                           .family = (uint8_t)allocation->family,
                           .space = (uint8_t)allocation->space,
                           .device = (int16_t)allocation->device};
    return key.api == CATALOG_NONE ? CATALOG_NONE : add_site(&key);
}

static bool is_line_of(const struct site_cache_line *line, const struct allocation *allocation,
                       uint32_t stack)
{
    return line->api == allocation->api && line->stack == stack && line->device == allocation->device &&
           line->family == allocation->family && line->space == allocation->space;
}

/* The cache spares two hash tables for the sites that allocate again and again. */
uint32_t sites_find(const struct allocation *allocation, uint32_t stack)
{
    if (allocation->allocator != NULL)
        return find_site(allocation, stack);
    struct site_cache_line *line =
        &preload.site_cache[(stack * 31 + ((uintptr_t)allocation->api >> 2) + allocation->family * 7) %
                            SITE_CACHE_LINES];
    if (!is_line_of(line, allocation, stack)) {
        uint32_t site = find_site(allocation, stack);
        if (site == CATALOG_NONE)
            return CATALOG_NONE;
        *line = (struct site_cache_line){.api = allocation->api,
                                         .stack = stack,
                                         .site = site,
                                         .device = (int16_t)allocation->device,
                                         .family = (uint8_t)allocation->family,
                                         .space = (uint8_t)allocation->space};
    }
    return line->site;
}
