/* Random events that could come from a program (happenings.h). */
#include "happenings.h"

#include "unit.h"

/* Sites of one space compete for its peak, so the spaces have several each. */
static const struct {
    enum family family;
    enum space_kind space;
    int device;
} kinds[HAPPENINGS_SITES] = {
    {FAMILY_PLAIN, SPACE_DEVICE, 0},    {FAMILY_POOL, SPACE_DEVICE, 0},
    {FAMILY_PLAIN, SPACE_DEVICE, 0},    {FAMILY_PITCHED, SPACE_DEVICE, 0},
    {FAMILY_PLAIN, SPACE_DEVICE, 1},    {FAMILY_ARRAY, SPACE_DEVICE, 1},
    {FAMILY_MANAGED, SPACE_MANAGED, 0}, {FAMILY_PINNED, SPACE_PINNED, -1},
    {FAMILY_PINNED, SPACE_PINNED, -1},  {FAMILY_REGISTERED, SPACE_REGISTERED, -1},
    {FAMILY_VMM, SPACE_HOST, -1},       {FAMILY_IPC, SPACE_FOREIGN, 0},
    {FAMILY_TORCH, SPACE_DEVICE, 0},    {FAMILY_TORCH, SPACE_DEVICE, 0},
};

void happenings_start(struct happenings *happenings, struct trace_books *books, uint64_t seed)
{
    *happenings = (struct happenings){.books = books, .seed = seed};
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        happenings->sites[i] = trace_books_site(books, i, kinds[i].family, kinds[i].space, kinds[i].device);
}

/* Few sizes and few addresses, so that peaks are met again without being passed and addresses are used
 * again; 0 bytes now and then. */
static uint64_t some_size(struct happenings *happenings)
{
    static const uint64_t sizes[] = {0, 1, 512, 512, 1024, 4096, 65536, (uint64_t)3 << 40};
    return sizes[random_below(&happenings->seed, COUNT_OF(sizes))];
}

static uint64_t some_key(struct happenings *happenings)
{
    uint64_t space = random_below(&happenings->seed, 3), number = random_below(&happenings->seed, 12);
    return block_key((enum key_space)space, UINT64_C(0x7f0000000000) + number * 512);
}

static uint32_t some_site(struct happenings *happenings)
{
    return happenings->sites[random_below(&happenings->seed, HAPPENINGS_SITES)];
}

/* Threads take the time before they take the lock, so events are not quite in its order. */
static uint64_t some_time(struct happenings *happenings)
{
    happenings->time_ns += random_below(&happenings->seed, 1000000);
    uint64_t late_by = random_below(&happenings->seed, 500);
    return happenings->time_ns > late_by ? happenings->time_ns - late_by : 0;
}

static struct event take_back(const struct block *block)
{
    return (struct event){.type = EVENT_UNFREE,
                          .key = block->key,
                          .site = block->site,
                          .size = block->size,
                          .context = block->context,
                          .born_ns = block->born_ns};
}

static void about_a_device(struct happenings *happenings, struct event *event)
{
    unsigned fields = event_fields(event->type);
    event->device = (int32_t)random_below(&happenings->seed, 3);
    if (fields & FIELD_SIZE)
        event->size = some_size(happenings);
    if (fields & FIELD_COUNT)
        event->count = (uint32_t)random_below(&happenings->seed, 5);
    if (fields & FIELD_DETAIL)
        event->detail = (uint32_t)random_below(
            &happenings->seed, event->type == EVENT_SAMPLE ? SAMPLE_REASON_COUNT : BASIS_COUNT);
}

static struct event choose(struct happenings *happenings)
{
    uint64_t dice = random_below(&happenings->seed, 100);
    static const enum event_type of_devices[] = {EVENT_MEMORY,   EVENT_SAMPLE, EVENT_SAMPLE,
                                                 EVENT_CONTEXTS, EVENT_CODE,   EVENT_PROCESSES};
    struct event event = {.type = of_devices[random_below(&happenings->seed, COUNT_OF(of_devices))]};
    if (dice < 42) {
        event = (struct event){.type = EVENT_ALLOC, .site = some_site(happenings)};
        event.key = some_key(happenings);
        event.size = some_size(happenings);
        event.context = (uint32_t)random_below(&happenings->seed, 4);
    } else if (dice < 76) {
        event = (struct event){.type = EVENT_FREE, .key = some_key(happenings)};
        if (ledger_find(happenings->books->ledger, event.key) == NULL)
            event.type = EVENT_FOREIGN_FREE;
    } else if (dice < 84 && happenings->can_unfree) {
        event = take_back(&happenings->freed);
    } else if (dice < 88) {
        event = (struct event){.type = EVENT_RETAIN, .key = some_key(happenings)};
    } else if (dice < 90) {
        event = (struct event){.type = EVENT_RESIZE, .key = some_key(happenings)};
        event.size = some_size(happenings);
    } else if (dice < 92) {
        event.type = EVENT_TEARDOWN;
        event.context = (uint32_t)random_below(&happenings->seed, 4);
    } else if (dice < 97) {
        event.type = dice < 95 ? EVENT_FAILED : EVENT_OOM;
        event.site = some_site(happenings);
        event.size = some_size(happenings);
        event.error = event.type == EVENT_OOM ? 2 : 1;
    } else {
        about_a_device(happenings, &event);
    }
    unsigned fields = event_fields(event.type);
    if (fields & FIELD_TOTAL_BYTES)
        event.total_bytes = (uint64_t)80 << 30;
    if (fields & FIELD_FREE_BYTES)
        event.free_bytes = random_below(&happenings->seed, event.total_bytes);
    event.time_ns = some_time(happenings);
    return event;
}

/* What the recorder would pass on. While a free may still be refused, the driver cannot hand out its
 * address. */
static bool can_happen(const struct happenings *happenings, const struct event *event)
{
    if ((event->type == EVENT_RETAIN || event->type == EVENT_RESIZE) &&
        ledger_find(happenings->books->ledger, event->key) == NULL)
        return false;
    if (event->type == EVENT_RESIZE && block_key_space(event->key) != KEY_HANDLE)
        return false;
    if (event->type == EVENT_TEARDOWN && event->context == 0)
        return false;
    return event->type == EVENT_UNFREE || !happenings->can_unfree || event->key != happenings->freed.key;
}

void happenings_next(struct happenings *happenings, struct event *event, struct block *ended)
{
    do
        *event = choose(happenings);
    while (!can_happen(happenings, event));
    assert_true(trace_books_apply(happenings->books, event, ended));
    if (event->type == EVENT_FREE && random_below(&happenings->seed, 2) == 0) {
        happenings->freed = *ended;
        happenings->can_unfree = true;
    } else if (event->type == EVENT_UNFREE || event->type == EVENT_TEARDOWN ||
               random_below(&happenings->seed, 5) == 0) {
        happenings->can_unfree = false;
    }
}
