/*
 * The ledger against a naive one: it keeps a plain list of living blocks, adds it up anew after every event,
 * and takes a picture of all sites whenever a space holds more than ever before. Random happenings, many
 * seeds, every answer compared after every event.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "happenings.h"

#define BLOCKS_MAX 64
#define SPACES_MAX 16

struct naive_site {
    struct site_totals totals; /* live figures are added up when asked for */
    struct naive_space *space;
    bool counts; /* in the driver layer's counters */
};

struct naive_space {
    struct ledger_space is;
    uint32_t members[HAPPENINGS_SITES], member_count;
};

struct naive {
    struct block blocks[BLOCKS_MAX];
    size_t block_count;
    struct naive_site sites[HAPPENINGS_SITES];
    struct naive_space spaces[SPACES_MAX];
    struct totals whole; /* of device memory of the driver layer, all devices together: live and peak */
    size_t space_count;
    struct ledger_counters counters;
    struct device_figures devices[3];
    bool is_known[3]; /* of devices: that anything was said of */
    struct oom ooms[LEDGER_OOMS_MAX];
    struct share shares[LEDGER_OOMS_MAX][HAPPENINGS_SITES];
    size_t oom_count;
};

static struct naive naive;

static void start_naive(const struct catalog *catalog)
{
    memset(&naive, 0, sizeof naive);
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++) {
        const struct site_key *key = catalog_site(catalog, i);
        enum layer layer = key->family == FAMILY_TORCH ? LAYER_FRAMEWORK : LAYER_DRIVER;
        struct naive_space *space = naive.spaces;
        while (space < naive.spaces + naive.space_count &&
               (space->is.layer != layer || space->is.kind != key->space || space->is.device != key->device))
            space++;
        if (space == naive.spaces + naive.space_count) {
            naive.space_count++;
            space->is.layer = layer;
            space->is.kind = (enum space_kind)key->space;
            space->is.device = key->device;
        }
        space->members[space->member_count++] = i;
        naive.sites[i].space = space;
        naive.sites[i].counts = layer == LAYER_DRIVER;
    }
}

static struct block *find(uint64_t key)
{
    for (size_t i = 0; i < naive.block_count; i++) {
        if (naive.blocks[i].key == key)
            return &naive.blocks[i];
    }
    return NULL;
}

static void remove_block(struct block *block)
{
    size_t after = (size_t)(naive.blocks + naive.block_count - (block + 1));
    memmove(block, block + 1, after * sizeof *block);
    naive.block_count--;
}

static void add_block(const struct event *event, uint64_t born_ns)
{
    assert_true(naive.block_count < BLOCKS_MAX);
    naive.blocks[naive.block_count++] = (struct block){.key = event->key,
                                                       .size = event->size,
                                                       .born_ns = born_ns,
                                                       .site = event->site,
                                                       .context = event->context,
                                                       .references = 1};
}

static void count_free(uint32_t site, uint64_t by)
{
    naive.sites[site].totals.totals.frees += by;
    naive.sites[site].space->is.totals.frees += by;
    naive.counters.frees += naive.sites[site].counts ? by : 0;
}

static void allocate(const struct event *event)
{
    struct naive_site *site = &naive.sites[event->site];
    struct block *there = find(event->key);
    if (there != NULL) {
        naive.counters.replaced_blocks++;
        count_free(there->site, 1);
        remove_block(there);
    }
    add_block(event, event->time_ns);
    if (site->totals.totals.allocs++ == 0)
        site->totals.first_time_ns = event->time_ns;
    site->totals.last_time_ns = event->time_ns;
    site->totals.totals.allocated_bytes += event->size;
    site->space->is.totals.allocs++;
    site->space->is.totals.allocated_bytes += event->size;
    naive.counters.allocs += site->counts;
}

static void take_back(const struct event *event)
{
    struct block *there = find(event->key);
    if (there != NULL) {
        there->references++;
        return;
    }
    add_block(event, event->born_ns);
    count_free(event->site, (uint64_t)-1);
}

static void resize(struct block *there, uint64_t bytes)
{
    struct naive_site *site = &naive.sites[there->site];
    site->totals.totals.allocated_bytes += bytes - there->size;
    site->space->is.totals.allocated_bytes += bytes - there->size;
    there->size = bytes;
}

static void tear_down(uint32_t context)
{
    for (size_t i = naive.block_count; context != 0 && i-- > 0;) {
        struct naive_site *site = &naive.sites[naive.blocks[i].site];
        if (naive.blocks[i].context != context)
            continue;
        site->totals.totals.teardown_frees++;
        site->space->is.totals.teardown_frees++;
        naive.counters.teardown_frees += site->counts;
        remove_block(&naive.blocks[i]);
    }
}

