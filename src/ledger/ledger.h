/*
 * The ledger: what is alive, what was, and who made the peak. Fed one event at a time by the recorder in the
 * traced process and, with the same events, by the reader in the command-line tool; the two must come to the
 * same answer. It knows nothing of CUDA: an event names a site (catalog/catalog.h) and a block's key
 * (ledger/event.h).
 *
 * Every event but OOM costs O(1), and TEARDOWN that for each block that it ends. For the moment of each
 * space's peak the bytes and blocks of every site are kept exactly. Not locked. No event fails its caller:
 * one that memory could not be found for is counted in counters.dropped_events.
 */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "catalog/catalog.h"
#include "ledger/event.h"
#include "ledger/layout.h"

struct ledger;

struct ledger_counters {
    uint64_t events; /* all that were applied */
    /* The driver layer's: */
    uint64_t allocs, frees, teardown_frees, failed_allocs, foreign_frees;
    uint64_t replaced_blocks; /* allocated at a living block's address: its end, never seen, is among frees */
    uint64_t dropped_events;  /* no memory to hold them, or more than there can be */
};

struct block {
    uint64_t key, size, born_ns;
    uint32_t site, context;
    uint32_t references;
};

/* Live and lifetime figures; bytes and counts. */
struct totals {
    uint64_t live_bytes, live_blocks;
    uint64_t allocs, frees, teardown_frees;
    uint64_t allocated_bytes;
    uint64_t peak_bytes, peak_time_ns; /* the highest live_bytes, and when it was first reached */
};

struct site_totals {
    struct totals totals;
    uint64_t failed;                                    /* refused allocations */
    uint64_t first_time_ns, last_time_ns;               /* of its allocations */
    uint64_t bytes_at_peak, blocks_at_peak;             /* at the moment of its space's peak */
    uint64_t bytes_at_whole_peak, blocks_at_whole_peak; /* … and of that of all devices together */
};

/* What is alive in one space is never more: no process has a thousandth of it. So no sum over sites or spaces
 * overflows, whatever a recording says; an allocation beyond counts as dropped. */
#define LEDGER_LIVE_MAX (UINT64_C(1) << 50)
/* Where all other figures stop. */
#define LEDGER_FIGURE_MAX ((uint64_t)INT64_MAX)
/* CUDA's numbers of devices are below. */
#define LEDGER_DEVICES_MAX 256

#define PEAK_PHASES_MAX 4

struct ledger_space {
    enum layer layer;
    enum space_kind kind;
    int device; /* -1 when the space is not tied to a device */
    struct totals totals;
    /* The phases that the process was in at the peak, by number: those begun last, the latest last. */
    uint32_t peak_phase_count, peak_phases[PEAK_PHASES_MAX];
};

struct share {
    uint32_t site;
    uint64_t bytes, blocks;
};

/* One allocation that the driver refused for want of memory. */
struct oom {
    uint64_t time_ns;
    uint32_t site;
    int32_t error;
    uint64_t requested_bytes, free_bytes, total_bytes;
    uint64_t live_bytes;   /* of the space that was asked */
    uint64_t driver_bytes; /* of the device that was asked: the driver layer's living device memory */
    uint32_t share_count;
    const struct share *shares; /* who held it, most bytes first */
    size_t layout_count;
    const struct layout *layouts; /* of the device that was asked: each allocator's, then */
    uint64_t
        pool_unused_bytes;  /* of that device, reserved by memory pools and in no block, as far as known */
    uint64_t context_bytes; /* of that device, what its contexts took, as far as measured */
    /* NVML's, of that device and that moment: this process's bytes, and all processes'; 0: not known. */
    uint64_t own_bytes, all_bytes;
    /* The first allocation afterwards, in the same space, of at least as much: when, 0 for none so far, and
     * how much of the space was given back between the two. */
    uint64_t granted_ns, freed_bytes;
    uint64_t ended_bytes; /* that had ended in that space by then, for the ledger's own use */
};

/* The driver's figures for one memory pool. */
struct pool_sample {
    uint64_t handle; /* the driver's, of a pool that may be gone by now */
    int device;
    uint64_t time_ns, reserved_bytes, used_bytes;
    uint64_t threshold_bytes; /* of what is unused, so much is kept when the program waits for the device */
    uint64_t peak_reserved_bytes; /* of all samples */
};

/* The driver's own figures for one device, and what was known then of who has the rest. */
struct memory_sample {
    int device;
    enum sample_reason reason;
    uint64_t time_ns, free_bytes, total_bytes;
    uint64_t tracked_bytes; /* live then, in the driver layer's device space */
    uint64_t context_bytes, code_bytes;
    uint64_t pool_unused_bytes; /* reserved by memory pools and in no block */
    uint64_t graph_bytes;       /* reserved for the memory of graphs */
};

/* What contexts, or code, have on a device. */
struct held {
    uint64_t count, bytes;
    enum basis basis;
};

/* What is known of a device beyond blocks. Each sample's figures are of one moment. */
struct device_figures {
    int device;
    struct memory_sample first, latest; /* total_bytes is 0 where there is none */
    struct memory_sample fullest;       /* the one with most tracked bytes */
    struct memory_sample last[SAMPLE_REASON_COUNT];
    struct held contexts, code;
    /* NVML's: when, 0 for never; this process's bytes, 0 where it was not listed; and all processes'. */
    uint64_t processes_ns, own_bytes, all_bytes;
};

