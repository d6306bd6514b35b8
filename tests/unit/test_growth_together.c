/*
 * Lines of code that several sites reach: whether they are said to grow, over the random programs of
 * growth_programs.h, whose first site is one of many here or has a neighbour.
 */
#include "unit.h"

#include <string.h>

#include "books.h"
#include "growth_programs.h"
#include "growth_tally.h"
#include "ledger/growth.h"

#define WAYS_MAX 100

enum spreading { AT_RANDOM, IN_TURN, ONE_AFTER_THE_OTHER, SOME_RARELY, SPREADINGS };

struct ways {
    uint32_t count, sites[WAYS_MAX];
    enum spreading spreading;
    uint64_t seed;
};

/* Which of the ways a block of the subject comes by, from its number and when it begins. */
static uint32_t way_of(const struct ways *ways, const struct growth_program *program,
                       const struct growth_step *step)
{
    uint64_t seed = ways->seed + step->block;
    double chance = (double)(random_next(&seed) >> 11) * 0x1p-53;
    switch (ways->spreading) {
    case AT_RANDOM:
        return (uint32_t)(chance * ways->count);
    case IN_TURN:
        return step->block % ways->count;
    case ONE_AFTER_THE_OTHER:
        return (uint32_t)((double)step->time_ns / (double)program->duration_ns * 0.999 * ways->count);
    default:
        return (uint32_t)(chance * chance * chance * ways->count);
    }
}

static void play_by_many_ways(struct trace_books *books, const struct growth_program *program,
                              struct ways *ways)
{
    uint32_t others[GROWTH_SITES];
    for (uint32_t i = 1; i < GROWTH_SITES; i++)
        others[i] = trace_books_site(books, i, FAMILY_PLAIN, SPACE_DEVICE, 0);
    for (uint32_t i = 0; i < ways->count; i++)
        ways->sites[i] = trace_books_site(books, GROWTH_SITES + i, FAMILY_PLAIN, SPACE_DEVICE, 0);
    for (size_t i = 0; i < program->count; i++) {
        const struct growth_step *step = &program->steps[i];
        bool is_subject = step->site == GROWTH_SUBJECT;
        uint32_t way = is_subject && !step->frees ? way_of(ways, program, step) : 0;
        struct event event = {.type = step->frees ? EVENT_FREE : EVENT_ALLOC,
                              .site = is_subject ? ways->sites[way] : others[step->site],
                              .time_ns = step->time_ns,
                              .key = block_key(KEY_ADDRESS, UINT64_C(0x7f0000000000) + step->block),
                              .size = step->size};
        assert_true(trace_books_apply(books, &event, NULL));
    }
}

/* Every third program has few ways, the others up to a hundred. `single`: in how many lines a site alone is
 * named, too. */
static void judge_ways(size_t kind, uint64_t seed, struct tally *tally, struct tally *single)
{
    struct growth_program program;
    struct trace_books books;
    struct growth growth;
    uint64_t random = seed * 77 + kind;
    struct ways ways = {.seed = seed << 32};
    ways.count = 2 + (uint32_t)random_below(&random, random_below(&random, 3) ? WAYS_MAX - 1 : 6);
    ways.spreading = (enum spreading)random_below(&random, SPREADINGS);
    growth_program_make(&program, kind, seed);
    trace_books_open(&books, NULL);
    play_by_many_ways(&books, &program, &ways);
    uint64_t end_ns = growth_end(books.ledger, program.duration_ns);
    bool named = ledger_growth_together(books.ledger, ways.sites, ways.count, end_ns, &growth), alone = false;
    for (uint32_t i = 0; i < ways.count; i++)
        alone |= ledger_growth(books.ledger, ways.sites[i], end_ns, &growth);
    tally->growers += program.grows;
    tally->named_growers += program.grows && named;
    tally->innocents += !program.grows;
    tally->named_innocents += !program.grows && named;
    single->growers += program.grows;
    single->named_growers += program.grows && alone;
    single->innocents += !program.grows;
    single->named_innocents += !program.grows && alone;
    if (named && !program.grows)
        print_message("\"%s\", seed %llu, %u ways %d, is named and does not grow\n", program.kind,
                      (unsigned long long)seed, ways.count, ways.spreading);
    trace_books_close(&books);
    growth_program_free(&program);
}

