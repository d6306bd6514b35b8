/*
 * Which sites the page has, and their stacks. Sites are taken in the order of their best place in any of the
 * figures that the page can show, until the names of their frames would make it too large; the rest is told
 * as a remainder. The stacks are one tree, outermost frame first: 10,000 sites share most of their frames.
 */
#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/sort.h"
#include "report/page/page_parts.h"

#define SITES_MAX 4000
#define BYTES_MAX (3 << 20) /* of JSON for stacks and sites, about */

struct page_string {
    const char *text;
    uint32_t number;
    UT_hash_handle hh;
};

struct page_frame {
    const struct named_frame *frame; /* the key */
    uint32_t number;
    UT_hash_handle hh;
};

struct page_node {
    uint64_t key; /* the parent's number and the frame's; a root's parent is REPORT_NONE */
    uint32_t number;
    UT_hash_handle hh;
};

struct page_stacks {
    struct page_string *strings;
    struct page_frame *frames;
    struct page_node *nodes;
    struct list string_list, frame_list, node_list; /* pointers to them, by number */
    uint32_t *node_of_site;                         /* REPORT_NONE: no stack */
    size_t bytes;                                   /* of JSON so far, about */
};

/* Adds an entry to its list. False without memory. */
static bool enlist(struct list *list, void *entry)
{
    void **slot = list_reach(list, list->count);
    if (slot)
        *slot = entry;
    return slot != NULL;
}

static uint32_t string_number(struct page *page, const char *text)
{
    struct page_stacks *stacks = page->stacks;
    struct page_string *entry;
    if (!text)
        return REPORT_NONE;
    HASH_FIND_STR(stacks->strings, text, entry);
    if (entry)
        return entry->number;
    entry = arena_alloc(&page->arena, sizeof(*entry));
    if (!entry)
        return REPORT_NONE;
    entry->text = text;
    entry->number = stacks->string_list.count;
    HASH_ADD_KEYPTR(hh, stacks->strings, entry->text, strlen(entry->text), entry);
    if (!hash_added(entry) || !enlist(&stacks->string_list, entry))
        return REPORT_NONE;
    stacks->bytes += strlen(text) + 4;
    return entry->number;
}

static uint32_t frame_number(struct page *page, const struct named_frame *frame)
{
    struct page_stacks *stacks = page->stacks;
    struct page_frame *entry;
    HASH_FIND_PTR(stacks->frames, &frame, entry);
    if (entry)
        return entry->number;
    entry = arena_alloc(&page->arena, sizeof(*entry));
    if (!entry)
        return REPORT_NONE;
    entry->frame = frame;
    entry->number = stacks->frame_list.count;
    HASH_ADD_PTR(stacks->frames, frame, entry);
    if (!hash_added(entry) || !enlist(&stacks->frame_list, entry))
        return REPORT_NONE;
    string_number(page, frame->function);
    string_number(page, frame->file);
    string_number(page, frame->module);
    stacks->bytes += 90;
    return entry->number;
}

static uint32_t node_number(struct page *page, uint32_t parent, uint32_t frame)
{
    struct page_stacks *stacks = page->stacks;
    uint64_t key = (uint64_t)parent << 32 | frame;
    struct page_node *entry;
    HASH_FIND(hh, stacks->nodes, &key, sizeof(key), entry);
    if (entry)
        return entry->number;
    entry = arena_alloc(&page->arena, sizeof(*entry));
    if (!entry)
        return parent;
    entry->key = key;
    entry->number = stacks->node_list.count;
    HASH_ADD(hh, stacks->nodes, key, sizeof(entry->key), entry);
    if (!hash_added(entry) || !enlist(&stacks->node_list, entry))
        return parent;
    stacks->bytes += 12;
    return entry->number;
}

static void add_site(struct page *page, uint32_t index)
{
    size_t count;
    const struct named_frame *const *frames =
        report_stack(page->report, page->report->sites[index].stack, &count);
    uint32_t node = REPORT_NONE;
    while (count-- > 0)
        node = node_number(page, node, frame_number(page, frames[count]));
    page->stacks->node_of_site[index] = node;
    page->stacks->bytes += 180;
    page->chosen[index] = true;
}