static int compare_shares(const void *left, const void *right)
{
    const struct share *one = left, *other = right;
    return one->bytes != other->bytes ? (one->bytes < other->bytes ? 1 : -1)
                                      : (one->site > other->site) - (one->site < other->site);
}

static void refuse(const struct event *event)
{
    struct naive_site *asked = &naive.sites[event->site];
    asked->totals.failed++;
    naive.counters.failed_allocs += asked->counts;
    if (event->type != EVENT_OOM || naive.oom_count == LEDGER_OOMS_MAX)
        return;
    struct share *shares = naive.shares[naive.oom_count];
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++) {
        const struct totals *totals = &naive.sites[i].totals.totals;
        if (naive.sites[i].space == asked->space && totals->live_blocks > 0)
            shares[count++] = (struct share){i, totals->live_bytes, totals->live_blocks};
    }
    qsort(shares, count, sizeof *shares, compare_shares);
    naive.ooms[naive.oom_count++] = (struct oom){.time_ns = event->time_ns,
                                                 .site = event->site,
                                                 .error = event->error,
                                                 .requested_bytes = event->size,
                                                 .free_bytes = event->free_bytes,
                                                 .total_bytes = event->total_bytes,
                                                 .live_bytes = asked->space->is.totals.live_bytes,
                                                 .share_count = count,
                                                 .shares = shares};
}

static bool is_in_whole(const struct naive_site *site)
{
    return site->space->is.layer == LAYER_DRIVER && site->space->is.kind == SPACE_DEVICE;
}

static void add_up_whole(uint64_t time_ns)
{
    naive.whole.live_bytes = 0;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        naive.whole.live_bytes += is_in_whole(&naive.sites[i]) ? naive.sites[i].totals.totals.live_bytes : 0;
    if (naive.whole.live_bytes <= naive.whole.peak_bytes)
        return;
    naive.whole.peak_bytes = naive.whole.live_bytes;
    naive.whole.peak_time_ns = time_ns;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++) {
        struct site_totals *site = &naive.sites[i].totals;
        if (!is_in_whole(&naive.sites[i]))
            continue;
        site->bytes_at_whole_peak = site->totals.live_bytes;
        site->blocks_at_whole_peak = site->totals.live_blocks;
    }
}

/* Adds up who holds what, and takes the picture where that is more than ever. */
static void add_up(uint64_t time_ns)
{
    for (size_t i = 0; i < naive.space_count; i++)
        naive.spaces[i].is.totals.live_bytes = naive.spaces[i].is.totals.live_blocks = 0;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        naive.sites[i].totals.totals.live_bytes = naive.sites[i].totals.totals.live_blocks = 0;
    for (size_t i = 0; i < naive.block_count; i++) {
        struct naive_site *site = &naive.sites[naive.blocks[i].site];
        site->totals.totals.live_bytes += naive.blocks[i].size;
        site->totals.totals.live_blocks++;
        site->space->is.totals.live_bytes += naive.blocks[i].size;
        site->space->is.totals.live_blocks++;
    }
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++) {
        struct totals *totals = &naive.sites[i].totals.totals;
        if (totals->live_bytes > totals->peak_bytes) {
            totals->peak_bytes = totals->live_bytes;
            totals->peak_time_ns = time_ns;
        }
    }
    for (size_t i = 0; i < naive.space_count; i++) {
        struct naive_space *space = &naive.spaces[i];
        if (space->is.totals.live_bytes <= space->is.totals.peak_bytes)
            continue;
        space->is.totals.peak_bytes = space->is.totals.live_bytes;
        space->is.totals.peak_time_ns = time_ns;
        for (uint32_t j = 0; j < space->member_count; j++) {
            struct site_totals *member = &naive.sites[space->members[j]].totals;
            member->bytes_at_peak = member->totals.live_bytes;
            member->blocks_at_peak = member->totals.live_blocks;
        }
    }
    add_up_whole(time_ns);
}

static uint64_t tracked_on(int device)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < naive.space_count; i++) {
        const struct ledger_space *space = &naive.spaces[i].is;
        if (space->layer == LAYER_DRIVER && space->kind == SPACE_DEVICE && space->device == device)
            bytes += space->totals.live_bytes;
    }
    return bytes;
}

static int device_asked(const struct event *event)
{
    return naive.sites[event->site].space->is.device;
}

