/*
 * Layouts (layout.h). Pieces and blocks of the moment are gathered and sorted by address; one walk through
 * the pieces then meets each block where it lies.
 */
#include "ledger/layout.h"

#include <string.h>

#include "base/sort.h"
#include "ledger/segments.h"

/* A driver's block or a mapping. */
struct piece {
    uint64_t start, end;
    uint32_t users;
    bool joined; /* a mapping: one with the mapping before it, where they touch */
};

struct span {
    uint64_t start, end;
    uint32_t site, user;
};

/* What a site strands, by catalog id; the stamps are numbers of pieces, from 1. */
struct stranding {
    uint64_t bytes, pieces, blocks;
    uint32_t counted_in, charged_in;
};

/* One device at one moment. */
struct picture {
    const struct ledger *ledger;
    int device;
    const struct fullest *fullest; /* NULL: now */
    struct piece *pieces;
    struct span *spans;
    size_t piece_count, span_count; /* while `pieces` is NULL: only counted */
};

/* Segments of one allocator, being walked through. */
struct walk {
    const struct picture *picture; /* with this allocator's spans only */
    size_t span;                   /* the first that may reach into the piece at hand */
    uint64_t free_from;            /* where the free range at hand began */
    uint32_t piece_number;
    struct stranding *strandings;
    struct layout *layout;
    struct layout_segment *segment;
};

static bool is_of_moment(const struct picture *picture, uint64_t birth)
{
    return picture->fullest == NULL || birth <= picture->fullest->event;
}

/* A recording may hold any size. */
static uint64_t end_of(uint64_t start, uint64_t bytes)
{
    return bytes < UINT64_MAX - start ? start + bytes : UINT64_MAX;
}

static void see_segment(const struct segment *segment, void *arg)
{
    struct picture *picture = arg;
    const struct site_key *key = catalog_site(picture->ledger->catalog, segment->site);
    if (key->device != picture->device || key->space != SPACE_DEVICE ||
        !is_of_moment(picture, segment->birth))
        return;
    if (picture->pieces != NULL)
        picture->pieces[picture->piece_count] =
            (struct piece){.start = segment->start,
                           .end = end_of(segment->start, segment->size),
                           .users = picture->fullest == NULL ? segment->users
                                                             : segments_users_then(segment, picture->fullest),
                           .joined = segment->mapped};
    picture->piece_count++;
}

static void see_block(struct picture *picture, const struct block_entry *entry)
{
    const struct block *block = &entry->block;
    const struct site_record *site = list_at(&picture->ledger->sites, block->site);
    const struct ledger_space *space = site == NULL || site->space == NULL ? NULL : &site->space->is;
    if (space == NULL || space->layer != LAYER_FRAMEWORK || space->kind != SPACE_DEVICE ||
        space->device != picture->device || block->size == 0 || !is_of_moment(picture, entry->birth))
        return;
    uint64_t start = block_key_number(block->key);
    if (picture->spans != NULL)
        picture->spans[picture->span_count] =
            (struct span){start, end_of(start, block->size), block->site, site->user};
    picture->span_count++;
}

static void gather(struct picture *picture)
{
    picture->piece_count = picture->span_count = 0;
    segments_each(picture->ledger, see_segment, picture);
    const struct block_entry *entry = picture->ledger->blocks.oldest;
    for (; entry != NULL; entry = entry->newer)
        see_block(picture, entry);
    if (picture->fullest == NULL)
        return;
    for (const struct segment *ended = picture->fullest->segments; ended != NULL; ended = ended->next)
        see_segment(ended, picture);
    for (entry = picture->fullest->blocks; entry != NULL; entry = entry->next)
        see_block(picture, entry);
}

static int compare_pieces(const void *left, const void *right, const void *context)
{
    const struct piece *a = left, *b = right;
    (void)context;
    return (a->start > b->start) - (a->start < b->start);
}

static int compare_spans(const void *left, const void *right, const void *context)
{
    const struct span *a = left, *b = right;
    (void)context;
    return (a->start > b->start) - (a->start < b->start);
}

/* The end of the run that begins with piece `first`, and the allocators that ever used any of it. */
static size_t run_end(const struct picture *picture, size_t first, uint32_t *users)
{
    size_t end = first;
    *users = 0;
    do {
        *users |= picture->pieces[end].users;
        end++;
    } while (end < picture->piece_count && picture->pieces[end].joined && picture->pieces[end - 1].joined &&
             picture->pieces[end].start == picture->pieces[end - 1].end);
    return end;
}

