/* Frameworks' allocators by the names that their users know them by. */
#include <string.h>

#include "report/model.h"

static const struct {
    const char *name;
    struct allocator_words words;
} known[] = {
    {"pytorch", {.name = "PyTorch", .release = "torch.cuda.empty_cache()"}},
};

struct allocator_words report_allocator(const struct report *report, uint32_t string)
{
    const char *name = catalog_string(report->input->catalog, string);
    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].words;
    return (struct allocator_words){.name = name && name[0] ? name : "(no name)"};
}
