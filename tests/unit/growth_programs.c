/* Programs that grow and programs that do not (growth_programs.h). Times are parts of the run, from 0 to 1.
 */
#include "growth_programs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define FOREVER 2.0

struct making {
    struct growth_program *program;
    uint64_t seed;
    uint32_t site, blocks;
    size_t room;
    double size, spread; /* of a block in bytes, and of its logarithm */
};

/* From 0 to 1, without 1. */
static double chance(struct making *making)
{
    return (double)(random_next(&making->seed) >> 11) * 0x1p-53;
}

static double between(struct making *making, double low, double high)
{
    return low + (high - low) * chance(making);
}

/* As often between 1 and 10 as between 10 and 100. */
static double scaled(struct making *making, double low, double high)
{
    return low * exp(chance(making) * log(high / low));
}

static int some(struct making *making, int low, int high)
{
    return low + (int)random_below(&making->seed, (uint64_t)high - (uint64_t)low + 1);
}

static double lifetime(struct making *making, double mean)
{
    return -mean * log(1 - chance(making));
}

static double size_of_block(struct making *making)
{
    double normal = sqrt(-2 * log(1 - chance(making))) * cos(6.283185307 * chance(making));
    return floor(making->size * exp(making->spread * normal) / 256 + 1) * 256;
}

static void put(struct making *making, double at, double size, bool frees)
{
    struct growth_program *program = making->program;
    if (program->count == making->room) {
        making->room = making->room ? 2 * making->room : 256;
        program->steps = realloc(program->steps, making->room * sizeof *program->steps);
        assert_non_null(program->steps);
    }
    program->steps[program->count++] =
        (struct growth_step){.time_ns = (uint64_t)(at * (double)program->duration_ns),
                             .block = making->blocks,
                             .site = making->site,
                             .size = (uint64_t)size,
                             .frees = frees};
}

/* A block that lives from `from` to `to`, as far as the run goes. */
static void block_of(struct making *making, double from, double to, double size)
{
    if (from < 0 || from >= 1)
        return;
    put(making, from, size, false);
    if (to < 1)
        put(making, to > from ? to : from, size, true);
    making->blocks++;
}

static void block(struct making *making, double from, double to)
{
    block_of(making, from, to, size_of_block(making));
}

/* `count` blocks that stay, about evenly from `from` to `to`; `jitter` of 1: anywhere in its own stretch. */
static void line(struct making *making, int count, double from, double to, double jitter)
{
    for (int i = 0; i < count; i++)
        block(making, from + (to - from) * (i + 0.5 + jitter * (chance(making) - 0.5)) / count, FOREVER);
}

/* Blocks that are soon given back. */
static void scratch(struct making *making, int count, double longest)
{
    for (int i = 0; i < count; i++) {
        double from = chance(making);
        block(making, from, from + longest * chance(making));
    }
}

/* A stationary number of blocks, `level` on average: each is born at random and lives for a random time. */
static void noise(struct making *making, double level, double mean)
{
    int born = (int)(level / mean);
    for (int i = 0; i < (int)level; i++)
        block(making, 0.001 * chance(making), lifetime(making, mean));
    for (int i = 0; i < (born < 5000 ? born : 5000); i++) {
        double from = chance(making);
        block(making, from, from + lifetime(making, mean));
    }
}

/* ---- programs that grow ---- */

static void grow_evenly(struct making *making)
{
    line(making, (int)scaled(making, 30, 2000), 0, 1, between(making, 0, 0.5));
}

static void grow_at_random(struct making *making)
{
    for (int i = (int)scaled(making, 40, 2000); i > 0; i--)
        block(making, chance(making), FOREVER);
}

static void grow_after_warm_up(struct making *making)
{
    double warm = between(making, 0.02, 0.25);
    line(making, (int)scaled(making, 5, 500), 0, warm, 1);
    line(making, (int)scaled(making, 40, 1000), 0, 1, between(making, 0, 1));
}