/* What the page can order sites by. */
static uint64_t figure(const struct report_site *site, int which)
{
    const struct totals *totals = &site->figures.totals;
    const uint64_t figures[] = {totals->live_bytes, site->figures.bytes_at_peak, totals->peak_bytes,
                                totals->allocated_bytes, totals->allocs};
    return figures[which];
}

enum { FIGURES = 5 };

struct order {
    const struct report *report;
    const uint32_t *rank;
    int figure;
};

static int by_figure(const void *left, const void *right, const void *context)
{
    const struct order *order = context;
    uint64_t a = figure(&order->report->sites[*(const uint32_t *)left], order->figure);
    uint64_t b = figure(&order->report->sites[*(const uint32_t *)right], order->figure);
    return (a < b) - (a > b);
}

static int by_rank(const void *left, const void *right, const void *context)
{
    const uint32_t *rank = ((const struct order *)context)->rank;
    uint32_t a = rank[*(const uint32_t *)left], b = rank[*(const uint32_t *)right];
    return (a > b) - (a < b);
}

/* Sites with the best place in any figure first, and before them those that the lists name. */
static bool order_sites(struct page *page, uint32_t *sites)
{
    uint32_t count = (uint32_t)page->report->site_count;
    uint32_t *rank = arena_alloc(&page->arena, (count + 1) * sizeof(*rank));
    bool *named = arena_alloc(&page->arena, count + 1);
    struct order order = {.report = page->report, .rank = rank};
    if (!rank || !named)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        sites[i] = i;
        rank[i] = UINT32_MAX;
    }
    for (; order.figure < FIGURES; order.figure++) {
        if (!sort_items(sites, count, sizeof(*sites), by_figure, &order))
            return false;
        for (uint32_t i = 0; i < count; i++)
            if (i + 1 < rank[sites[i]])
                rank[sites[i]] = i + 1;
    }
    page_mark_listed(page, named);
    for (uint32_t i = 0; i < count; i++)
        if (named[i])
            rank[i] = 0;
    return sort_items(sites, count, sizeof(*sites), by_rank, &order);
}

bool page_choose_sites(struct page *page)
{
    uint32_t count = (uint32_t)page->report->site_count;
    struct page_stacks *stacks = page->stacks = arena_alloc(&page->arena, sizeof(*stacks));
    uint32_t *sites = arena_alloc(&page->arena, (count + 1) * sizeof(*sites));
    page->chosen = arena_alloc(&page->arena, count + 1);
    if (!stacks || !sites || !page->chosen)
        return false;
    stacks->node_of_site = arena_alloc(&page->arena, (count + 1) * sizeof(*stacks->node_of_site));
    list_init(&stacks->string_list, &page->arena, sizeof(void *));
    list_init(&stacks->frame_list, &page->arena, sizeof(void *));
    list_init(&stacks->node_list, &page->arena, sizeof(void *));
    if (!stacks->node_of_site || !order_sites(page, sites))
        return false;
    uint32_t taken = 0;
    for (; taken < count && taken < SITES_MAX && stacks->bytes < BYTES_MAX; taken++)
        add_site(page, sites[taken]);
    page->left_out = count - taken;
    return true;
}

static void put_number(struct json *json, uint32_t number)
{
    emit_known(json, NULL, number != REPORT_NONE, number);
}

/* [title, function, file, line, module, offset, native or Python, whose, inlined, folds under, why unnamed]
 */
static void put_frame(struct page *page, const struct named_frame *frame)
{
    struct json *json = &page->json;
    char title[TITLE_MAX], fold[FOLD_NAME_MAX];
    emit_break(json);
    emit_open(json, NULL, '[');
    emit_string(json, NULL, frame_title(frame, TITLE_FUNCTION, title, sizeof(title)));
    put_number(json, string_number(page, frame->function));
    put_number(json, string_number(page, frame->file));
    emit_u64(json, NULL, frame->line > 0 ? (uint64_t)frame->line : 0);
    put_number(json, string_number(page, frame->module));
    emit_u64(json, NULL, frame->offset);
    emit_u64(json, NULL, frame->kind == FRAME_PYTHON);
    emit_u64(json, NULL, frame->rank);
    emit_u64(json, NULL, frame->inlined);
    emit_string(json, NULL, frame->rank <= RANK_TYPED ? NULL : frame_fold_name(frame, fold));
    if (frame->why)
        emit_string(json, NULL, frame->why);
    emit_close(json, ']');
}

