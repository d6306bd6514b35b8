/*
 * Layouts (ledger/layout.h) against an oracle: two allocators in the same memory, as arrays of units, each
 * unit the block that has it. What a layout must say is counted unit by unit.
 */
#include "unit.h"

#include <string.h>

#include "books.h"

enum {
    ALLOCATORS = 2,
    SITES = 5,   /* of each allocator */
    PLAIN = 12,  /* driver's blocks at most */
    UNITS = 48,  /* of the largest */
    CHUNKS = 14, /* that may be mapped, side by side */
    CHUNK = 6,   /* units */
    SEEDS = 1000,
    STEPS = 250,
};

#define UNIT UINT64_C(512)

/* A row of units, divided into pieces that go back to the driver one by one. */
struct row {
    uint64_t start;
    bool used[ALLOCATORS];
    uint32_t pieces, piece_units; /* none: there is no such row */
    uint16_t units[ALLOCATORS][UNITS > CHUNKS *CHUNK ? UNITS : CHUNKS *CHUNK];
};

struct world {
    struct row plain[PLAIN];
    bool mapped[CHUNKS], mapped_used[CHUNKS][ALLOCATORS];
    uint16_t range[ALLOCATORS][CHUNKS * CHUNK];
    uint64_t driver_bytes, framework_bytes, mapped_bytes, time_ns;
};

struct play {
    struct trace_books books;
    struct world now, fullest;
    uint64_t seed, time_ns;
    uint32_t names[ALLOCATORS], driver_site, vmm_site, sites[ALLOCATORS][SITES];
    uint16_t next_block;
    bool has_framework;
    uint32_t site_of[UINT16_MAX];
};

#define RANGE_START UINT64_C(0x700000000000)

static uint64_t plain_start(size_t index)
{
    return UINT64_C(0x10000000) +
           (uint64_t)index * UNITS * UNIT; /* side by side, when all are of full size */
}

static void happen(struct play *play, struct event event)
{
    event.time_ns = play->time_ns += 10;
    assert_true(trace_books_apply(&play->books, &event, NULL));
    struct world *now = &play->now;
    const struct world *then = &play->fullest;
    bool more = now->driver_bytes != then->driver_bytes         ? now->driver_bytes > then->driver_bytes
                : now->framework_bytes != then->framework_bytes ? now->framework_bytes > then->framework_bytes
                                                                : now->mapped_bytes > then->mapped_bytes;
    if (more) {
        now->time_ns = event.time_ns;
        play->fullest = *now;
        if (!play->has_framework)
            play->fullest.mapped_bytes = UINT64_MAX;
    }
}

static uint32_t site_named(struct play *play, uint32_t number, enum family family, uint32_t api)
{
    uint32_t frame = trace_books_frame(
        &play->books,
        &(struct frame){.kind = FRAME_PYTHON, .line = (int)number, .function = api, .file = api});
    return trace_books_site_of(&play->books,
                               &(struct site_key){.stack = trace_books_stack(&play->books, &frame, 1),
                                                  .api = api,
                                                  .family = (uint8_t)family,
                                                  .space = SPACE_DEVICE});
}

