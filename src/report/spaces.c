/* The driver layer's spaces. A framework's blocks lie inside the driver's and have no row of their own. */
#include "report/model.h"
#include "report/words.h"

bool report_build_spaces(struct report *report)
{
    size_t known = ledger_space_count(report->input->ledger);
    report->spaces = arena_alloc(report->arena, (known + 1) * sizeof *report->spaces);
    if (!report->spaces)
        return false;
    for (size_t i = 0; i < known; i++) {
        const struct ledger_space *space = ledger_space(report->input->ledger, i);
        if (space->layer == LAYER_DRIVER)
            report->spaces[report->space_count++] = space;
    }
    return true;
}

/* What people call them. */
void words_space(struct words *words, enum space_kind kind, int device)
{
    static const char *const names[SPACE_COUNT] = {
        [SPACE_DEVICE] = "device",
        [SPACE_MANAGED] = "managed, device",
        [SPACE_PINNED] = "pinned host memory",
        [SPACE_REGISTERED] = "registered host memory",
        [SPACE_HOST] = "host memory of CUDA",
        [SPACE_GRAPH] = "CUDA graphs, device",
        [SPACE_FOREIGN] = "from elsewhere, device",
    };
    if (kind == SPACE_DEVICE && device < 0) {
        words_add(words, "all devices");
        return;
    }
    words_add(words, "%s", (size_t)kind < SPACE_COUNT ? names[kind] : "?");
    if (device >= 0)
        words_add(words, " %d", device);
}
