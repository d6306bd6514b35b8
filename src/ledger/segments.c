/*
 * Segments by address and the fullest moment of each device (segments.h). The tree is a treap: a search tree
 * by address that is a heap by priority, and a priority is a keyed hash of the address, so that it stays
 * shallow whatever the addresses and their order.
 */
#include "ledger/segments.h"

#include "ledger/ledger.h"

void segments_init(struct ledger *ledger)
{
    struct segments *segments = &ledger->segments;
    pool_init(&segments->pool, ledger->arena, sizeof(struct segment));
    list_init(&segments->fullest, ledger->arena, sizeof(struct fullest));
    list_init(&segments->frameworks, ledger->arena, sizeof(uint32_t));
}

static uint64_t priority(const struct segment *segment)
{
    return hash_mix(segment->start);
}

static void insert(struct segment **link, struct segment *added)
{
    while (*link != NULL && priority(*link) >= priority(added))
        link = added->start < (*link)->start ? &(*link)->left : &(*link)->right;
    struct segment *rest = *link, **left = &added->left, **right = &added->right;
    *link = added;
    while (rest != NULL) {
        if (rest->start < added->start) {
            *left = rest;
            left = &rest->right;
            rest = rest->right;
        } else {
            *right = rest;
            right = &rest->left;
            rest = rest->left;
        }
    }
    *left = *right = NULL;
}

/* Takes the segment that starts at `start` out; NULL when there is none. */
static struct segment *take(struct segment **link, uint64_t start)
{
    while (*link != NULL && (*link)->start != start)
        link = start < (*link)->start ? &(*link)->left : &(*link)->right;
    struct segment *taken = *link;
    if (taken == NULL)
        return NULL;
    struct segment *left = taken->left, *right = taken->right;
    while (left != NULL && right != NULL) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left != NULL ? left : right;
    return taken;
}

struct segment *segments_find(const struct ledger *ledger, uint64_t address)
{
    struct segment *at = ledger->segments.tree, *below = NULL;
    while (at != NULL) {
        if (at->start <= address)
            below = at;
        at = at->start <= address ? at->right : at->left;
    }
    return below != NULL && address - below->start < below->size ? below : NULL;
}

/* As deep as the tree, whose depth is a few times the logarithm of its size. */
static void each(const struct segment *tree, void (*visit)(const struct segment *, void *), void *arg)
{
    for (; tree != NULL; tree = tree->right) {
        each(tree->left, visit, arg);
        visit(tree, arg);
    }
}

void segments_each(const struct ledger *ledger, void (*visit)(const struct segment *, void *), void *arg)
{
    each(ledger->segments.tree, visit, arg);
}

static int device_of(const struct ledger *ledger, uint32_t site)
{
    return catalog_site(ledger->catalog, site)->device;
}

static struct fullest *find_fullest(const struct ledger *ledger, int device)
{
    for (uint32_t i = 0; i < ledger->segments.fullest.count; i++) {
        struct fullest *fullest = list_at(&ledger->segments.fullest, i);
        if (fullest->device == device)
            return fullest;
    }
    return NULL;
}

const struct fullest *segments_fullest(const struct ledger *ledger, int device)
{
    return find_fullest(ledger, device);
}

static const struct space_record *device_space(const struct ledger *ledger, enum layer layer, int device)
{
    for (uint32_t i = 0; i < ledger->spaces.count; i++) {
        const struct space_record *space = list_at(&ledger->spaces, i);
        if (space->is.layer == layer && space->is.kind == SPACE_DEVICE && space->is.device == device)
            return space;
    }
    return NULL;
}

static uint64_t live_in(const struct space_record *space)
{
    return space == NULL ? 0 : space->is.totals.live_bytes;
}

/* What was kept for a moment that is not the fullest any more. */
static void give_back(struct ledger *ledger, struct fullest *fullest)
{
    while (fullest->blocks != NULL) {
        struct block_entry *entry = fullest->blocks;
        fullest->blocks = entry->next;
        pool_put(&ledger->blocks.pool, entry);
    }
    while (fullest->segments != NULL) {
        struct segment *segment = fullest->segments;
        fullest->segments = segment->next;
        pool_put(&ledger->segments.pool, segment);
    }
}

struct mapped_sum {
    const struct ledger *ledger;
    struct fullest *fullest;
};

static void add_mapping(const struct segment *segment, void *arg)
{
    const struct mapped_sum *sum = arg;
    if (segment->mapped && device_of(sum->ledger, segment->site) == sum->fullest->device)
        sum->fullest->mapped_now += segment->size;
}