/* What was there before this process was, nothing of it is a part of. */
static void sample(int number, const struct event *event, enum sample_reason reason, uint64_t graph_bytes)
{
    struct device_figures *device = &naive.devices[number];
    bool at_start = reason == SAMPLE_START;
    struct memory_sample taken = {.device = number,
                                  .reason = reason,
                                  .time_ns = at_start ? 0 : event->time_ns,
                                  .free_bytes = event->free_bytes,
                                  .total_bytes = event->total_bytes,
                                  .tracked_bytes = at_start ? 0 : tracked_on(number),
                                  .context_bytes = at_start ? 0 : device->contexts.bytes,
                                  .code_bytes = at_start ? 0 : device->code.bytes,
                                  .graph_bytes = at_start ? 0 : graph_bytes};
    if (device->first.total_bytes == 0)
        device->first = taken;
    if (device->fullest.total_bytes == 0 || taken.tracked_bytes > device->fullest.tracked_bytes)
        device->fullest = taken;
    device->latest = device->last[reason] = taken;
}

static void apply_naively(const struct event *event)
{
    struct block *there = find(event->key);
    naive.counters.events++;
    if (event->type == EVENT_ALLOC) {
        allocate(event);
    } else if (event->type == EVENT_FREE && there->references > 1) {
        there->references--;
    } else if (event->type == EVENT_FREE) {
        count_free(there->site, 1);
        remove_block(there);
    } else if (event->type == EVENT_UNFREE) {
        take_back(event);
    } else if (event->type == EVENT_RETAIN && there != NULL) {
        there->references++;
    } else if (event->type == EVENT_RESIZE) {
        resize(there, event->size);
    } else if (event->type == EVENT_TEARDOWN) {
        tear_down(event->context);
    } else if (event->type == EVENT_FAILED || event->type == EVENT_OOM) {
        refuse(event);
    } else if (event->type == EVENT_FOREIGN_FREE) {
        naive.counters.foreign_frees++;
    } else if (event->type == EVENT_CONTEXTS) {
        naive.devices[event->device].contexts =
            (struct held){event->count, event->size, (enum basis)event->detail};
    } else if (event->type == EVENT_CODE) {
        naive.devices[event->device].code =
            (struct held){event->count, event->size, (enum basis)event->detail};
    } else if (event->type == EVENT_PROCESSES) {
        struct device_figures *device = &naive.devices[event->device];
        device->processes_ns = event->time_ns > 0 ? event->time_ns : 1;
        device->own_bytes = event->size;
        device->all_bytes = event->total_bytes;
    } else if (event->type == EVENT_SAMPLE) {
        sample(event->device, event, (enum sample_reason)event->detail, event->size);
    } else if (event->type == EVENT_MEMORY) {
        sample(event->device, event, SAMPLE_ALLOCATION, 0);
    }
    if (event_fields(event->type) & FIELD_DEVICE)
        naive.is_known[event->device] = true;
    if (event->type == EVENT_OOM && device_asked(event) >= 0) {
        naive.is_known[device_asked(event)] = true;
        sample(device_asked(event), event, SAMPLE_OOM, naive.devices[device_asked(event)].latest.graph_bytes);
    }
    add_up(event->time_ns);
}

static bool check_block(const struct block *block, void *arg)
{
    const struct block *expected = &naive.blocks[(*(size_t *)arg)++];
    assert_int_equal(block->key, expected->key);
    assert_int_equal(block->size, expected->size);
    assert_int_equal(block->born_ns, expected->born_ns);
    assert_int_equal(block->site, expected->site);
    assert_int_equal(block->context, expected->context);
    assert_int_equal(block->references, expected->references);
    return true;
}

/* Of a field of the totals. */
static uint64_t sum_of_devices(size_t field)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < naive.space_count; i++) {
        const struct ledger_space *space = &naive.spaces[i].is;
        if (space->layer == LAYER_DRIVER && space->kind == SPACE_DEVICE)
            sum += *(const uint64_t *)((const char *)&space->totals + field);
    }
    return sum;
}