static void grow_in_steps(struct making *making)
{
    int steps = some(making, 8, 30), blocks = some(making, 1, 20);
    double jitter = between(making, 0, 0.4);
    for (int i = 0; i < steps; i++) {
        double at = (i + 0.5 + jitter * (chance(making) - 0.5)) / steps;
        line(making, blocks, at, at + 0.002, 1);
    }
}

/* Each tooth leaves `left` of its blocks behind. */
static void saw(struct making *making, int teeth, int blocks, int left, double phase)
{
    for (int i = -1; i <= teeth; i++) {
        for (int k = 0; k < blocks; k++) {
            double from = (i + phase + 0.8 * (k + chance(making)) / blocks) / teeth;
            double to = (i + phase + 0.81 + 0.1 * chance(making)) / teeth;
            block(making, from, k < left ? FOREVER : to);
        }
    }
}

static void grow_in_a_saw(struct making *making)
{
    saw(making, (int)scaled(making, 10, 150), some(making, 3, 15), some(making, 1, 2), chance(making));
}

static void grow_under_scratch(struct making *making)
{
    line(making, (int)scaled(making, 30, 500), 0, 1, 0.3);
    scratch(making, (int)scaled(making, 100, 3000), scaled(making, 0.0002, 0.005));
}

/* By at least 30 standard deviations of the noise, which is the square root of its level. */
static void grow_under_noise(struct making *making)
{
    double level = scaled(making, 4, 60);
    noise(making, level, scaled(making, 0.002, 0.01));
    line(making, (int)(30 * sqrt(level) * between(making, 1, 3)), 0, 1, 1);
}

static void grow_late(struct making *making)
{
    double from = between(making, 0.3, 0.5);
    line(making, some(making, 2, 3), 0, 0.005, 1);
    for (int i = (int)scaled(making, 50, 1000); i > 0; i--)
        block(making, between(making, from, 1), FOREVER);
}

static void grow_from_a_late_start(struct making *making)
{
    line(making, (int)scaled(making, 30, 1000), between(making, 0.2, 0.5), 1, 1);
}

static void grow_faster_and_faster(struct making *making)
{
    int count = (int)scaled(making, 30, 1000);
    for (int i = 0; i < count; i++)
        block(making, sqrt((i + chance(making)) / count), FOREVER);
}

/* One block, copied into a larger one again and again. */
static void grow_by_moving(struct making *making)
{
    int count = (int)scaled(making, 30, 1000);
    for (int i = 0; i < count; i++)
        block_of(making, (i + 0.5) / count, (i + 1.6) / count, making->size * (i + 1));
}

static void grow_with_pauses(struct making *making)
{
    int epochs = some(making, 8, 30), blocks = some(making, 3, 30);
    for (int i = 0; i < epochs; i++)
        line(making, blocks, (double)i / epochs, (i + 0.6) / epochs, 1);
}

/* ---- programs that do not ---- */

static void stay_as_at_the_start(struct making *making)
{
    line(making, some(making, 1, 50), 0, 0.01, 1);
}

static void allocate_now_and_then(struct making *making)
{
    for (int i = some(making, 2, 7); i > 0; i--)
        block(making, chance(making), FOREVER);
}

static void saw_with_a_level_floor(struct making *making)
{
    line(making, some(making, 0, 3), 0, 0.001, 1);
    saw(making, (int)scaled(making, 2, 150), some(making, 3, 20), 0, chance(making));
}

static void burst(struct making *making)
{
    for (int i = some(making, 1, 12); i > 0; i--) {
        double at = chance(making), length = scaled(making, 0.001, 0.1);
        for (int k = some(making, 3, 100); k > 0; k--)
            block(making, at + length * chance(making), at + length * between(making, 1, 1.2));
    }
}

static void warm_up(struct making *making)
{
    line(making, (int)scaled(making, 5, 1000), 0, between(making, 0.02, 0.6), 1);
    if (some(making, 0, 1))
        scratch(making, (int)scaled(making, 100, 1000), 0.002);
}