/*
 * A phase of the program: all ranges of one name. While any of them is open, whatever thread began it, the
 * process is in it, and all that the process allocates and frees is part of it. The time from the first
 * range's begin to the last one's end is a period; mostly that is one range.
 *
 * Device memory of both layers, all devices together.
 */
struct program_phase {
    uint32_t name;   /* a string of the catalog */
    uint32_t parent; /* the number of the phase it first began in; PHASE_NONE */
    uint64_t ranges; /* that began */
    uint32_t open;   /* that have not ended */
    uint64_t periods, first_ns, time_ns;
    struct {
        uint64_t peak_bytes; /* the highest live bytes in it */
        int64_t net_bytes;   /* what was live at the ends of periods more than at their beginnings */
    } layers[LAYER_COUNT];
};

#define PHASE_NONE UINT32_MAX

/* What a site did in a phase. */
struct phase_site {
    uint32_t phase, site;
    uint64_t rise_bytes; /* the most it held above what it held at a period's beginning */
    int64_t net_bytes;
};

/* Out-of-memory moments kept in full; later ones are counted only, since a framework may retry without end.
 */
#define LEDGER_OOMS_MAX 64

/* Site ids are looked up in `catalog`, which must know every site an event names. NULL when memory ran out.
 */
struct ledger *ledger_create(struct arena *arena, const struct catalog *catalog);
/* Gives back the hash tables; the rest goes with the arena. */
void ledger_destroy(struct ledger *ledger);

/* Applies one event. For FREE, *ended (where not NULL) receives the block and true is returned when a living
 * block was found; references > 1 in it means that others remain. For any other event, true when it was
 * applied. */
bool ledger_apply(struct ledger *ledger, const struct event *event, struct block *ended);

const struct block *ledger_find(const struct ledger *ledger, uint64_t key);
/* The driver's block, or mapping, around an address of device, managed or pinned memory: its start, size,
 * site and context. False when there is none. Only for who records a framework's block: it makes a table of
 * all. */
bool ledger_around(struct ledger *ledger, uint64_t address, struct block *around);
/* Living blocks, oldest first (one whose free was taken back comes last), until `visit` returns false. */
void ledger_each_block(const struct ledger *ledger, bool (*visit)(const struct block *, void *), void *arg);

const struct ledger_counters *ledger_counters(const struct ledger *ledger);
/* Figures of a site; all zero for one that no event named. */
struct site_totals ledger_site(const struct ledger *ledger, uint32_t site);
size_t ledger_space_count(const struct ledger *ledger);
const struct ledger_space *ledger_space(const struct ledger *ledger, size_t index);
/* The device memory of the driver layer on all devices together, as a space without a device. NULL while
 * there is but one device, whose space is the whole. */
const struct ledger_space *ledger_whole(const struct ledger *ledger);

/* What a peak would have been. */
struct peak_without {
    uint64_t bytes;   /* exactly, or: at most */
    uint64_t time_ns; /* when; 0 unless exact */
    bool exact;
};

/* The peak of a space of this ledger's, had no site with without[id] held anything; by the ids of all sites
 * that an event named. It is exact in a short run, and in a long one where it is above half of the peak; but
 * for programs so irregular that their high moments could not all be kept (ledger/summits.h). bytes[id]
 * becomes what each site did hold at that moment (without all sense where it is not exact). O(sites + what
 * was kept). */
struct peak_without ledger_peak_without(const struct ledger *ledger, const struct ledger_space *space,
                                        const bool *without, uint64_t *bytes);
/* How long the two arrays are at least. */
size_t ledger_site_limit(const struct ledger *ledger);
size_t ledger_oom_count(const struct ledger *ledger);
const struct oom *ledger_oom(const struct ledger *ledger, size_t index);
/* One per device that anything is known of: all of it, and the latest sample. */
size_t ledger_memory_count(const struct ledger *ledger);
const struct device_figures *ledger_device(const struct ledger *ledger, size_t index);
const struct memory_sample *ledger_memory(const struct ledger *ledger, size_t index);
/* Living bytes of the driver layer's device space. */
uint64_t ledger_live_on(const struct ledger *ledger, int device);
/* NULL when nothing is known of that device. */
const struct device_figures *ledger_figures_of(const struct ledger *ledger, int device);
/* One per pool: the latest. In the order they were first seen. */
size_t ledger_pool_count(const struct ledger *ledger);
const struct pool_sample *ledger_pool(const struct ledger *ledger, size_t index);

size_t ledger_phase_count(const struct ledger *ledger);
struct program_phase ledger_phase(const struct ledger *ledger, size_t index);
/* What sites did in phases, in no order worth anything. */
size_t ledger_phase_site_count(const struct ledger *ledger);
struct phase_site ledger_phase_site(const struct ledger *ledger, size_t index);

/* Steps that ended: all, and those between two times, the second no earlier (about: ledger/history.h). */
uint64_t ledger_steps(const struct ledger *ledger);
uint64_t ledger_steps_between(const struct ledger *ledger, uint64_t from_ns, uint64_t to_ns);

#endif
