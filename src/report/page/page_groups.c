/* The page's groups: what one picture of it shows, device 0 or the tensors on it. */
#include "base/sort.h"
#include "report/json_parts.h"
#include "report/page/page_parts.h"
#include "report/words.h"

/* Device memory first; what is not this process's last. */
static int place_of(enum space_kind kind)
{
    static const int places[SPACE_COUNT] = {[SPACE_MANAGED] = 1, [SPACE_GRAPH] = 2,      [SPACE_PINNED] = 3,
                                            [SPACE_HOST] = 4,    [SPACE_REGISTERED] = 5, [SPACE_FOREIGN] = 6};
    return places[kind];
}

static int compare_groups(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct ledger_space *a = *(const struct ledger_space *const *)left;
    const struct ledger_space *b = *(const struct ledger_space *const *)right;
    if (a->kind != b->kind)
        return place_of(a->kind) - place_of(b->kind);
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (int)a->layer - (int)b->layer;
}

bool page_collect_groups(struct page *page)
{
    const struct ledger *ledger = page->report->input->ledger;
    size_t known = ledger_space_count(ledger);
    page->groups = arena_alloc(&page->arena, (known + 1) * sizeof(*page->groups));
    if (!page->groups)
        return false;
    for (size_t i = 0; i < known; i++)
        page->groups[page->group_count++] = ledger_space(ledger, i);
    return sort_items(page->groups, page->group_count, sizeof(*page->groups), compare_groups, NULL);
}

uint32_t page_group_of(const struct page *page, enum layer layer, enum space_kind kind, int device)
{
    for (uint32_t i = 0; i < page->group_count; i++) {
        const struct ledger_space *group = page->groups[i];
        if (group->layer == layer && group->kind == kind && group->device == device)
            return i;
    }
    return REPORT_NONE;
}

static void put_group(struct json *json, const struct ledger_space *group)
{
    struct words words = {0};
    if (group->layer == LAYER_FRAMEWORK)
        words_add(&words, "tensors on ");
    words_space(&words, group->kind, group->device);
    emit_break(json);
    emit_open(json, NULL, '{');
    emit_string(json, "name", words.text);
    emit_string(json, "layer", layer_names[group->layer]);
    emit_string(json, "space", space_infos[group->kind].name);
    emit_ordinal(json, "device", group->device);
    json_totals(json, &group->totals);
    emit_close(json, '}');
}

void page_put_groups(struct page *page)
{
    emit_open(&page->json, "groups", '[');
    for (uint32_t i = 0; i < page->group_count; i++)
        put_group(&page->json, page->groups[i]);
    emit_close(&page->json, ']');
}
