/* The log of a space's highest moments (summits.h). */
#include "ledger/summits.h"

#include <string.h>

#include "base/sort.h"
#include "ledger/internal.h"

#define MARK_GONE  (SUMMIT_MARK - 1) /* of a mark that does not matter any more */
#define REFERENCES 4                 /* marks that the others are compared with, when the log is full */

static void forget(struct summits *summits)
{
    summits->count = 0;
    summits->floor = UINT64_MAX;
}

static bool make_room(struct ledger *ledger, struct summits *summits, uint32_t room)
{
    struct summit_entry *entries =
        room <= SUMMITS_ROOM_MAX ? arena_alloc(ledger->arena, room * sizeof *entries) : NULL;
    if (entries == NULL) {
        forget(summits);
        return false;
    }
    if (summits->count > 0)
        memcpy(entries, summits->entries, summits->count * sizeof *entries);
    summits->entries = entries;
    summits->room = room;
    return true;
}

static bool is_change(const struct summit_entry *entry)
{
    return entry->site < MARK_GONE;
}

/* What the space held before the first entry. */
static uint64_t held_before(const struct space_record *space)
{
    uint64_t held = space->is.totals.live_bytes;
    for (uint32_t i = 0; i < space->summits.count; i++)
        if (is_change(&space->summits.entries[i]))
            held -= space->summits.entries[i].bytes;
    return held;
}

/* Leaves out sites that did not change from one mark to the next. */
static uint32_t leave_out_unchanged(struct summit_entry *entries, uint32_t from, uint32_t end)
{
    uint32_t kept = from;
    for (uint32_t i = from; i < end; i++)
        if (entries[i].bytes != 0)
            entries[kept++] = entries[i];
    return kept;
}

/* Leaves out marks that are gone or not above the floor, what was before the first mark, and adds up what
 * each site changed by from one mark to the next. */
static void tidy(struct ledger *ledger, struct space_record *space)
{
    struct summits *summits = &space->summits;
    struct summit_entry *entries = summits->entries;
    uint64_t held = held_before(space);
    uint32_t kept = 0, from = 0, end = summits->count;
    bool marked = false;
    ledger->stamp++;
    for (uint32_t i = 0; i < end; i++) {
        struct summit_entry entry = entries[i];
        if (is_change(&entry)) {
            struct site_record *site = list_at(&ledger->sites, entry.site);
            held += entry.bytes;
            if (site->stamp != ledger->stamp) {
                site->stamp = ledger->stamp;
                site->scratch = kept;
                entries[kept++] = (struct summit_entry){.site = entry.site};
            }
            entries[site->scratch].bytes += entry.bytes;
            continue;
        }
        if (entry.site == MARK_GONE || held <= summits->floor)
            continue;
        kept = marked ? leave_out_unchanged(entries, from, kept) : 0;
        if (!marked || kept > from)
            entries[kept++] = entry;
        from = kept;
        marked = true;
        ledger->stamp++;
    }
    summits->count = marked ? leave_out_unchanged(entries, from, kept) : 0;
}

/* The highest mark below a height, which it becomes; false when there is none. */
static bool highest_mark(const struct space_record *space, uint64_t *below, uint32_t *at)
{
    const struct summits *summits = &space->summits;
    uint64_t held = held_before(space), highest = 0;
    for (uint32_t i = 0; i < summits->count; i++) {
        const struct summit_entry *entry = &summits->entries[i];
        if (is_change(entry)) {
            held += entry->bytes;
        } else if (held > highest && held < *below) {
            highest = held;
            *at = i;
        }
    }
    *below = highest;
    return highest > 0;
}

/* How much more each site holds than at the mark that a walk began at, and how many do. */
struct walk {
    struct ledger *ledger;
    uint32_t above;
};

static void change(struct walk *walk, const struct summit_entry *entry, uint64_t bytes)
{
    struct site_record *site = list_at(&walk->ledger->sites, entry->site);
    if (site->stamp != walk->ledger->stamp) {
        site->stamp = walk->ledger->stamp;
        site->scratch = 0;
    }
    walk->above -= (int64_t)site->scratch > 0;
    site->scratch += bytes;
    walk->above += (int64_t)site->scratch > 0;
}

/* Gone are all marks at which no site held more than at this one. */
static void outdo(struct ledger *ledger, struct summits *summits, uint32_t at)
{
    struct summit_entry *entries = summits->entries;
    struct walk walk = {.ledger = ledger};
    ledger->stamp++;
    for (uint32_t i = at + 1; i < summits->count; i++) {
        if (is_change(&entries[i]))
            change(&walk, &entries[i], entries[i].bytes);
        else if (walk.above == 0)
            entries[i].site = MARK_GONE;
    }
    walk.above = 0;
    ledger->stamp++;
    for (uint32_t i = at; i-- > 0;) {
        if (is_change(&entries[i]))
            change(&walk, &entries[i], -entries[i].bytes);
        else if (walk.above == 0)
            entries[i].site = MARK_GONE;
    }
}

static bool is_half_empty(const struct summits *summits)
{
    return summits->count <= summits->room / 2;
}

/* By the highest marks, one after the other, until that is enough. */
static void leave_out_what_is_outdone(struct ledger *ledger, struct space_record *space)
{
    uint64_t below = UINT64_MAX;
    uint32_t at;
    for (uint32_t i = 0; i < REFERENCES && !is_half_empty(&space->summits); i++) {
        if (!highest_mark(space, &below, &at))
            return;
        outdo(ledger, &space->summits, at);
        tidy(ledger, space);
    }
}

