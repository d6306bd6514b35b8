/*
 * The model behind a report: everything that any output prints, computed once by report_build(). One file a
 * section fills its part in (REPORT_SECTIONS, in this order: later ones read earlier ones); outputs only
 * read. Everything lives in the report's arena.
 *
 * A site's number in a report is its index in `sites`, which leaves out sites that nothing ever happened at;
 * catalog ids stay inside this module.
 */
#ifndef REPORT_MODEL_H
#define REPORT_MODEL_H

#include "ledger/growth.h"
#include "report/frames.h"
#include "report/report.h"
#include "report/suppressions.h"

#define REPORT_NONE UINT32_MAX

/* X(name): bool report_build_NAME(struct report *), false when memory ran out. */
#define REPORT_SECTIONS(X)                                                                                   \
    X(sites)                                                                                                 \
    X(living)                                                                                                \
    X(names)                                                                                                 \
    X(texts)                                                                                                 \
    X(titles)                                                                                                \
    X(spaces)                                                                                                \
    X(growth)                                                                                                \
    X(suppressions)                                                                                          \
    X(leaks)                                                                                                 \
    X(phases)                                                                                                \
    X(peaks)                                                                                                 \
    X(fragmentation)                                                                                         \
    X(frameworks)                                                                                            \
    X(ooms)                                                                                                  \
    X(memory_map)                                                                                            \
    X(notes)

/* The living blocks of a site. */
struct living {
    uint64_t smallest, largest; /* bytes */
    uint64_t oldest_ns, newest_ns;
};

struct report_site {
    uint32_t catalog_id;
    const struct site_key *key;
    const char *api;
    const struct stack *stack; /* NULL: none was taken */
    enum layer layer;
    bool owned, suppressed;
    bool grows;
    bool has_python; /* frames */
    bool is_cached;  /* asked for by PyTorch's caching allocator */
    struct site_totals figures;
    struct living living;
    uint32_t title_frame;            /* catalog id; CATALOG_NONE without a stack */
    uint32_t line;                   /* number of its line of code: sites of one title share it */
    uint32_t caller_frame;           /* the next frame outwards of the reader's own; CATALOG_NONE: none */
    const struct named_frame *title; /* NULL without a stack */
};

/* Part of a whole that one site holds. */
struct holding {
    uint32_t site; /* index in `sites` */
    uint64_t bytes, blocks;
};

/* Why a line of code is worth a look, the best reason first. X(symbol, name in JSON) */
#define REASONS(X)                                                                                           \
    X(GREW, "grew")       /* a site of it grows (ledger/growth.h) */                                         \
    X(ADDS_UP, "adds_up") /* added to through most of the run, nothing given back */                         \
    X(LATE, "late")       /* allocated in the second half of the run, nothing given back */                  \
    X(MANY, "many")       /* many blocks */                                                                  \
    X(REST, "rest")

#define AS_REASON(symbol, name) REASON_##symbol,
enum reason { REASONS(AS_REASON) REASON_COUNT };
#undef AS_REASON

extern const char *const reason_names[REASON_COUNT];

/* What all sites with one title hold together: one line of the reader's code. */
struct source_line {
    uint32_t line; /* number */
    uint32_t site; /* its biggest */
    uint32_t site_count;
    uint64_t bytes, blocks;
    uint64_t allocs, frees;
    struct living living;
    enum reason reason;
};

struct line_list {
    size_t count;
    const struct source_line *lines; /* most bytes first */
};

/* What one suppression hides from the leaks. */
struct suppressed {
    const struct suppression *by;
    uint64_t bytes, blocks;
    size_t site_count; /* may be 0 */
};

struct leaks {
    uint64_t live_bytes, live_blocks; /* without what is suppressed */
    uint64_t suppressed_bytes, suppressed_blocks;
    size_t count;
    const uint32_t *sites;                      /* most bytes first */
    struct line_list lines;                     /* by reason, then most bytes first */
    uint64_t framework_bytes, framework_blocks; /* of frameworks' allocators: inside the driver's blocks */
    struct line_list framework_lines;           /* the same of those */
    size_t suppressed_count;
    struct suppressed *suppressed; /* one a suppression, in the order in which they are tried */
};

/* One of the lines that would have to go for a peak to be lower. */
struct fall_line {
    uint32_t line, site; /* its biggest site, then */
    uint64_t bytes;      /* that it held at the moment for which it was taken: the peak, or what is highest
                          * without the lines before it */
};

/* What would have to go for a peak to be so much lower: no line of these can be spared. */
struct peak_fall {
    unsigned percent;
    uint64_t target_bytes; /* the most that is so much lower */
    size_t line_count;
    const struct fall_line *lines;
    struct peak_without then; /* the peak without them */
    bool enough;              /* false when it could not be found out, and more may have to go */
};

/* Percent. X(percent) */
#define PEAK_FALLS(X)                                                                                        \
    X(10)                                                                                                    \
    X(25)
#define AS_ONE(percent)  +1
#define PEAK_FALL_COUNT  (0 PEAK_FALLS(AS_ONE))
#define PEAK_LINES_ASKED 20 /* lines of a peak for which it is found out what it would have been without */