static void put_tree(struct page *page)
{
    struct page_stacks *stacks = page->stacks;
    struct json *json = &page->json;
    emit_open(json, "frames", '[');
    for (uint32_t i = 0; i < stacks->frame_list.count; i++)
        put_frame(page, (*(struct page_frame **)list_at(&stacks->frame_list, i))->frame);
    emit_close(json, ']');
    emit_open(json, "strings", '[');
    for (uint32_t i = 0; i < stacks->string_list.count; i++)
        emit_string(json, NULL, (*(struct page_string **)list_at(&stacks->string_list, i))->text);
    emit_close(json, ']');
    emit_open(json, "nodes", '['); /* parent, frame, parent, frame, …; a root's parent is -1 */
    for (uint32_t i = 0; i < stacks->node_list.count; i++) {
        const struct page_node *node = *(struct page_node **)list_at(&stacks->node_list, i);
        uint32_t parent = (uint32_t)(node->key >> 32), frame = (uint32_t)node->key;
        emit_i64(json, NULL, parent == REPORT_NONE ? -1 : (int64_t)parent);
        emit_u64(json, NULL, frame);
    }
    emit_close(json, ']');
}

static void put_figures(struct json *json, const struct report_site *site)
{
    const struct totals *totals = &site->figures.totals;
    emit_u64(json, "live_bytes", totals->live_bytes);
    emit_u64(json, "live_blocks", totals->live_blocks);
    emit_u64(json, "bytes_at_peak", site->figures.bytes_at_peak);
    emit_u64(json, "blocks_at_peak", site->figures.blocks_at_peak);
    emit_u64(json, "peak_bytes", totals->peak_bytes);
    emit_u64(json, "allocated_bytes", totals->allocated_bytes);
    emit_u64(json, "allocs", totals->allocs);
    emit_u64(json, "frees", totals->frees);
    emit_u64(json, "failed_allocs", site->figures.failed);
    emit_u64(json, "first_time_ns", site->figures.first_time_ns);
    emit_u64(json, "last_time_ns", site->figures.last_time_ns);
}

static void put_site(struct page *page, uint32_t index)
{
    const struct report_site *site = &page->report->sites[index];
    struct json *json = &page->json;
    char title[TITLE_MAX];
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_u64(json, "id", index);
    emit_string(json, "title", report_site_title(page->report, index, TITLE_FUNCTION, title, sizeof(title)));
    emit_u64(json, "group", page_group_of(page, site->layer, site->key->space, site->key->device));
    emit_known(json, "node", page->stacks->node_of_site[index] != REPORT_NONE,
               page->stacks->node_of_site[index]);
    emit_known(json, "title_frame", site->title != NULL, site->title ? frame_number(page, site->title) : 0);
    emit_string(json, "api", site->api);
    emit_string(json, "family", family_infos[site->key->family].name);
    put_figures(json, site);
    if (site->suppressed)
        emit_bool(json, "suppressed", true);
    if (site->grows)
        emit_bool(json, "grows", true);
    emit_close(json, '}');
}

void page_put_sites(struct page *page)
{
    put_tree(page);
    emit_u64(&page->json, "sites_left_out", page->left_out);
    emit_open(&page->json, "sites", '[');
    for (uint32_t i = 0; i < page->report->site_count; i++)
        if (page->chosen[i])
            put_site(page, i);
    emit_close(&page->json, ']');
    HASH_CLEAR(hh, page->stacks->strings);
    HASH_CLEAR(hh, page->stacks->frames);
    HASH_CLEAR(hh, page->stacks->nodes);
}