static void test_a_line_that_grows_is_named_by_however_many_ways_it_is_reached(void **state)
{
    (void)state;
    enum { FIRST = 5000, SEEDS = 100 };
    struct tally sum = {0}, single = {0};
    for (size_t kind = 0; kind < growth_kinds(); kind++) {
        struct tally tally = {0};
        struct growth_program program;
        growth_program_make(&program, kind, FIRST);
        /* What moves on from way to way stays nowhere for as long as a stretch of the histories. */
        bool moves = strcmp(program.kind, "growth by moving") == 0;
        for (uint64_t seed = FIRST; seed < FIRST + SEEDS && !moves; seed++)
            judge_ways(kind, seed, &tally, &single);
        print_tally(program.kind, &tally);
        growth_program_free(&program);
        assert_true(tally.named_growers * 100 >= tally.growers * 80);
        add_tally(&sum, &tally);
    }
    print_tally("lines that many ways reach", &sum);
    print_tally("those ways by themselves", &single);
    assert_true(sum.named_growers * 100 >= sum.growers * 95);
    assert_true(single.named_growers * 100 < single.growers * 60); /* or there would be no need for sums */
    assert_int_equal(sum.named_innocents, 0);
}

/* Two programs at once, of equal length: one site of a line grows, the other does not. */
static void play_both(struct trace_books *books, const struct growth_program *program, uint32_t *sites)
{
    size_t next[2] = {0};
    for (size_t i = 0; i < program[0].count + program[1].count; i++) {
        double times[2] = {2, 2};
        for (int k = 0; k < 2; k++)
            if (next[k] < program[k].count)
                times[k] = (double)program[k].steps[next[k]].time_ns / (double)program[k].duration_ns;
        unsigned which = times[1] < times[0];
        const struct growth_step *step = &program[which].steps[next[which]++];
        uint64_t address = (which + 1) * UINT64_C(0x100000000000) + step->block;
        struct event event = {.type = step->frees ? EVENT_FREE : EVENT_ALLOC,
                              .site = sites[2 * (step->site != GROWTH_SUBJECT) + which],
                              .time_ns = (uint64_t)(times[which] * (double)program[0].duration_ns),
                              .key = block_key(KEY_ADDRESS, address),
                              .size = step->size};
        assert_true(trace_books_apply(books, &event, NULL));
    }
}

static void test_a_site_that_grows_is_named_whatever_else_its_line_does(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (size_t pair = 0; pair < growth_kinds() * growth_kinds(); pair++) {
        struct growth_program programs[2];
        struct trace_books books;
        struct growth growth;
        uint32_t sites[4];
        growth_program_make(&programs[0], pair / growth_kinds(), 9000 + pair);
        growth_program_make(&programs[1], pair % growth_kinds(), 12000 + pair);
        trace_books_open(&books, NULL);
        for (uint32_t i = 0; i < COUNT_OF(sites); i++)
            sites[i] = trace_books_site(&books, i, FAMILY_PLAIN, SPACE_DEVICE, 0);
        play_both(&books, programs, sites);
        uint64_t end_ns = growth_end(books.ledger, programs[0].duration_ns);
        bool together = ledger_growth_together(books.ledger, sites, 2, end_ns, &growth);
        bool alone = ledger_growth(books.ledger, sites[0], end_ns, &growth) ||
                     ledger_growth(books.ledger, sites[1], end_ns, &growth);
        bool grows = programs[0].grows || programs[1].grows;
        tally.growers += grows;
        tally.named_growers += grows && (together || alone);
        tally.innocents += !grows;
        tally.named_innocents += !grows && (together || alone);
        trace_books_close(&books);
        growth_program_free(&programs[0]);
        growth_program_free(&programs[1]);
    }
    print_tally("lines of two sites", &tally);
    assert_true(tally.named_growers * 100 >= tally.growers * 95);
    assert_int_equal(tally.named_innocents, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_that_grows_is_named_by_however_many_ways_it_is_reached),
        cmocka_unit_test(test_a_site_that_grows_is_named_whatever_else_its_line_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