struct peak {
    const struct ledger_space *space;
    size_t count;
    const struct holding *holdings; /* most bytes first */
    struct line_list lines;
    size_t without_count;
    const struct peak_without *without; /* each of the first lines */
    struct peak_fall falls[PEAK_FALL_COUNT];
};

#define PHASE_DEPTH_MAX 8

struct named_phase {
    uint32_t number; /* the ledger's */
    const char *name;
    unsigned depth; /* of nesting, up to PHASE_DEPTH_MAX */
    struct program_phase is;
    size_t site_count;
    const struct phase_site *sites; /* by index in the report's sites; the highest rise first */
};

struct fragmentation {
    int device;
    uint64_t granule_bytes;
    uint64_t live_bytes;      /* owned blocks in device space */
    uint64_t footprint_bytes; /* the granules that they touch */
    uint64_t waste_bytes;
    uint64_t unpooled_waste_bytes; /* of it, of memory that comes from no pool */
    uint64_t pool_rounding_bytes;  /* what pools call used beyond the blocks that live in them */
    size_t pool_count;
    const struct pool_sample **pools;
    size_t layout_count, peak_layout_count;
    const struct layout *layouts;      /* of frameworks' allocators, now */
    const struct layout *peak_layouts; /* … and at the device's fullest moment */
};

/* A site that grows, or several of one line of code that grow together. */
struct growing {
    uint32_t site; /* index in `sites`; of several, the one that holds most */
    size_t site_count;
    const uint32_t *sites;
    struct growth growth;
    uint64_t steps;        /* that the program counted during it; 0: too few to say anything */
    bool exhausted_known;  /* device memory, and the driver said how much of it is free */
    uint64_t exhausted_ns; /* from the end of the run until the device is full, by this growth alone */
};

/* Why a request was refused. X(symbol, name in JSON) */
#define OOM_CAUSES(X)                                                                                        \
    X(UNKNOWN, "unknown")       /* the driver did not say how much was free */                               \
    X(HOST, "host")             /* host memory was asked for, not the device's */                            \
    X(TOO_LARGE, "too_large")   /* more than the whole device has */                                         \
    X(OWN_LIMIT, "own_limit")   /* the framework refused it itself: the driver was not in want */            \
    X(LIMIT, "limit")           /* the driver had enough and refused: a limit, or no single range */         \
    X(CACHED, "cached")         /* what this process's caches would give back would have been enough */      \
    X(FRAGMENTED, "fragmented") /* what is free in its caches would, were it not in pieces */                \
    X(ELSEWHERE, "elsewhere")   /* what this process did not allocate is in the way */                       \
    X(FULL, "full")

#define AS_CAUSE(symbol, name) OOM_##symbol,
enum oom_cause { OOM_CAUSES(AS_CAUSE) OOM_CAUSE_COUNT };
#undef AS_CAUSE

extern const char *const oom_cause_names[OOM_CAUSE_COUNT];

/* What became of a refused request. X(symbol, name in JSON) */
#define OOM_OUTCOMES(X)                                                                                      \
    X(GRANTED, "granted") /* as much, of the same memory, was granted later */                               \
    X(WENT_ON, "went_on") /* only smaller requests were */                                                   \
    X(ENDED, "ended")     /* none was */

#define AS_OUTCOME(symbol, name) OOM_##symbol,
enum oom_outcome { OOM_OUTCOMES(AS_OUTCOME) OOM_OUTCOME_COUNT };
#undef AS_OUTCOME

extern const char *const oom_outcome_names[OOM_OUTCOME_COUNT];

struct out_of_memory {
    const struct oom *oom;
    uint32_t site; /* index in `sites` */
    size_t count;
    const struct holding *holdings;
    struct line_list lines;
    /* In the caches of frameworks: what they would give back, and what is free and they would not. */
    uint64_t releasable_bytes, stranded_bytes;
    uint64_t elsewhere_bytes; /* in use on the device, and in no block or memory pool of this process */
    bool largest_known;
    uint64_t largest_bytes; /* the most that would have been granted at that moment */
    enum oom_cause cause;
    enum oom_outcome outcome;
    const char *verdict; /* one sentence */
    const char *advice;  /* what to try; NULL: nothing to say */
};

/* Who has the memory of one device. */
struct device_memory {
    const struct device_figures *figures;
    const struct memory_sample *sample; /* the last; no figures where its total is 0 */
    uint64_t tracked_bytes;             /* live in device space at the end */
    bool is_current;                    /* the sample is of the end: what follows from it is known */
    bool context_known, code_known, others_known;
    bool was_cut; /* the parts measured came to more than there was */
    /* Parts of what is used beyond tracked_bytes; those not known are in the last one. */
    uint64_t pool_unused_bytes, graph_bytes, context_bytes, code_bytes, rounding_bytes, others_bytes;
    uint64_t untracked_bytes;
};

struct report {
    const struct report_input *input;
    struct arena *arena;
    uint64_t end_ns;    /* the run's length as far as known: no time in the report is beyond it */
    uint64_t worked_ns; /* of it, until the program stopped allocating (ledger/growth.h: growth_end) */