static int compare_heights(const void *left, const void *right, const void *context)
{
    (void)context;
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* To the middle of the marks that there are; false when that would leave none, or for want of memory. */
static bool raise_floor(struct ledger *ledger, struct space_record *space)
{
    struct summits *summits = &space->summits;
    size_t bytes = summits->count * sizeof(uint64_t), count = 0;
    uint64_t *heights = bytes > 0 ? pages_alloc(bytes) : NULL, held = held_before(space);
    if (heights == NULL)
        return false;
    for (uint32_t i = 0; i < summits->count; i++) {
        if (is_change(&summits->entries[i]))
            held += summits->entries[i].bytes;
        else
            heights[count++] = held;
    }
    bool raised = count > 1 && sort_items(heights, count, sizeof *heights, compare_heights, NULL) &&
                  heights[(count - 1) / 2] < heights[count - 1];
    if (raised)
        summits->floor = heights[(count - 1) / 2];
    pages_free(heights, bytes);
    if (raised)
        tidy(ledger, space);
    return raised;
}

/* Leaves at least half of the log empty, or makes it longer. */
static void make_space(struct ledger *ledger, struct space_record *space)
{
    struct summits *summits = &space->summits;
    if (summits->room == 0) {
        make_room(ledger, summits, SUMMITS_ROOM_MIN);
        return;
    }
    uint64_t half = space->is.totals.peak_bytes / 2;
    summits->floor = half > summits->floor ? half : summits->floor;
    tidy(ledger, space);
    leave_out_what_is_outdone(ledger, space);
    while (!is_half_empty(summits)) {
        if (summits->room >= SUMMITS_ROOM && raise_floor(ledger, space))
            continue;
        make_room(ledger, summits, summits->room * 2);
        return;
    }
}

void summits_note(struct ledger *ledger, struct space_record *space, uint32_t site, uint64_t bytes,
                  bool rises, uint64_t time_ns)
{
    struct summits *summits = &space->summits;
    if (bytes == 0 || summits->floor == UINT64_MAX)
        return;
    if (summits->count + 2 > summits->room)
        make_space(ledger, space);
    if (summits->entries == NULL || summits->floor == UINT64_MAX)
        return;
    struct summit_entry *last = summits->count > 0 ? &summits->entries[summits->count - 1] : NULL;
    if (!rises && summits->rising && space->is.totals.live_bytes > summits->floor &&
        (last == NULL || last->site != SUMMIT_MARK)) {
        last = &summits->entries[summits->count++];
        *last = (struct summit_entry){.bytes = summits->rose_ns, .site = SUMMIT_MARK};
    }
    summits->rising = rises;
    if (rises)
        summits->rose_ns = time_ns;
    if (last == NULL)
        return; /* before the first mark nothing is told apart */
    if (last->site != site)
        summits->entries[summits->count++] = (struct summit_entry){.bytes = bytes, .site = site};
    else if ((last->bytes += bytes) == 0)
        summits->count--;
}

bool summits_copy(struct ledger *ledger, struct summits *to, const struct summits *from)
{
    *to = *from;
    to->count = 0;
    if (from->room == 0)
        return true;
    if (!make_room(ledger, to, from->room))
        return false;
    to->count = from->count;
    if (from->count > 0)
        memcpy(to->entries, from->entries, from->count * sizeof *from->entries);
    return true;
}

/* ---- the answer ---- */

static bool is_in(const struct ledger *ledger, const struct space_record *space,
                  const struct site_record *site)
{
    return site->space == space || (space == &ledger->whole && site->space != NULL && site->space->in_whole);
}

/* Returns what all but those without hold now; `*left` is how many these are. */
static uint64_t fill_living(const struct ledger *ledger, const struct space_record *space,
                            const bool *without, uint64_t *bytes, uint32_t *left)
{
    uint64_t held = 0;
    *left = 0;
    for (uint32_t i = 0; i < ledger->sites.count; i++) {
        const struct site_record *site = list_at(&ledger->sites, i);
        bool is_here = is_in(ledger, space, site);
        bytes[i] = is_here ? site->totals.live_bytes : 0;
        held += without[i] ? 0 : bytes[i];
        *left += is_here && !without[i];
    }
    return held;
}

struct peak_without ledger_peak_without(const struct ledger *ledger, const struct ledger_space *space,
                                        const bool *without, uint64_t *bytes)
{
    /* `is` comes first. */
    const struct space_record *record = (const struct space_record *)space;
    const struct summits *summits = &record->summits;
    uint32_t left;
    uint64_t held = fill_living(ledger, record, without, bytes, &left), floor = summits->floor;
    struct peak_without peak = {.bytes = held, .time_ns = summits->rose_ns};
    uint32_t at = summits->count;
    for (uint32_t i = summits->count; i-- > 0;) {
        const struct summit_entry *entry = &summits->entries[i];
        if (is_change(entry)) {
            held -= without[entry->site] ? 0 : entry->bytes;
        } else if (held >= peak.bytes) {
            peak = (struct peak_without){.bytes = held, .time_ns = entry->bytes};
            at = i;
        }
    }
    for (uint32_t i = summits->count; i-- > at;)
        if (is_change(&summits->entries[i]))
            bytes[summits->entries[i].site] -= summits->entries[i].bytes;
    peak.exact = peak.bytes >= floor || left == 0;
    if (!peak.exact)
        peak = (struct peak_without){.bytes =
                                         floor < space->totals.peak_bytes ? floor : space->totals.peak_bytes};
    return peak;
}
