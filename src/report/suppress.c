/*
 * Which sites are suppressed: those that hold something at the end and have a frame that a suppression of the
 * reader's means (suppressions.h); and what CUDA's own libraries keep by design, as long as it looks like
 * that. Each frame is looked at once, however many stacks it is in.
 */
#include <string.h>

#include "report/model.h"

/*
 * Few, and only what cannot be the program's mistake: memory that a library took inside itself, not for a
 * plan, descriptor or matrix that the program asked it for (so neither cuFFT nor cuSPARSE nor cuSOLVER), and
 * that does not add up. Base names of modules begin with these.
 */
static const struct suppression built_in[] = {
    {.pattern = "libcublas.so", .reason = "cuBLAS keeps a workspace for each of its handles"},
    {.pattern = "libcublasLt.so", .reason = "cuBLASLt keeps a workspace for each of its handles"},
    {.pattern = "libcudnn", .reason = "cuDNN keeps a workspace for each of its handles"},
    {.pattern = "libnccl.so", .reason = "NCCL keeps its buffers as long as the communicator lives"},
};

#define BUILT_IN_COUNT (sizeof built_in / sizeof built_in[0])

static bool means_frame(const struct suppression *suppression, const struct frame_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct named_frame *name = &names->names[i];
        const char *const texts[] = {name->function, name->file, name->module};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            if (texts[k] && suppression_matches(suppression->pattern, texts[k]))
                return true;
    }
    return false;
}

static bool is_of_library(const struct suppression *suppression, const struct frame_names *names)
{
    const char *module = names->count ? names->names[0].module : NULL;
    return module && strncmp(base_name(module), suppression->pattern, strlen(suppression->pattern)) == 0;
}

static bool collect(struct report *report)
{
    const struct suppressions *own = report->input->suppressions;
    size_t own_count = own ? own->count : 0;
    struct suppressed *list = arena_alloc(report->arena, (own_count + BUILT_IN_COUNT) * sizeof *list);
    report->leaks.suppressed = list;
    for (size_t i = 0; list && i < own_count; i++)
        list[report->leaks.suppressed_count++].by = &own->list[i];
    for (size_t i = 0; list && i < BUILT_IN_COUNT; i++)
        list[report->leaks.suppressed_count++].by = &built_in[i];
    return list != NULL;
}

/* The first suppression that means a frame, plus one; 0: none does. */
static uint32_t find_for_frame(const struct report *report, const struct frame_names *names)
{
    for (size_t i = 0; i < report->leaks.suppressed_count; i++) {
        const struct suppression *by = report->leaks.suppressed[i].by;
        if (by->file ? means_frame(by, names) : is_of_library(by, names))
            return (uint32_t)i + 1;
    }
    return 0;
}

/* What adds up is no workspace, whoever took it. */
static bool is_steady(const struct report *report, const struct report_site *site)
{
    const struct totals *totals = &site->figures.totals;
    return !site->grows && !report_adds_up(report, totals->live_blocks, totals->frees, &site->living);
}

static void suppress(struct report *report, uint32_t index, const uint32_t *of_frame)
{
    struct report_site *site = &report->sites[index];
    uint32_t found = 0;
    for (uint32_t k = 0; site->stack && k < site->stack->count; k++) {
        uint32_t here = of_frame[site->stack->frames[k]];
        if (here && (!found || here < found))
            found = here;
    }
    struct suppressed *row = found ? &report->leaks.suppressed[found - 1] : NULL;
    if (!row || (!row->by->file && !is_steady(report, site)))
        return;
    site->suppressed = true;
    row->bytes += site->figures.totals.live_bytes;
    row->blocks += site->figures.totals.live_blocks;
    row->site_count++;
    report->leaks.suppressed_bytes += site->figures.totals.live_bytes;
    report->leaks.suppressed_blocks += site->figures.totals.live_blocks;
}

bool report_build_suppressions(struct report *report)
{
    uint32_t frames = catalog_frame_count(report->input->catalog);
    size_t bytes = ((size_t)frames + 1) * sizeof(uint32_t);
    uint32_t *of_frame = pages_alloc(bytes);
    if (!of_frame || !collect(report))
        return false;
    for (uint32_t i = 0; i < frames; i++)
        of_frame[i] = report->names[i].count ? find_for_frame(report, &report->names[i]) : 0;
    for (uint32_t i = 0; i < report->site_count; i++)
        if (report_is_leak(&report->sites[i]))
            suppress(report, i, of_frame);
    pages_free(of_frame, bytes);
    return true;
}
