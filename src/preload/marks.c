/* Marks (marks.h): a table, looked through at every event that adds memory while any is set. */
#define GPUMEMTRACE_LIBRARY
#include "preload/marks.h"

#include <string.h>

#include "gpumemtrace.h"
#include "preload/state.h"

#define ALL MARK_DEVICES /* the index of all devices together */

struct level {
    uint64_t start, peak;
};

struct mark {
    bool set;
    struct level levels[LAYER_COUNT][MARK_DEVICES + 1];
};

/* Live bytes and blocks by layer and device. */
struct living {
    uint64_t bytes[LAYER_COUNT][MARK_DEVICES + 1], blocks[LAYER_COUNT][MARK_DEVICES + 1];
};

static struct mark marks[MARKS_MAX];
static uint32_t marks_in_use; /* how many are set */

_Static_assert(GPUMEMTRACE_DRIVER == LAYER_DRIVER && GPUMEMTRACE_FRAMEWORK == LAYER_FRAMEWORK,
               "the layers of the interface are the ledger's");

static struct living count_living(void)
{
    struct living living = {0};
    size_t spaces = preload.ledger == NULL ? 0 : ledger_space_count(preload.ledger);
    for (size_t i = 0; i < spaces; i++) {
        const struct ledger_space *space = ledger_space(preload.ledger, i);
        if (space->kind != SPACE_DEVICE)
            continue;
        living.bytes[space->layer][ALL] += space->totals.live_bytes;
        living.blocks[space->layer][ALL] += space->totals.live_blocks;
        if (space->device >= 0 && space->device < MARK_DEVICES) {
            living.bytes[space->layer][space->device] = space->totals.live_bytes;
            living.blocks[space->layer][space->device] = space->totals.live_blocks;
        }
    }
    return living;
}

static void start(struct mark *mark, const struct living *living)
{
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        for (int device = 0; device <= ALL; device++) {
            uint64_t bytes = living->bytes[layer][device];
            mark->levels[layer][device] = (struct level){.start = bytes, .peak = bytes};
        }
    }
}

int marks_set(void)
{
    struct living living = count_living();
    for (int i = 0; i < MARKS_MAX; i++) {
        if (marks[i].set)
            continue;
        marks[i].set = true;
        marks_in_use++;
        start(&marks[i], &living);
        return i + 1;
    }
    return 0;
}

static struct mark *find(int mark)
{
    return mark >= 1 && mark <= MARKS_MAX && marks[mark - 1].set ? &marks[mark - 1] : NULL;
}

void marks_take(int number)
{
    struct mark *mark = find(number);
    if (mark != NULL) {
        mark->set = false;
        marks_in_use--;
    }
}

static void raise_levels(struct mark *mark, const struct living *living)
{
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        for (int device = 0; device <= ALL; device++) {
            struct level *level = &mark->levels[layer][device];
            if (living->bytes[layer][device] > level->peak)
                level->peak = living->bytes[layer][device];
        }
    }
}

void marks_note(void)
{
    if (marks_in_use == 0)
        return;
    struct living living = count_living();
    for (int i = 0; i < MARKS_MAX; i++) {
        if (marks[i].set)
            raise_levels(&marks[i], &living);
    }
}

void marks_restart(void)
{
    for (int i = 0; i < MARKS_MAX; i++) {
        if (marks[i].set)
            memset(marks[i].levels, 0, sizeof marks[i].levels);
    }
}

/* Of one device, the whole run's. */
static uint64_t peak_of_run(enum layer layer, int device)
{
    for (size_t i = 0; i < ledger_space_count(preload.ledger); i++) {
        const struct ledger_space *space = ledger_space(preload.ledger, i);
        if (space->kind == SPACE_DEVICE && space->layer == layer && space->device == device)
            return space->totals.peak_bytes;
    }
    return 0;
}

bool marks_usage(int number, int layer, int device, struct gpumemtrace_usage *usage)
{
    const struct mark *mark = find(number);
    int index = device == GPUMEMTRACE_ALL_DEVICES ? ALL : device;
    memset(usage, 0, sizeof *usage);
    if (preload.ledger == NULL || (mark == NULL && number != 0) || layer < 0 || layer >= LAYER_COUNT ||
        device < GPUMEMTRACE_ALL_DEVICES || device >= MARK_DEVICES)
        return false;
    struct living living = count_living();
    usage->live_bytes = living.bytes[layer][index];
    usage->live_blocks = living.blocks[layer][index];
    usage->start_bytes = mark == NULL ? 0 : mark->levels[layer][index].start;
    usage->peak_bytes =
        mark == NULL ? peak_of_run((enum layer)layer, device) : mark->levels[layer][index].peak;
    return true;
}