static void warm_up_late(struct making *making)
{
    double from = between(making, 0.3, 0.5);
    line(making, 1, 0, 0.01, 1);
    line(making, (int)scaled(making, 5, 300), from, from + (1 - from) * between(making, 0.02, 0.5), 1);
}

/* Because demand doubles, or at once, or whenever. */
static void double_an_arena(struct making *making)
{
    int count = some(making, 2, 7), why = some(making, 0, 2);
    for (int i = 0; i < count; i++) {
        double at = why == 0   ? between(making, 0, 0.5)
                    : why == 1 ? exp2(i - count) * between(making, 1.1, 1.3)
                               : 0.02 * i;
        block_of(making, at, FOREVER, making->size * exp2(i));
    }
}

static void extend_an_arena(struct making *making)
{
    int count = some(making, 4, 40);
    double time = between(making, 0.05, 0.3);
    for (int i = 0; i < count; i++)
        block_of(making, -time * log(1 - (i + 0.5) / count), FOREVER, making->size);
    if (some(making, 0, 1))
        scratch(making, 500, 0.003);
}

/* Allocate or free one of what there is, with equal chances; at most `most` blocks. */
static void walk(struct making *making, int moves, int most)
{
    double *born = malloc((size_t)moves * sizeof *born);
    int living = 0;
    assert_non_null(born);
    for (int i = 0; i < moves; i++) {
        double now = (i + chance(making)) / moves;
        if (living == 0 || (living < most && some(making, 0, 1))) {
            born[living++] = now;
        } else {
            int which = some(making, 0, living - 1);
            block(making, born[which], now);
            born[which] = born[--living];
        }
    }
    while (living > 0)
        block(making, born[--living], FOREVER);
    free(born);
}

static void walk_at_random(struct making *making)
{
    walk(making, (int)scaled(making, 50, 2000), INT32_MAX);
}

static void walk_in_a_pool(struct making *making)
{
    walk(making, (int)scaled(making, 50, 2000), some(making, 5, 50));
}

static void be_noisy(struct making *making)
{
    noise(making, scaled(making, 3, 200), scaled(making, 0.005, 0.3));
}

/* A cache of what is asked for ever more rarely for the first time: the logarithm of time. */
static void fill_a_logarithmic_cache(struct making *making)
{
    int count = (int)scaled(making, 20, 1000);
    double steep = scaled(making, 20, 10000), jitter = chance(making);
    for (int i = 0; i < count; i++) {
        double level = (i + 0.5 + jitter * (chance(making) - 0.5)) / count;
        block(making, (exp(level * log(1 + steep)) - 1) / steep, FOREVER);
    }
}

static void fill_a_logarithmic_cache_late(struct making *making)
{
    int count = (int)scaled(making, 20, 300);
    double steep = scaled(making, 20, 10000), from = between(making, 0.1, 0.5);
    line(making, 1, 0, 0.01, 1);
    for (int i = 0; i < count; i++) {
        double level = (i + chance(making)) / count;
        block(making, from + (1 - from) * (exp(level * log(1 + steep)) - 1) / steep, FOREVER);
    }
}

static void fill_a_saturating_cache(struct making *making)
{
    double time = between(making, 0.02, 0.3);
    for (int i = (int)scaled(making, 10, 1000); i > 0; i--)
        block(making, lifetime(making, time), FOREVER);
}

/* Equally likely shapes, each compiled when it is first met; each is met 2.5 times or more on average. */
static void meet_every_shape(struct making *making)
{
    enum { SHAPES = 400 };
    bool met[SHAPES] = {false};
    int shapes = (int)scaled(making, 8, SHAPES), requests = (int)(shapes * scaled(making, 2.5, 20));
    for (int i = 0; i < requests; i++) {
        int shape = some(making, 0, shapes - 1);
        if (!met[shape])
            block(making, (i + 0.5) / requests, FOREVER);
        met[shape] = true;
    }
}