static void start(struct play *play, uint64_t seed)
{
    static const char *const names[ALLOCATORS] = {"pytorch", "rmm"};
    memset(play, 0, sizeof *play);
    play->seed = seed;
    trace_books_open(&play->books, NULL);
    play->driver_site = trace_books_site(&play->books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    play->vmm_site = trace_books_site(&play->books, 2, FAMILY_VMM, SPACE_DEVICE, 0);
    for (int i = 0; i < ALLOCATORS; i++) {
        play->names[i] = trace_books_text(&play->books, names[i]);
        for (uint32_t k = 0; k < SITES; k++)
            play->sites[i][k] =
                site_named(play, 10 + k, i == 0 ? FAMILY_TORCH : FAMILY_ALLOCATOR, play->names[i]);
    }
}

static void take_plain(struct play *play, size_t index)
{
    struct row *row = &play->now.plain[index];
    *row = (struct row){.start = plain_start(index),
                        .pieces = 1,
                        .piece_units = 1 + (uint32_t)random_below(&play->seed, UNITS)};
    if (random_below(&play->seed, 3) == 0)
        row->piece_units = UNITS;
    play->now.driver_bytes += row->piece_units * UNIT;
    happen(play, (struct event){.type = EVENT_ALLOC,
                                .site = play->driver_site,
                                .size = row->piece_units * UNIT,
                                .key = block_key(KEY_ADDRESS, row->start)});
}

/* Also one with living blocks in it: the driver, at least, would do it. Sometimes it refuses. */
static void give_plain_back(struct play *play, size_t index, bool refused)
{
    struct row *row = &play->now.plain[index], kept = *row;
    const struct block block = *ledger_find(play->books.ledger, block_key(KEY_ADDRESS, row->start));
    memset(row, 0, sizeof *row);
    play->now.driver_bytes -= block.size;
    happen(play, (struct event){.type = EVENT_FREE, .key = block.key});
    if (!refused)
        return;
    *row = kept;
    play->now.driver_bytes += block.size;
    happen(play, (struct event){.type = EVENT_UNFREE,
                                .key = block.key,
                                .site = block.site,
                                .size = block.size,
                                .born_ns = block.born_ns});
}

static bool is_empty(const uint16_t *units, uint32_t count)
{
    uint16_t any = 0;
    for (uint32_t i = 0; i < count; i++)
        any |= units[i];
    return any == 0;
}

static uint64_t chunk_handle(size_t index)
{
    return 0x5000 + 64 * index;
}

static void map_chunk(struct play *play, size_t index)
{
    uint64_t handle = block_key(KEY_HANDLE, chunk_handle(index));
    play->now.driver_bytes += CHUNK * UNIT;
    happen(play,
           (struct event){.type = EVENT_ALLOC, .site = play->vmm_site, .size = CHUNK * UNIT, .key = handle});
    happen(play, (struct event){.type = EVENT_RETAIN, .key = handle});
    play->now.mapped[index] = true;
    play->now.mapped_bytes += CHUNK * UNIT;
    happen(play, (struct event){.type = EVENT_MAP,
                                .site = play->vmm_site,
                                .size = CHUNK * UNIT,
                                .key = block_key(KEY_ADDRESS, RANGE_START + index * CHUNK * UNIT)});
    happen(play, (struct event){.type = EVENT_FREE, .key = handle});
}

static void unmap_chunk(struct play *play, size_t index)
{
    play->now.mapped[index] = false;
    play->now.mapped_bytes -= CHUNK * UNIT;
    memset(play->now.mapped_used[index], 0, sizeof play->now.mapped_used[index]);
    happen(play, (struct event){.type = EVENT_UNMAP,
                                .key = block_key(KEY_ADDRESS, RANGE_START + index * CHUNK * UNIT)});
    play->now.driver_bytes -= CHUNK * UNIT;
    happen(play, (struct event){.type = EVENT_FREE, .key = block_key(KEY_HANDLE, chunk_handle(index))});
}

static uint64_t block_key_of(int allocator, uint64_t address)
{
    return block_key(allocator == 0 ? KEY_FRAMEWORK : KEY_ALLOCATOR, address);
}

static void begin_block(struct play *play, int allocator, uint16_t *units, uint32_t count, uint64_t address)
{
    uint32_t site = play->sites[allocator][random_below(&play->seed, SITES)];
    uint16_t block = ++play->next_block;
    play->site_of[block] = site;
    for (uint32_t i = 0; i < count; i++)
        units[i] = block;
    play->now.framework_bytes += count * UNIT;
    play->has_framework = true;
    happen(play, (struct event){.type = EVENT_ALLOC,
                                .site = site,
                                .size = count * UNIT,
                                .key = block_key_of(allocator, address)});
}

/* `most`: of the units from `units` on to the row's end. */
static void end_block(struct play *play, int allocator, uint16_t *units, uint32_t most, uint64_t address)
{
    uint16_t block = units[0];
    for (uint32_t i = 0; i < most && units[i] == block; i++) {
        units[i] = 0;
        play->now.framework_bytes -= UNIT;
    }
    happen(play, (struct event){.type = EVENT_FREE, .key = block_key_of(allocator, address)});
}

static void step_plain(struct play *play)
{
    size_t index = random_below(&play->seed, PLAIN);
    struct row *row = &play->now.plain[index];
    if (row->pieces == 0) {
        take_plain(play, index);
        return;
    }
    int allocator = (int)random_below(&play->seed, ALLOCATORS);
    uint32_t at = (uint32_t)random_below(&play->seed, row->piece_units);
    uint16_t *units = row->units[allocator];
    if (units[at] != 0) {
        while (at > 0 && units[at - 1] == units[at])
            at--;
        end_block(play, allocator, &units[at], row->piece_units - at, row->start + at * UNIT);
    } else if (random_below(&play->seed, 6) == 0 && is_empty(row->units[0], UNITS) &&
               is_empty(row->units[1], UNITS)) {
        give_plain_back(play, index, random_below(&play->seed, 4) == 0);
    } else {
        uint32_t count = 1;
        while (at + count < row->piece_units && units[at + count] == 0 && random_below(&play->seed, 4) != 0)
            count++;
        row->used[allocator] = true;
        begin_block(play, allocator, &units[at], count, row->start + at * UNIT);
    }
}

static void step_range(struct play *play)
{
    size_t index = random_below(&play->seed, CHUNKS);
    int allocator = (int)random_below(&play->seed, ALLOCATORS);
    uint16_t *units = play->now.range[allocator];
    uint32_t at = (uint32_t)index * CHUNK + (uint32_t)random_below(&play->seed, CHUNK);
    if (!play->now.mapped[index]) {
        map_chunk(play, index);
    } else if (units[at] != 0) {
        while (at > 0 && units[at - 1] == units[at])
            at--;
        end_block(play, allocator, &units[at], CHUNKS * CHUNK - at, RANGE_START + at * UNIT);
    } else if (random_below(&play->seed, 5) == 0 && is_empty(&play->now.range[0][index * CHUNK], CHUNK) &&
               is_empty(&play->now.range[1][index * CHUNK], CHUNK)) {
        unmap_chunk(play, index);
    } else {
        uint32_t count = 1; /* over as many chunks as are mapped */
        while (at + count < CHUNKS * CHUNK && play->now.mapped[(at + count) / CHUNK] &&
               units[at + count] == 0 && count < UNITS - 1 && random_below(&play->seed, 6) != 0)
            count++;
        play->now.mapped_used[index][allocator] = true; /* the first one; the run is used with it */
        begin_block(play, allocator, &units[at], count, RANGE_START + at * UNIT);
    }
}

/* The rows of one allocator: each plain block that it used, and each run of mapped chunks. */
static size_t rows_of(const struct world *world, int allocator, struct row *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < PLAIN; i++) {
        if (world->plain[i].pieces > 0 && world->plain[i].used[allocator])
            rows[count++] = world->plain[i];
    }
    for (size_t first = 0, end; first < CHUNKS; first = end + 1) {
        struct row run = {.start = RANGE_START + first * CHUNK * UNIT, .piece_units = CHUNK};
        for (end = first; end < CHUNKS && world->mapped[end]; end++) {
            run.pieces++;
            run.used[allocator] |= world->mapped_used[end][allocator];
        }
        memcpy(run.units[allocator], &world->range[allocator][first * CHUNK],
               run.pieces * CHUNK * sizeof(uint16_t));
        if (run.used[allocator])
            rows[count++] = run;
    }
    return count;
}

