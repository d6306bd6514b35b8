/*
 * Phases and steps that the program names (ledger.h). Costs a branch while no phase is open; then every event
 * costs O(phases open) more, and at most PHASES_ACTIVE of them are followed.
 */
#ifndef LEDGER_PHASES_H
#define LEDGER_PHASES_H

#include "ledger/internal.h"

#define PHASES_MAX       1024
#define PHASE_RANGES_MAX 1024  /* open at once */
#define PHASE_SITES_MAX  65536 /* pairs of a phase and a site */

struct phase_record {
    struct program_phase is;
    uint64_t began_ns; /* of the open period */
    uint64_t began_bytes[LAYER_COUNT];
    uint32_t number;
    UT_hash_handle hh; /* by is.name */
};

struct phase_site_record {
    struct phase_site is; /* its first two fields are the key */
    uint64_t period;      /* of the phase, when `base` was noted */
    uint64_t base;        /* what the site held at the period's beginning */
    UT_hash_handle hh;
};

/* An open range. */
struct phase_range {
    uint32_t range, phase;
};

void phases_init(struct ledger *ledger);
void phases_destroy(struct ledger *ledger);
/* False without room for another phase or range. */
bool phases_begin(struct ledger *ledger, const struct event *event);
bool phases_end(struct ledger *ledger, const struct event *event);
bool phases_step(struct ledger *ledger, const struct event *event);
/* After a site's live bytes in device memory changed, while a phase is open. */
void phases_note(struct ledger *ledger, uint32_t site, uint64_t before, uint64_t after);
/* At a new peak of a space. */
void phases_at_peak(const struct ledger *ledger, struct ledger_space *space);

/* For restore.c; NULL without memory, and for what cannot be. */
struct phase_record *phases_restore(struct ledger *ledger, const struct program_phase *phase);
struct phase_range *phases_restore_range(struct ledger *ledger, const struct phase_range *range);
struct phase_site_record *phases_restore_site(struct ledger *ledger, const struct phase_site *site);
struct history *phases_restore_steps(struct ledger *ledger);

#endif
