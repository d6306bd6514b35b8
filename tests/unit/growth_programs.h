/*
 * Programs made up at random, of which it is known whether their first site grows. Each is a run of 5 ms to 6
 * days with three sites: the one it is about (GROWTH_SUBJECT), weights that are allocated at the start and
 * stay, and activations that come and go in turns. Equal seeds give equal programs.
 */
#ifndef UNIT_GROWTH_PROGRAMS_H
#define UNIT_GROWTH_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWTH_SUBJECT, GROWTH_WEIGHTS, GROWTH_ACTIVATIONS, GROWTH_SITES };

struct growth_step {
    uint64_t time_ns;
    uint32_t block; /* number, from 0; a block's first step allocates it, its second one frees it */
    uint32_t site;
    uint64_t size;
    bool frees;
};

struct growth_program {
    const char *kind;
    bool grows;
    uint64_t duration_ns;
    size_t count;
    struct growth_step *steps; /* in order of time */
};

size_t growth_kinds(void);
void growth_program_make(struct growth_program *program, size_t kind, uint64_t seed);
void growth_program_free(struct growth_program *program);

#endif