struct counted {
    struct layout_segment sum;
    uint64_t stranded_by[UINT16_MAX]; /* in 60ths of a byte, by site */
};

/* Of one row, into *segment; what its sites strand into *counted. */
static void count_row(const struct play *play, const struct row *row, int allocator,
                      struct layout_segment *segment, struct counted *counted)
{
    const uint16_t *units = row->units[allocator];
    uint64_t free_here = 0;
    *segment = (struct layout_segment){.start = row->start, .bytes = row->pieces * row->piece_units * UNIT};
    for (uint32_t i = 0; i < row->pieces * row->piece_units; i++) {
        free_here = units[i] == 0 ? free_here + UNIT : 0;
        if (free_here > segment->largest_free_bytes)
            segment->largest_free_bytes = free_here;
        segment->allocated_bytes += units[i] == 0 ? 0 : UNIT;
        segment->blocks += units[i] != 0 && (i == 0 || units[i - 1] != units[i]);
    }
    for (uint32_t piece = 0; piece < row->pieces; piece++) {
        const uint16_t *at = &units[piece * row->piece_units];
        uint64_t free_bytes = 0, sites = 0;
        uint32_t seen[UNITS];
        for (uint32_t i = 0; i < row->piece_units; i++) {
            bool known = at[i] == 0;
            free_bytes += at[i] == 0 ? UNIT : 0;
            for (uint64_t k = 0; k < sites && !known; k++)
                known = seen[k] == play->site_of[at[i]];
            if (!known)
                seen[sites++] = play->site_of[at[i]];
        }
        *(sites == 0 ? &segment->releasable_bytes : &segment->stranded_bytes) += free_bytes;
        for (uint64_t k = 0; k < sites; k++)
            counted->stranded_by[seen[k]] += free_bytes * 60 / sites;
    }
    counted->sum.bytes += segment->bytes;
    counted->sum.allocated_bytes += segment->allocated_bytes;
    counted->sum.releasable_bytes += segment->releasable_bytes;
    counted->sum.stranded_bytes += segment->stranded_bytes;
    counted->sum.blocks += segment->blocks;
    if (segment->largest_free_bytes > counted->sum.largest_free_bytes)
        counted->sum.largest_free_bytes = segment->largest_free_bytes;
}