static void evict_the_oldest(struct making *making)
{
    int count = (int)scaled(making, 50, 2000), room = (int)scaled(making, 4, 0.6 * count);
    for (int i = 0; i < count; i++) {
        double from = (i + chance(making)) / count;
        block(making, from, i + room < count ? (i + room + 0.5) / count : FOREVER);
    }
}

static void take_turns(struct making *making)
{
    int turns = (int)scaled(making, 3, 300), blocks = some(making, 1, 6);
    for (int i = 0; i < turns; i++)
        for (int k = 0; k < blocks; k++)
            block(making, (i + 0.1 * chance(making)) / turns, (i + between(making, 0.5, 0.8)) / turns);
}

static void give_all_back(struct making *making)
{
    double end = between(making, 0.2, 0.8);
    int count = (int)scaled(making, 10, 500);
    for (int i = 0; i < count; i++)
        block(making, end * (i + chance(making)) / count, end + 0.01 * chance(making));
}

static const struct kind {
    const char *name;
    bool grows;
    void (*make)(struct making *making);
} kinds[] = {
    {"even growth", true, grow_evenly},
    {"growth at random", true, grow_at_random},
    {"growth after a warm-up", true, grow_after_warm_up},
    {"growth in large steps", true, grow_in_steps},
    {"sawtooth with a rising floor", true, grow_in_a_saw},
    {"growth under scratch memory", true, grow_under_scratch},
    {"growth under noise", true, grow_under_noise},
    {"growth that begins late", true, grow_late},
    {"growth of a site that begins late", true, grow_from_a_late_start},
    {"faster and faster growth", true, grow_faster_and_faster},
    {"growth by moving", true, grow_by_moving},
    {"growth with pauses", true, grow_with_pauses},
    {"blocks of the start", false, stay_as_at_the_start},
    {"a few blocks at random", false, allocate_now_and_then},
    {"sawtooth with a level floor", false, saw_with_a_level_floor},
    {"bursts", false, burst},
    {"warm-up", false, warm_up},
    {"late warm-up", false, warm_up_late},
    {"arena that doubles", false, double_an_arena},
    {"arena that levels off", false, extend_an_arena},
    {"random walk", false, walk_at_random},
    {"random walk in a pool", false, walk_in_a_pool},
    {"noise", false, be_noisy},
    {"logarithmic cache", false, fill_a_logarithmic_cache},
    {"late logarithmic cache", false, fill_a_logarithmic_cache_late},
    {"saturating cache", false, fill_a_saturating_cache},
    {"cache of all shapes", false, meet_every_shape},
    {"cache that evicts", false, evict_the_oldest},
    {"turns", false, take_turns},
    {"all given back", false, give_all_back},
};

size_t growth_kinds(void)
{
    return COUNT_OF(kinds);
}

static int compare_steps(const void *left, const void *right)
{
    const struct growth_step *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->frees - b->frees;
}

void growth_program_make(struct growth_program *program, size_t kind, uint64_t seed)
{
    struct making making = {.program = program, .seed = seed * 1000 + kind};
    *program = (struct growth_program){.kind = kinds[kind].name, .grows = kinds[kind].grows};
    program->duration_ns = (uint64_t)scaled(&making, 5e6, 6 * 86400e9);
    making.size = scaled(&making, 512, 1e8);
    making.spread = between(&making, 0, 0.8) * some(&making, 0, 1);
    making.site = GROWTH_SUBJECT;
    kinds[kind].make(&making);
    making.site = GROWTH_WEIGHTS;
    making.size = 1 << 20;
    line(&making, some(&making, 1, 20), 0, 0.01, 1);
    making.site = GROWTH_ACTIVATIONS;
    take_turns(&making);
    block(&making, 0.999, 0.9999); /* the program works to the end */
    qsort(program->steps, program->count, sizeof *program->steps, compare_steps);
}

void growth_program_free(struct growth_program *program)
{
    free(program->steps);
    memset(program, 0, sizeof *program);
}