/* A device is looked at from its first framework's block on; the driver's peak may be over by then. */
static struct fullest *reach_fullest(struct ledger *ledger, int device)
{
    struct fullest *fullest = find_fullest(ledger, device);
    if (fullest == NULL) {
        fullest = list_reach(&ledger->segments.fullest, ledger->segments.fullest.count);
        if (fullest == NULL)
            return NULL;
        fullest->device = device;
        fullest->mapped_bytes =
            UINT64_MAX; /* when the driver's peak was is known, and not what was mapped then */
        segments_each(ledger, add_mapping, &(struct mapped_sum){ledger, fullest});
        fullest->driver = device_space(ledger, LAYER_DRIVER, device);
        if (fullest->driver != NULL) {
            fullest->driver_bytes = fullest->driver->is.totals.peak_bytes;
            fullest->time_ns = fullest->driver->is.totals.peak_time_ns;
        }
    }
    if (fullest->driver == NULL)
        fullest->driver = device_space(ledger, LAYER_DRIVER, device);
    if (fullest->framework == NULL)
        fullest->framework = device_space(ledger, LAYER_FRAMEWORK, device);
    return fullest;
}

/* Compares three pairs, the first that differs deciding. */
static bool is_more(uint64_t driver, uint64_t driver_then, uint64_t framework, uint64_t framework_then,
                    uint64_t mapped, uint64_t mapped_then)
{
    if (driver != driver_then)
        return driver > driver_then;
    return framework != framework_then ? framework > framework_then : mapped > mapped_then;
}

/* Something grew on a device. */
static void note_moment(struct ledger *ledger, int device, uint64_t time_ns)
{
    struct fullest *fullest = reach_fullest(ledger, device);
    if (fullest == NULL)
        return;
    uint64_t driver = live_in(fullest->driver), framework = live_in(fullest->framework);
    if (!is_more(driver, fullest->driver_bytes, framework, fullest->framework_bytes, fullest->mapped_now,
                 fullest->mapped_bytes))
        return;
    fullest->driver_bytes = driver;
    fullest->framework_bytes = framework;
    fullest->mapped_bytes = fullest->mapped_now;
    fullest->time_ns = time_ns;
    fullest->event = ledger->counters.events;
    give_back(ledger, fullest);
}

/* A mapping came or went. */
static void count_mapped(const struct ledger *ledger, const struct segment *segment, int by)
{
    struct fullest *fullest = segment->mapped ? find_fullest(ledger, device_of(ledger, segment->site)) : NULL;
    if (fullest != NULL)
        fullest->mapped_now += by > 0 ? segment->size : -segment->size;
}

static void end_segment(struct ledger *ledger, uint64_t start)
{
    struct segments *segments = &ledger->segments;
    struct segment *segment = take(&segments->tree, start);
    if (segment == NULL)
        return;
    count_mapped(ledger, segment, -1);
    segments->ended_start = start;
    segments->ended_size = segment->size;
    segments->ended_users = segment->users;
    struct fullest *fullest = find_fullest(ledger, device_of(ledger, segment->site));
    if (fullest != NULL && segment->birth <= fullest->event) {
        segment->next = fullest->segments;
        fullest->segments = segment;
    } else {
        pool_put(&segments->pool, segment);
    }
}

static void add_segment(struct ledger *ledger, const struct segment *added)
{
    struct segments *segments = &ledger->segments;
    end_segment(ledger, added->start); /* we missed how it went */
    struct segment *segment = pool_get(&segments->pool);
    if (segment != NULL) {
        *segment = *added;
        insert(&segments->tree, segment);
        count_mapped(ledger, segment, 1);
    }
}

/* Memory of this process that has an address. */
static bool is_segment(const struct ledger *ledger, const struct block *block)
{
    if (block_key_space(block->key) != KEY_ADDRESS || block->size == 0)
        return false;
    const struct site_key *key = catalog_site(ledger->catalog, block->site);
    return key != NULL && family_infos[key->family].layer == LAYER_DRIVER && family_infos[key->family].owned;
}

static void add_block(struct ledger *ledger, const struct block_entry *entry, bool returned)
{
    const struct block *block = &entry->block;
    const struct segments *segments = &ledger->segments;
    uint64_t start = block_key_number(block->key);
    if (!is_segment(ledger, block))
        return;
    bool is_last = returned && segments->ended_start == start && segments->ended_size == block->size;
    add_segment(ledger, &(struct segment){.start = start,
                                          .size = block->size,
                                          .site = block->site,
                                          .context = block->context,
                                          .users = is_last ? segments->ended_users : 0,
                                          .birth = entry->birth});
}