static void expect_map(const struct layout_segment *segment, const struct row *row, int allocator)
{
    double unit = (double)(row->pieces * row->piece_units) / LAYOUT_COLUMNS; /* units a column */
    for (int column = 0; column < LAYOUT_COLUMNS; column++) {
        double from = column * unit, to = (column + 1) * unit, taken = 0;
        for (uint32_t i = 0; i < row->pieces * row->piece_units; i++) {
            double start = i > from ? i : from, end = i + 1 < to ? i + 1 : to;
            if (row->units[allocator][i] != 0 && end > start)
                taken += end - start;
        }
        double share = taken / unit;
        char shown = segment->map[column];
        if (share < 0.001)
            assert_true(shown == '.');
        else if (share > 0.999)
            assert_true(shown == '#');
        else
            assert_true((shown == '+' && share > 0.49) || (shown == '-' && share < 0.51));
    }
    assert_true(segment->map[LAYOUT_COLUMNS] == '\0');
}

static const struct layout_segment *listed_at(const struct layout *layout, uint64_t start)
{
    for (size_t i = 0; i < layout->listed_count; i++) {
        if (layout->segments[i].start == start)
            return &layout->segments[i];
    }
    return NULL;
}

static void expect_pinners(const struct layout *layout, const struct counted *counted)
{
    uint64_t sum = 0, found = 0, wanted = 0;
    for (size_t i = 0; i < layout->pinner_count; i++) {
        const struct layout_pinner *pinner = &layout->pinners[i];
        uint64_t exact = counted->stranded_by[pinner->site] / 60;
        sum += pinner->stranded_bytes;
        assert_in_range(pinner->stranded_bytes, exact > pinner->pieces ? exact - pinner->pieces : 0,
                        exact + pinner->pieces);
        assert_true(pinner->blocks >= pinner->pieces && pinner->pieces > 0);
        found++;
        if (i > 0)
            assert_true(layout->pinners[i - 1].stranded_bytes >= pinner->stranded_bytes);
    }
    for (size_t site = 0; site < COUNT_OF(counted->stranded_by); site++)
        wanted += counted->stranded_by[site] > 0;
    assert_int_equal(found, wanted);
    assert_int_equal(sum, layout->stranded_bytes);
}

static void expect_layout(const struct play *play, const struct world *world, const struct layout *layouts,
                          size_t count)
{
    static struct counted counted;
    size_t found = 0;
    for (int allocator = 0; allocator < ALLOCATORS; allocator++) {
        static struct row rows[PLAIN + CHUNKS];
        size_t row_count = rows_of(world, allocator, rows);
        const struct layout *layout = NULL;
        for (size_t i = 0; i < count; i++)
            layout = layouts[i].allocator == play->names[allocator] ? &layouts[i] : layout;
        memset(&counted, 0, sizeof counted);
        assert_int_equal(layout != NULL, row_count > 0);
        if (layout == NULL)
            continue;
        found++;
        for (size_t i = 0; i < row_count; i++) {
            struct layout_segment wanted;
            count_row(play, &rows[i], allocator, &wanted, &counted);
            const struct layout_segment *segment = listed_at(layout, rows[i].start);
            assert_non_null(segment);
            assert_memory_equal(segment, &wanted, offsetof(struct layout_segment, map));
            expect_map(segment, &rows[i], allocator);
        }
        assert_int_equal(layout->segment_count, row_count);
        assert_int_equal(layout->reserved_bytes, counted.sum.bytes);
        assert_int_equal(layout->allocated_bytes, counted.sum.allocated_bytes);
        assert_int_equal(layout->releasable_bytes, counted.sum.releasable_bytes);
        assert_int_equal(layout->stranded_bytes, counted.sum.stranded_bytes);
        assert_int_equal(layout->largest_free_bytes, counted.sum.largest_free_bytes);
        assert_int_equal(layout->blocks, counted.sum.blocks);
        assert_int_equal(layout->outside_bytes, 0);
        assert_int_equal(layout->device, 0);
        expect_pinners(layout, &counted);
    }
    assert_int_equal(found, count);
}

static void expect_moment(struct play *play, enum layout_moment moment, const struct world *world)
{
    static const struct layout_limits limits = {.segments = 100, .pinners = 100};
    const struct layout *layouts;
    size_t count;
    struct arena arena = {0};
    assert_true(ledger_layouts(play->books.ledger, 0, moment, &limits, &arena, &layouts, &count));
    expect_layout(play, world, layouts, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(layouts[i].time_ns, moment == LAYOUT_NOW ? 0 : world->time_ns);
    arena_release(&arena);
}

static void test_layouts_are_the_oracles_on_a_thousand_seeds(void **state)
{
    static struct play play;
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        start(&play, seed);
        for (int step = 0; step < STEPS; step++) {
            if (random_below(&play.seed, 5) < 3)
                step_plain(&play);
            else
                step_range(&play);
            if (step % 50 == 49) {
                expect_moment(&play, LAYOUT_NOW, &play.now);
                expect_moment(&play, LAYOUT_FULLEST, &play.fullest);
            }
        }
        trace_books_close(&play.books);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts_are_the_oracles_on_a_thousand_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
