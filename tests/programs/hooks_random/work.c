/* Results, told apart by a digest, and the books. */
#include <stdio.h>

#include "work.h"

unsigned random_below(struct work *work, unsigned limit)
{
    work->seed = work->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((work->seed >> 33) % limit);
}

/* The n-th address or handle to appear is n, whatever its value. */
static unsigned long long order_of(struct work *work, unsigned long long value)
{
    unsigned slot = (unsigned)((value * 0x9e3779b97f4a7c15ull) >> 48) % SEEN;
    while (work->seen[slot] != 0 && work->seen[slot] != value)
        slot = (slot + 1) % SEEN;
    if (work->seen[slot] == 0) {
        if (work->seen_count > SEEN / 2)
            return 0;
        work->seen[slot] = value;
        work->order[slot] = ++work->seen_count;
    }
    return work->order[slot];
}

CUresult note(struct work *work, const char *what, CUresult rc, unsigned long long value)
{
    unsigned long long order = rc == CUDA_SUCCESS && value != 0 ? order_of(work, value) : 0;
    for (const char *at = what; *at != '\0'; at++)
        work->digest = (work->digest ^ (unsigned char)*at) * 1099511628211ull;
    work->digest = (work->digest ^ (unsigned)rc) * 1099511628211ull;
    work->digest = (work->digest ^ order) * 1099511628211ull;
    if (work->verbose)
        printf("%s %d %llu\n", what, (int)rc, order);
    return rc;
}

/* The object behind a handle may lie anywhere in the heap. */
CUresult note_handle(struct work *work, const char *what, CUresult rc, const void *handle)
{
    return note(work, handle != NULL ? what : "no handle", rc, 0);
}

/* Books */

void begin_block(struct work *work, enum family family, unsigned long long bytes)
{
    struct books *books = &work->books[family];
    books->allocs++;
    books->allocated += bytes;
    books->live += bytes;
    books->blocks++;
}

void begin_thing(struct work *work, enum family family, enum ended_by by, unsigned long long key,
                 unsigned long long bytes, int context)
{
    begin_block(work, family, bytes);
    work->things[work->thing_count++] = (struct thing){family, by, key, bytes, context};
}

void end_block(struct work *work, enum family family, unsigned long long bytes, bool teardown)
{
    struct books *books = &work->books[family];
    if (teardown)
        books->teardowns++;
    else
        books->frees++;
    books->live -= bytes;
    books->blocks--;
}

void end_thing(struct work *work, int index, bool teardown)
{
    end_block(work, work->things[index].family, work->things[index].bytes, teardown);
    work->things[index] = work->things[--work->thing_count];
}

void allocated(struct work *work, const char *what, CUresult rc, enum family family, enum ended_by by,
               unsigned long long key, unsigned long long bytes)
{
    bool outlives_contexts = family == POOL || family == GRAPH;
    note(work, what, rc, family == ARRAY || family == EXTERNAL ? 0 : key);
    if (rc == CUDA_SUCCESS)
        begin_thing(work, family, by, key, bytes, outlives_contexts ? NO_CONTEXT : work->depth);
    else
        work->books[family].failed++;
}

size_t random_size(struct work *work)
{
    switch (random_below(work, 12)) {
    case 0:
        return 0;
    case 1:
        return (size_t)1 << 45; /* more than there is */
    case 2:
        return GRANULE * (1 + random_below(work, 4));
    default:
        return 1 + random_below(work, 1 << (4 + random_below(work, 17)));
    }
}