void segments_start(struct ledger *ledger)
{
    if (ledger->segments.active)
        return;
    ledger->segments.active = true;
    const struct block_entry *entry = ledger->blocks.oldest;
    for (; entry != NULL; entry = entry->newer)
        add_block(ledger, entry, false);
}

/* The bit of the allocator of that name. */
static uint32_t user_bit(struct ledger *ledger, uint32_t name)
{
    struct list *frameworks = &ledger->segments.frameworks;
    for (uint32_t i = 0; i < frameworks->count; i++) {
        if (*(uint32_t *)list_at(frameworks, i) == name)
            return UINT32_C(1) << i;
    }
    if (frameworks->count < FRAMEWORKS_MAX) {
        uint32_t *added = list_reach(frameworks, frameworks->count);
        if (added != NULL)
            *added = name;
    }
    return frameworks->count == 0 ? 0 : UINT32_C(1) << (frameworks->count - 1);
}

static void add_user(const struct ledger *ledger, struct segment *segment, uint32_t user)
{
    const struct fullest *fullest = find_fullest(ledger, device_of(ledger, segment->site));
    if ((segment->users & user) == user)
        return;
    if (fullest != NULL && segment->then != fullest->event) {
        segment->users_then = segment->users;
        segment->then = fullest->event;
    }
    segment->users |= user;
}

uint32_t segments_users_then(const struct segment *segment, const struct fullest *fullest)
{
    return segment->then == fullest->event ? segment->users_then : segment->users;
}

void segments_block_began(struct ledger *ledger, const struct block_entry *entry, struct site_record *site,
                          uint64_t time_ns, bool returned)
{
    const struct site_key *key = catalog_site(ledger->catalog, entry->block.site);
    if (site->layer == LAYER_FRAMEWORK) {
        segments_start(ledger);
        if (site->user == 0)
            site->user = user_bit(ledger, key->api);
        struct segment *segment = segments_find(ledger, block_key_number(entry->block.key));
        if (segment != NULL)
            add_user(ledger, segment, site->user);
    } else if (ledger->segments.active) {
        add_block(ledger, entry, returned);
    }
    if (ledger->segments.active && key->space == SPACE_DEVICE)
        note_moment(ledger, key->device, time_ns);
}

bool segments_block_ends(struct ledger *ledger, struct block_entry *entry, const struct site_record *site)
{
    if (!ledger->segments.active)
        return true;
    if (site->layer == LAYER_DRIVER) {
        if (is_segment(ledger, &entry->block))
            end_segment(ledger, block_key_number(entry->block.key));
        return true;
    }
    struct fullest *fullest = find_fullest(ledger, device_of(ledger, entry->block.site));
    if (fullest == NULL || entry->birth > fullest->event)
        return true;
    entry->next = fullest->blocks;
    fullest->blocks = entry;
    return false;
}

bool segments_map(struct ledger *ledger, const struct event *event)
{
    if (catalog_site(ledger->catalog, event->site) == NULL)
        return false;
    if (event->size == 0)
        return true;
    add_segment(ledger, &(struct segment){.start = block_key_number(event->key),
                                          .size = event->size,
                                          .site = event->site,
                                          .mapped = true,
                                          .birth = ledger->counters.events});
    if (ledger->segments.active && catalog_site(ledger->catalog, event->site)->space == SPACE_DEVICE)
        note_moment(ledger, device_of(ledger, event->site), event->time_ns);
    return true;
}

void segments_unmap(struct ledger *ledger, uint64_t address)
{
    const struct segment *segment = segments_find(ledger, address);
    if (segment != NULL && segment->mapped && segment->start == address)
        end_segment(ledger, address);
}

bool segments_restore(struct ledger *ledger, struct segment *segment)
{
    const struct segment *there = segments_find(ledger, segment->start);
    if (there != NULL && there->start == segment->start)
        return false;
    insert(&ledger->segments.tree, segment);
    return true;
}

bool segments_restore_fullest(struct ledger *ledger, const struct fullest *fullest)
{
    struct fullest *restored = list_reach(&ledger->segments.fullest, ledger->segments.fullest.count);
    if (restored == NULL)
        return false;
    *restored = *fullest;
    restored->driver = device_space(ledger, LAYER_DRIVER, fullest->device);
    restored->framework = device_space(ledger, LAYER_FRAMEWORK, fullest->device);
    return true;
}