static void end_free_range(struct walk *walk, uint64_t at)
{
    uint64_t bytes = at > walk->free_from ? at - walk->free_from : 0;
    if (bytes > walk->segment->largest_free_bytes)
        walk->segment->largest_free_bytes = bytes;
}

/* Shares out what is free in a piece that blocks keep. */
static void charge(struct walk *walk, const struct piece *piece, uint64_t free_bytes)
{
    const struct picture *picture = walk->picture;
    uint64_t sites = 0;
    for (int round = 0; round < 2; round++) {
        uint64_t shares = sites > 0 ? sites : 1, left = free_bytes % shares;
        for (size_t i = walk->span; i < picture->span_count && picture->spans[i].start < piece->end; i++) {
            const struct span *span = &picture->spans[i];
            struct stranding *site = &walk->strandings[span->site];
            if (span->end <= piece->start)
                continue;
            if (round == 0) {
                sites += site->counted_in != walk->piece_number;
                site->counted_in = walk->piece_number;
                continue;
            }
            site->blocks++;
            if (site->charged_in == walk->piece_number)
                continue;
            site->charged_in = walk->piece_number;
            site->pieces++;
            site->bytes += free_bytes / shares + (left > 0);
            left -= left > 0;
        }
    }
}

static void walk_piece(struct walk *walk, const struct piece *piece)
{
    const struct picture *picture = walk->picture;
    uint64_t allocated = 0, at = piece->start;
    bool touched = false;
    walk->piece_number++;
    while (walk->span < picture->span_count && picture->spans[walk->span].end <= piece->start)
        walk->span++;
    for (size_t i = walk->span; i < picture->span_count && picture->spans[i].start < piece->end; i++) {
        const struct span *span = &picture->spans[i];
        uint64_t from = span->start > at ? span->start : at;
        uint64_t to = span->end < piece->end ? span->end : piece->end;
        if (span->end <= piece->start)
            continue;
        touched = true;
        walk->segment->blocks += span->start >= piece->start;
        if (to <= from)
            continue;
        if (span->start > walk->free_from)
            end_free_range(walk, span->start);
        allocated += to - from;
        at = to;
        walk->free_from = to;
    }
    uint64_t free_bytes = piece->end - piece->start - allocated;
    walk->segment->allocated_bytes += allocated;
    *(touched ? &walk->segment->stranded_bytes : &walk->segment->releasable_bytes) += free_bytes;
    if (touched && free_bytes > 0)
        charge(walk, piece, free_bytes);
}

static void walk_run(struct walk *walk, size_t first, size_t end, struct layout_segment *segment)
{
    const struct piece *pieces = walk->picture->pieces;
    *segment = (struct layout_segment){.start = pieces[first].start,
                                       .bytes = pieces[end - 1].end - pieces[first].start};
    walk->segment = segment;
    walk->free_from = segment->start;
    for (size_t i = first; i < end; i++)
        walk_piece(walk, &pieces[i]);
    end_free_range(walk, segment->start + segment->bytes);

    struct layout *layout = walk->layout;
    layout->segment_count++;
    layout->reserved_bytes += segment->bytes;
    layout->allocated_bytes += segment->allocated_bytes;
    layout->releasable_bytes += segment->releasable_bytes;
    layout->stranded_bytes += segment->stranded_bytes;
    layout->blocks += segment->blocks;
    if (segment->largest_free_bytes > layout->largest_free_bytes)
        layout->largest_free_bytes = segment->largest_free_bytes;
}

