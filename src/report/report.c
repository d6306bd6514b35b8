/* Builds the model: every section in turn (model.h). */
#include "report/model.h"

struct report *report_build(const struct report_input *input, struct arena *arena)
{
    struct report *report = arena_alloc(arena, sizeof *report);
    if (!report)
        return NULL;
    report->input = input;
    report->arena = arena;
#define AS_STEP(name) report_build_##name,
    static bool (*const steps[])(struct report *) = {REPORT_SECTIONS(AS_STEP)};
#undef AS_STEP
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!steps[i](report))
            return NULL;
    return report;
}
