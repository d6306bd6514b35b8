/*
 * Why a request was refused, and what to try, from the figures of that moment. A verdict claims no more than
 * they carry, and the first that explains the refusal is taken: what costs the reader least comes first.
 */
#include <string.h>

#include "report/model.h"
#include "report/words.h"

/* What a real device maps memory in: of what is free, whole ones can be asked for. */
#define GRANULE (UINT64_C(2) << 20)
/* A framework tells of the refusal that made it give up this soon after the driver's. */
#define SAME_MOMENT_NS UINT64_C(1000000000)
/* Contexts and code take some of every device: only more than this part of it is somebody's. */
#define SOMEBODYS_PART 16

/* Everything that a verdict needs, in one place. */
struct moment {
    const struct report *report;
    const struct out_of_memory *row;
    const struct oom *oom;
    const struct report_site *site;
    uint64_t wanted; /* of the driver */
    uint64_t used, missing, unused_in_pools;
    uint64_t at_start; /* of `elsewhere_bytes`, in use before this process's first allocation */
    const char *cache; /* the framework whose cache it is; NULL without one */
    bool asked_by_framework, asked_by_cache; /* a framework gave up; its cache asked the driver */
    bool driver_refused;
};

static bool is_on_host(const struct report_site *site)
{
    return !space_infos[site->key->space].per_device;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

static uint64_t used_at_start(const struct report *report, int device)
{
    const struct device_figures *figures = ledger_figures_of(report->input->ledger, device);
    const struct memory_sample *first = figures ? &figures->first : NULL;
    if (!first)
        return 0;
    uint64_t own = first->reason == SAMPLE_START ? figures->contexts.bytes : 0; /* made since then */
    return less(first->total_bytes, first->free_bytes + first->tracked_bytes) + own;
}

/* A framework asks the driver for more than was asked of it, a whole segment: the refusal of that comes just
 * before its own. NULL when it was not asked. */
static const struct oom *refusal_behind(const struct report *report, const struct out_of_memory *row,
                                        const struct out_of_memory *before)
{
    const struct report_site *site = &report->sites[row->site];
    bool follows = before && site->layer == LAYER_FRAMEWORK &&
                   report->sites[before->site].layer == LAYER_DRIVER &&
                   report->sites[before->site].key->device == site->key->device &&
                   row->oom->time_ns - before->oom->time_ns <= SAME_MOMENT_NS;
    return follows ? before->oom : NULL;
}

static struct moment look_at(const struct report *report, const struct out_of_memory *row,
                             const struct out_of_memory *before)
{
    const struct oom *oom = row->oom, *behind = refusal_behind(report, row, before);
    const struct report_site *site = &report->sites[row->site];
    uint64_t wanted = behind && behind->requested_bytes > oom->requested_bytes ? behind->requested_bytes
                                                                               : oom->requested_bytes;
    struct moment moment = {
        .report = report,
        .row = row,
        .oom = oom,
        .site = site,
        .used = less(oom->total_bytes, oom->free_bytes),
        .wanted = wanted,
        .missing = less(wanted, oom->free_bytes),
        /* The pool that was asked looked there itself. */
        .unused_in_pools = site->key->family == FAMILY_POOL ? 0 : oom->pool_unused_bytes,
        .at_start = used_at_start(report, site->key->device),
        .asked_by_framework = site->layer == LAYER_FRAMEWORK,
        .driver_refused = site->layer == LAYER_DRIVER || behind,
        .asked_by_cache = site->is_cached,
    };
    if (oom->layout_count == 1)
        moment.cache = report_allocator(report, oom->layouts[0].allocator).name;
    else if (oom->layout_count > 1)
        moment.cache = "the frameworks";
    return moment;
}

/* Who has the rest is the cause where the request would have fitted without it, or where it is most of all.
 * This process's own contexts are the cause only in the second case: it cannot do without one. */
static bool is_elsewhere(const struct moment *moment)
{
    const struct oom *oom = moment->oom;
    uint64_t ours = oom->driver_bytes + oom->pool_unused_bytes, elsewhere = moment->row->elsewhere_bytes;
    bool would_fit = moment->wanted <= less(oom->total_bytes, ours);
    uint64_t counted = elsewhere > ours ? elsewhere : would_fit ? less(elsewhere, oom->context_bytes) : 0;
    return counted >= moment->missing && counted > oom->total_bytes / SOMEBODYS_PART;
}

static enum oom_cause find_cause(const struct moment *moment)
{
    const struct oom *oom = moment->oom;
    const struct out_of_memory *row = moment->row;
    if (is_on_host(moment->site))
        return OOM_HOST;
    if (oom->total_bytes == 0)
        return OOM_UNKNOWN;
    if (oom->requested_bytes > oom->total_bytes)
        return OOM_TOO_LARGE;
    if (moment->missing == 0)
        return moment->driver_refused ? OOM_LIMIT : OOM_OWN_LIMIT;
    uint64_t given_back = moment->unused_in_pools + (moment->asked_by_framework ? 0 : row->releasable_bytes);
    if (moment->missing <= given_back && !moment->asked_by_framework)
        return OOM_CACHED;
    if (moment->missing <= given_back + row->releasable_bytes + row->stranded_bytes && row->stranded_bytes)
        return OOM_FRAGMENTED;
    if (is_elsewhere(moment))
        return OOM_ELSEWHERE;
    return OOM_FULL;
}

static void size_of(struct words *words, const char *before, uint64_t bytes, const char *after)
{
    words_add(words, "%s", before);
    words_size(words, bytes);
    words_add(words, "%s", after);
}

static void say_unknown(struct words *words, const struct moment *moment)
{
    size_of(words, "Unknown: the driver did not say how much was free. This process held ",
            moment->oom->live_bytes, "");
}

static void say_host(struct words *words, const struct moment *moment)
{
    size_of(words, "The system refused host memory, not the device. This process held ",
            moment->oom->live_bytes, " of this kind");
}

static void say_too_large(struct words *words, const struct moment *moment)
{
    size_of(words, "More than the whole device has (", moment->oom->total_bytes, "): it could never succeed");
}

static void say_own_limit(struct words *words, const struct moment *moment)
{
    const char *name = report_allocator(moment->report, moment->site->key->api).name;
    words_add(words, "Refused by %s itself, not by the device: ", name);
    size_of(words, "", moment->oom->free_bytes, " were free, enough for it; a limit of its own was reached");
}

static void say_limit(struct words *words, const struct moment *moment)
{
    size_of(words, "Not full: ", moment->oom->free_bytes,
            " were free, enough for it. Either no single free range was that large (fragmentation), or a "
            "limit was reached");
}

static void say_cached(struct words *words, const struct moment *moment)
{
    bool pools = moment->unused_in_pools > 0, cache = moment->row->releasable_bytes > 0;
    size_of(words, "Cached in this process: with ", moment->missing, " more it would have fitted, and ");
    if (cache) {
        words_size(words, moment->row->releasable_bytes);
        words_add(words, " were reserved by %s but unallocated", moment->cache);
    }
    if (pools)
        size_of(words, cache ? ", " : "", moment->unused_in_pools, " were kept by memory pools, unused");
}

static void say_fragmented(struct words *words, const struct moment *moment)
{
    const struct out_of_memory *row = moment->row;
    uint64_t largest = 0;
    for (size_t i = 0; i < moment->oom->layout_count; i++)
        if (moment->oom->layouts[i].largest_free_bytes > largest)
            largest = moment->oom->layouts[i].largest_free_bytes;
    size_of(words, "Fragmented: ", row->releasable_bytes + row->stranded_bytes, "");
    words_add(words, " were reserved by %s but unallocated", moment->cache);
    size_of(words, ", in pieces of at most ", largest, "");
    size_of(words, "; living blocks strand ", row->stranded_bytes, " of it");
}

uint64_t report_oom_others(const struct oom *oom)
{
    return less(oom->all_bytes, oom->own_bytes);
}

static void say_elsewhere(struct words *words, const struct moment *moment)
{
    uint64_t elsewhere = moment->row->elsewhere_bytes;
    size_of(words, "Mostly not this process's doing: of ", moment->used, "");
    size_of(words, " in use its recorded allocations are ", moment->oom->driver_bytes, "");
    words_add(words, "; other processes");
    if (moment->oom->own_bytes)
        size_of(words, " (", report_oom_others(moment->oom), ")");
    words_add(words, ", contexts");
    if (moment->oom->context_bytes)
        size_of(words, " (", moment->oom->context_bytes, ")");
    size_of(words, " or untracked memory hold ", elsewhere, "");
    if (moment->at_start && moment->at_start <= elsewhere)
        size_of(words, ", ", moment->at_start, " of it since before its first allocation");
}

static void say_full(struct words *words, const struct moment *moment)
{
    const struct oom *oom = moment->oom;
    size_of(words, "Really full: ", moment->missing, " were missing. Of ");
    words_size(words, moment->used);
    size_of(words, " in use, ", oom->driver_bytes < moment->used ? oom->driver_bytes : moment->used,
            " are this process's allocations");
}

#define EXPANDABLE "In PyTorch, try expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF"

/* Each advice stands alone. */
static const struct {
    void (*say)(struct words *, const struct moment *);
    const char *advice;
} causes[OOM_CAUSE_COUNT] = {
    [OOM_UNKNOWN] = {say_unknown, "Look at what this process held, and at nvidia-smi for what others hold."},
    [OOM_HOST] = {say_host, "Pin less (fewer DataLoader workers, a lower prefetch factor); look at free -h, "
                            "ulimit -l and the memory limit of the container."},
    [OOM_TOO_LARGE] = {say_too_large,
                       "Look at the size that was computed: the batch, a shape, an index or an overflow."},
    [OOM_OWN_LIMIT] = {say_own_limit, "Look for torch.cuda.set_per_process_memory_fraction() and for "
                                      "per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF."},
    [OOM_LIMIT] = {say_limit, "Look for a limit: a memory pool's maxSize, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "
                              "MIG. " EXPANDABLE "."},
    [OOM_CACHED] = {say_cached, "Have it given back first: torch.cuda.empty_cache(), and cuMemPoolTrimTo() "
                                "for memory pools."},
    [OOM_FRAGMENTED] = {say_fragmented, EXPANDABLE ", and allocate what lives long before what comes and "
                                                   "goes; the report names the lines that strand most."},
    [OOM_ELSEWHERE] = {say_elsewhere, "Look at nvidia-smi for other processes on this device, and at "
                                      "contexts and libraries of this one (NCCL, cuBLAS)."},
    [OOM_FULL] = {say_full, "Free what the lines below hold before this one runs, or ask for less: a "
                            "smaller batch, activation checkpointing."},
};

static const char asks_again[] =
    "PyTorch empties its cache and asks again by itself, which costs time whenever it happens: try "
    "expandable_segments:True or garbage_collection_threshold in PYTORCH_CUDA_ALLOC_CONF.";

static const char trim_pools[] =
    "Have it given back first, by cuMemPoolTrimTo() (cudaMemPoolTrimTo), or let the "
    "pool keep less: its release threshold.";

/* The usual way to run out twice. */
static const char still_held[] =
    "Nothing was freed since the refusal before this one. An exception that is being handled keeps the "
    "frames of the "
    "step that failed, and their tensors: leave the except block before trying again.";

/* Where the same memory was refused to the same layer before; NULL: it was not. Others' refusals may lie
 * between. The one that is judged is not among the report's yet. */
static const struct oom *refused_before(const struct moment *moment)
{
    const struct report *report = moment->report;
    for (size_t i = report->oom_count; i-- > 0;) {
        const struct report_site *site = &report->sites[report->ooms[i].site];
        if (site->layer == moment->site->layer && site->key->space == moment->site->key->space &&
            site->key->device == moment->site->key->device)
            return report->ooms[i].oom;
    }
    return NULL;
}

/* The program tries with less, and what the first try took is still there. */
static bool is_after_a_refusal(const struct moment *moment)
{
    const struct oom *before = refused_before(moment);
    return before && before->ended_bytes == moment->oom->ended_bytes && before->live_bytes > 0 &&
           moment->oom->time_ns - before->time_ns <= SAME_MOMENT_NS &&
           moment->oom->requested_bytes < before->requested_bytes;
}

static const char *find_advice(const struct moment *moment, enum oom_cause cause)
{
    if (cause == OOM_CACHED && moment->asked_by_cache)
        return asks_again;
    if (cause == OOM_CACHED && moment->row->releasable_bytes == 0)
        return trim_pools;
    if (cause == OOM_FULL && is_after_a_refusal(moment))
        return still_held;
    return causes[cause].advice;
}

/* The most that would have been granted: what the driver had free, and to who asks a framework, the largest
 * free block of its cache. */
static void find_largest(const struct moment *moment, struct out_of_memory *row)
{
    row->largest_known = !is_on_host(moment->site) && moment->oom->total_bytes && row->cause != OOM_LIMIT &&
                         row->cause != OOM_OWN_LIMIT;
    if (!row->largest_known)
        return;
    uint64_t room = moment->oom->free_bytes;
    if (moment->site->key->family == FAMILY_POOL)
        room += moment->oom->pool_unused_bytes;
    row->largest_bytes = room / GRANULE * GRANULE;
    for (size_t i = 0; moment->asked_by_framework && i < moment->oom->layout_count; i++) {
        const struct layout *layout = &moment->oom->layouts[i];
        if (layout->allocator == moment->site->key->api && layout->largest_free_bytes > row->largest_bytes)
            row->largest_bytes = layout->largest_free_bytes;
    }
}

bool report_judge_oom(struct report *report, struct out_of_memory *row, const struct out_of_memory *before)
{
    const struct oom *oom = row->oom;
    for (size_t i = 0; i < oom->layout_count; i++) {
        row->releasable_bytes += oom->layouts[i].releasable_bytes;
        row->stranded_bytes += oom->layouts[i].stranded_bytes;
    }
    struct moment moment = look_at(report, row, before);
    row->elsewhere_bytes = less(moment.used, oom->driver_bytes + oom->pool_unused_bytes);
    row->cause = find_cause(&moment);
    find_largest(&moment, row);
    struct words words = {0};
    causes[row->cause].say(&words, &moment);
    words_add(&words, ".");
    row->verdict = words_keep(&words, report->arena);
    row->advice = find_advice(&moment, row->cause);
    return row->verdict != NULL;
}