static int compare_segments(const void *left, const void *right, const void *context)
{
    const struct layout_segment *a = left, *b = right;
    (void)context;
    if (a->stranded_bytes != b->stranded_bytes)
        return a->stranded_bytes > b->stranded_bytes ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

static int compare_pinners(const void *left, const void *right, const void *context)
{
    const struct layout_pinner *a = left, *b = right;
    (void)context;
    if (a->stranded_bytes != b->stranded_bytes)
        return a->stranded_bytes > b->stranded_bytes ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

/* What of [from, to) lies in column `column` of the segment's map. */
static uint64_t in_column(const struct layout_segment *segment, unsigned column, uint64_t from, uint64_t to)
{
    uint64_t start = segment->start + (uint64_t)((unsigned __int128)segment->bytes * column / LAYOUT_COLUMNS);
    uint64_t end =
        segment->start + (uint64_t)((unsigned __int128)segment->bytes * (column + 1) / LAYOUT_COLUMNS);
    from = from > start ? from : start;
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

static unsigned column_of(const struct layout_segment *segment, uint64_t address)
{
    unsigned column =
        (unsigned)((unsigned __int128)(address - segment->start) * LAYOUT_COLUMNS / segment->bytes);
    return column < LAYOUT_COLUMNS ? column : LAYOUT_COLUMNS - 1;
}

/* The first span that starts at or behind an address. */
static size_t first_span(const struct picture *picture, uint64_t address)
{
    size_t low = 0, high = picture->span_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (picture->spans[middle].start < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void draw(const struct picture *picture, struct layout_segment *segment)
{
    uint64_t taken[LAYOUT_COLUMNS] = {0}, end = segment->start + segment->bytes, at = segment->start;
    size_t i = first_span(picture, segment->start);
    for (; i < picture->span_count && picture->spans[i].start < end; i++) {
        const struct span *span = &picture->spans[i];
        uint64_t from = span->start > at ? span->start : at, to = span->end < end ? span->end : end;
        if (to <= from)
            continue;
        for (unsigned column = column_of(segment, from); column <= column_of(segment, to - 1); column++)
            taken[column] += in_column(segment, column, from, to);
        at = to;
    }
    for (unsigned column = 0; column < LAYOUT_COLUMNS; column++) {
        uint64_t bytes = in_column(segment, column, segment->start, end);
        bool half = taken[column] * 2 >= bytes;
        segment->map[column] = taken[column] == 0 ? '.' : taken[column] == bytes ? '#' : half ? '+' : '-';
    }
}

static bool list_segments(const struct walk *walk, struct layout_segment *all, size_t most,
                          struct arena *arena)
{
    struct layout *layout = walk->layout;
    if (!sort_items(all, layout->segment_count, sizeof *all, compare_segments, NULL))
        return false;
    size_t count = layout->segment_count < most ? layout->segment_count : most;
    struct layout_segment *listed = arena_alloc(arena, (count + 1) * sizeof *listed);
    if (listed == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        listed[i] = all[i];
        draw(walk->picture, &listed[i]);
    }
    layout->segments = listed;
    layout->listed_count = count;
    return true;
}

/* Keeps the `most` that strand most, with the least of them last. */
static bool list_pinners(const struct walk *walk, size_t sites, size_t most, struct arena *arena)
{
    struct layout *layout = walk->layout;
    struct layout_pinner *listed = arena_alloc(arena, (most + 1) * sizeof *listed);
    if (listed == NULL)
        return false;
    for (uint32_t id = 0; id < sites; id++) {
        const struct stranding *site = &walk->strandings[id];
        struct layout_pinner pinner = {id, site->bytes, site->pieces, site->blocks};
        if (site->bytes == 0)
            continue;
        size_t at = layout->pinner_count;
        while (at > 0 && compare_pinners(&pinner, &listed[at - 1], NULL) < 0)
            at--;
        if (at == most)
            continue;
        layout->pinner_count += layout->pinner_count < most;
        memmove(&listed[at + 1], &listed[at], (layout->pinner_count - 1 - at) * sizeof *listed);
        listed[at] = pinner;
    }
    layout->pinners = listed;
    return true;
}

/* Only the allocator's own spans, in `spans`, which has room for all. */
static struct picture own_picture(const struct picture *picture, uint32_t user, struct span *spans)
{
    struct picture own = *picture;
    own.spans = spans;
    own.span_count = 0;
    for (size_t i = 0; i < picture->span_count; i++) {
        if (picture->spans[i].user == user)
            spans[own.span_count++] = picture->spans[i];
    }
    /* None reaches into the next one, whatever the recording says, so that each is looked at once a piece. */
    for (size_t i = 0; i + 1 < own.span_count; i++) {
        if (spans[i].end > spans[i + 1].start)
            spans[i].end = spans[i + 1].start;
    }
    return own;
}

static void walk_all(struct walk *walk, uint32_t user, struct layout_segment *segments)
{
    const struct picture *picture = walk->picture;
    uint64_t living = 0;
    uint32_t users;
    for (size_t first = 0, end; first < picture->piece_count; first = end) {
        end = run_end(picture, first, &users);
        if (users & user)
            walk_run(walk, first, end, &segments[walk->layout->segment_count]);
    }
    for (size_t i = 0; i < picture->span_count; i++)
        living += picture->spans[i].end - picture->spans[i].start;
    walk->layout->outside_bytes =
        living > walk->layout->allocated_bytes ? living - walk->layout->allocated_bytes : 0;
}

static bool lay_out(const struct picture *picture, uint32_t user, const struct layout_limits *limits,
                    struct arena *arena, struct layout *layout)
{
    size_t sites = picture->ledger->sites.count;
    size_t segment_bytes = (picture->piece_count + 1) * sizeof(struct layout_segment);
    size_t span_bytes = (picture->span_count + 1) * sizeof(struct span);
    size_t site_bytes = (sites + 1) * sizeof(struct stranding);
    struct layout_segment *segments = pages_alloc(segment_bytes);
    struct span *spans = pages_alloc(span_bytes);
    struct stranding *strandings = pages_alloc(site_bytes);
    bool done = segments != NULL && spans != NULL && strandings != NULL;
    if (done) {
        struct picture own = own_picture(picture, user, spans);
        struct walk walk = {.picture = &own, .layout = layout, .strandings = strandings};
        walk_all(&walk, user, segments);
        done = list_segments(&walk, segments, limits->segments, arena) &&
               list_pinners(&walk, sites, limits->pinners, arena);
    }
    pages_free(segments, segment_bytes);
    pages_free(spans, span_bytes);
    pages_free(strandings, site_bytes);
    return done;
}

/* Nor do pieces. */
static void part_pieces(struct picture *picture)
{
    for (size_t i = 0; i + 1 < picture->piece_count; i++) {
        if (picture->pieces[i].end > picture->pieces[i + 1].start)
            picture->pieces[i].end = picture->pieces[i + 1].start;
    }
}

static bool lay_out_all(const struct picture *picture, const struct layout_limits *limits,
                        struct arena *arena, struct layout *layouts, size_t *count)
{
    const struct list *frameworks = &picture->ledger->segments.frameworks;
    for (uint32_t i = 0; i < frameworks->count; i++) {
        struct layout layout = {.allocator = *(const uint32_t *)list_at(frameworks, i),
                                .device = picture->device,
                                .time_ns = picture->fullest == NULL ? 0 : picture->fullest->time_ns};
        if (!lay_out(picture, UINT32_C(1) << i, limits, arena, &layout))
            return false;
        if (layout.segment_count > 0 || layout.outside_bytes > 0)
            layouts[(*count)++] = layout;
    }
    return true;
}

bool ledger_layouts(const struct ledger *ledger, int device, enum layout_moment moment,
                    const struct layout_limits *limits, struct arena *arena, const struct layout **layouts,
                    size_t *count)
{
    struct picture picture = {.ledger = ledger, .device = device};
    *count = 0;
    *layouts = NULL;
    if (moment == LAYOUT_FULLEST && (picture.fullest = segments_fullest(ledger, device)) == NULL)
        return true;
    if (ledger->segments.frameworks.count == 0)
        return true;
    gather(&picture);
    size_t piece_bytes = (picture.piece_count + 1) * sizeof *picture.pieces;
    size_t span_bytes = (picture.span_count + 1) * sizeof *picture.spans;
    struct layout *made = arena_alloc(arena, ledger->segments.frameworks.count * sizeof *made);
    picture.pieces = pages_alloc(piece_bytes);
    picture.spans = pages_alloc(span_bytes);
    bool done = made != NULL && picture.pieces != NULL && picture.spans != NULL;
    if (done) {
        gather(&picture);
        done =
            sort_items(picture.pieces, picture.piece_count, sizeof *picture.pieces, compare_pieces, NULL) &&
            sort_items(picture.spans, picture.span_count, sizeof *picture.spans, compare_spans, NULL);
        if (done)
            part_pieces(&picture);
        done = done && lay_out_all(&picture, limits, arena, made, count);
    }
    pages_free(picture.pieces, piece_bytes);
    pages_free(picture.spans, span_bytes);
    if (!done)
        *count = 0;
    *layouts = made;
    return done;
}