static void check_spaces(const struct ledger *ledger)
{
    size_t used = 0;
    for (size_t i = 0; i < naive.space_count; i++) {
        const struct ledger_space *expected = &naive.spaces[i].is, *found = NULL;
        bool touched = false;
        for (size_t j = 0; j < ledger_space_count(ledger); j++) {
            const struct ledger_space *space = ledger_space(ledger, j);
            if (space->layer == expected->layer && space->kind == expected->kind &&
                space->device == expected->device)
                found = space;
        }
        for (uint32_t j = 0; j < naive.spaces[i].member_count; j++) {
            const struct site_totals *member = &naive.sites[naive.spaces[i].members[j]].totals;
            touched |= member->totals.allocs + member->failed > 0;
        }
        assert_int_equal(found != NULL, touched);
        used += touched;
        if (touched)
            assert_memory_equal(&found->totals, &expected->totals, sizeof expected->totals);
    }
    assert_int_equal(ledger_space_count(ledger), used);
    const struct ledger_space *whole = ledger_whole(ledger);
    if (whole != NULL) {
        assert_int_equal(whole->totals.live_bytes, naive.whole.live_bytes);
        assert_int_equal(whole->totals.peak_bytes, naive.whole.peak_bytes);
        assert_int_equal(whole->totals.peak_time_ns, naive.whole.peak_time_ns);
        assert_int_equal(whole->totals.allocs, sum_of_devices(offsetof(struct totals, allocs)));
        assert_int_equal(whole->totals.frees, sum_of_devices(offsetof(struct totals, frees)));
        assert_int_equal(whole->totals.teardown_frees,
                         sum_of_devices(offsetof(struct totals, teardown_frees)));
        assert_int_equal(whole->totals.live_blocks, sum_of_devices(offsetof(struct totals, live_blocks)));
        assert_int_equal(whole->totals.allocated_bytes,
                         sum_of_devices(offsetof(struct totals, allocated_bytes)));
    }
}

static void check_all(const struct ledger *ledger)
{
    size_t visited = 0;
    assert_memory_equal(ledger_counters(ledger), &naive.counters, sizeof naive.counters);
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++) {
        struct site_totals totals = ledger_site(ledger, i);
        if (ledger_whole(ledger) == NULL) { /* one device so far: its peak is the whole's */
            totals.bytes_at_whole_peak = naive.sites[i].totals.bytes_at_whole_peak;
            totals.blocks_at_whole_peak = naive.sites[i].totals.blocks_at_whole_peak;
        }
        assert_memory_equal(&totals, &naive.sites[i].totals, sizeof totals);
    }
    check_spaces(ledger);
    ledger_each_block(ledger, check_block, &visited);
    assert_int_equal(visited, naive.block_count);
}

static void check_ooms_and_memory(const struct ledger *ledger)
{
    size_t devices = 0;
    assert_int_equal(ledger_oom_count(ledger), naive.oom_count);
    for (size_t i = 0; i < naive.oom_count; i++) {
        const struct oom *oom = ledger_oom(ledger, i), *expected = &naive.ooms[i];
        assert_int_equal(oom->share_count, expected->share_count);
        for (uint32_t j = 0; j < oom->share_count; j++) {
            assert_int_equal(oom->shares[j].site, expected->shares[j].site);
            assert_int_equal(oom->shares[j].bytes, expected->shares[j].bytes);
            assert_int_equal(oom->shares[j].blocks, expected->shares[j].blocks);
        }
        assert_true(oom->time_ns == expected->time_ns && oom->site == expected->site &&
                    oom->error == expected->error && oom->requested_bytes == expected->requested_bytes &&
                    oom->free_bytes == expected->free_bytes && oom->total_bytes == expected->total_bytes &&
                    oom->live_bytes == expected->live_bytes);
    }
    for (size_t i = 0; i < ledger_memory_count(ledger); i++) {
        const struct device_figures *found = ledger_device(ledger, i);
        naive.devices[found->device].device = found->device;
        assert_figures_equal(found, &naive.devices[found->device]);
    }
    for (size_t i = 0; i < COUNT_OF(naive.devices); i++)
        devices += naive.is_known[i];
    assert_int_equal(ledger_memory_count(ledger), devices);
}

static void run_seed(uint64_t seed, int events)
{
    struct trace_books books;
    struct happenings happenings;
    trace_books_open(&books, NULL);
    happenings_start(&happenings, &books, seed);
    start_naive(books.catalog);
    for (int i = 0; i < events; i++) {
        struct event event;
        struct block ended = {0}, *there;
        happenings_next(&happenings, &event, &ended);
        there = find(event.key);
        if (event.type == EVENT_FREE) {
            assert_non_null(there);
            assert_memory_equal(&ended, there, offsetof(struct block, references) + sizeof there->references);
        }
        apply_naively(&event);
        check_all(books.ledger);
    }
    check_ooms_and_memory(books.ledger);
    trace_books_close(&books);
}

static void test_every_answer_is_that_of_naive_books(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++)
        run_seed(seed, 500);
}

static void test_long_runs_stay_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1003; seed++)
        run_seed(seed, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_answer_is_that_of_naive_books),
        cmocka_unit_test(test_long_runs_stay_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