    size_t site_count;
    struct report_site *sites;
    uint32_t *site_of_catalog; /* by catalog id; REPORT_NONE: not listed */
    uint32_t line_count;       /* of all sites */

    struct frame_names *names;          /* by catalog frame id */
    const struct named_frame **scratch; /* room for the longest stack; see report_stack() */
    struct frame_texts *texts;          /* json_frames.c's own */

    size_t space_count;
    const struct ledger_space **spaces; /* the driver layer's */
    struct leaks leaks;
    size_t phase_count;
    struct named_phase *phases; /* each behind the one that it first began in */
    size_t peak_count;
    struct peak *peaks; /* one a space whose peak is above 0 */
    size_t framework_peak_count;
    struct peak *framework_peaks; /* the same of the frameworks' layer: tensors */
    struct peak *whole_peak;      /* of all devices together; NULL where there are not several */
    size_t fragmentation_count;
    struct fragmentation *fragmentation; /* one a device that ever had device memory */
    size_t growing_count;
    struct growing *growing; /* sites by themselves, most bytes per second first */
    size_t growing_line_count;
    struct growing *growing_lines; /* the same by line: what is in `growing`, summed or as it is, and more */
    size_t oom_count;
    struct out_of_memory *ooms;
    size_t memory_count;
    struct device_memory *memory; /* one a device the driver was asked about */
    size_t note_count;
    const char **notes;
};

#define AS_PROTOTYPE(name) bool report_build_##name(struct report *report);
REPORT_SECTIONS(AS_PROTOTYPE)
#undef AS_PROTOTYPE

/* growth.c: how a site grows; NULL where it does not. */
const struct growing *report_growing(const struct report *report, uint32_t site);

/* names.c: the frames of a stack under all their names, innermost first. Good until the next call. */
const struct named_frame *const *report_stack(const struct report *report, const struct stack *stack,
                                              size_t *count);
/* The first frame of that kind that is the reader's own, innermost first; NULL: none. */
const struct named_frame *report_own_frame(const struct report *report, const struct stack *stack,
                                           enum frame_kind kind);

/* lines.c: sums `count` holdings by title; `by_reason`, the best reason comes first. False: memory ran out.
 */
bool report_sum_lines(struct report *report, const struct holding *holdings, size_t count, bool by_reason,
                      struct line_list *lines);
bool report_adds_up(const struct report *report, uint64_t blocks, uint64_t frees,
                    const struct living *living);

/* leaks.c: holds memory of the driver's at the end that counts as this process's. */
bool report_is_leak(const struct report_site *site);

/* holdings.c: what `of_site` says yes to, most bytes first; it fills bytes and blocks. False: memory ran out.
 */
bool report_collect(struct report *report,
                    bool (*of_site)(const struct report_site *, const void *, struct holding *),
                    const void *arg, const struct holding **holdings, size_t *count);

/* peaks.c: the peak that matters most: of memory on a device if there is any, and the highest. NULL: there is
 * none. */
const struct peak *report_main_peak(const struct report *report);
/* Whether a site's blocks are in the space, which may be the whole of all devices. */
bool report_is_in(const struct report_site *site, const struct ledger_space *space);
/* peak_falls.c: fills in `without` and `falls` of a peak that has its lines. False: memory ran out. */
bool report_find_falls(struct report *report, struct peak *peak);

/* oom_verdict.c: what other processes had then, where own_bytes is known. */
uint64_t report_oom_others(const struct oom *oom);
/* oom_verdict.c: fills in everything from `releasable_bytes` on but the outcome. `before` is the one before
 * it, or NULL. False: memory ran out. */
bool report_judge_oom(struct report *report, struct out_of_memory *row, const struct out_of_memory *before);

/* memory_map.c: in use at a moment, and in none of the parts that a sample tells. */
uint64_t report_rest_of(const struct memory_sample *sample);

/* allocators.c: a framework's allocator by the id of its name. */
struct allocator_words {
    const char *name;
    const char *release; /* how a program gives back what is releasable; NULL: unknown */
};
struct allocator_words report_allocator(const struct report *report, uint32_t string);

/* pinner_lines.c: what a line of code strands in a layout. Fills the first of up to `max` lines, most
 * stranded bytes first, and returns how many. */
struct pinner_line {
    uint32_t site; /* index in `sites`: the one that strands most */
    uint64_t stranded_bytes, blocks;
};
size_t report_pinner_lines(const struct report *report, const struct layout *layout,
                           struct pinner_line *lines, size_t max);

/* frameworks.c: that of one allocator; NULL: it has none. */
const struct layout *report_layout_of(const struct layout *layouts, size_t count, uint32_t allocator);

/* spaces.c: "device 0", "pinned host memory". */
struct words;
void words_space(struct words *words, enum space_kind kind, int device);

/* phases.c: a phase's name by the ledger's number, and several: "epoch / forward". */
const char *report_phase_name(const struct report *report, uint32_t number);
void words_phases(struct words *words, const struct report *report, const uint32_t *phases, uint32_t count);

#endif
