/* Code in device memory (code.h): a list of what is loaded where. */
#include "code.h"

#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u /* __fatBinC_Wrapper_t of fatbinary_section.h */
#define FATBIN_MAGIC  0xba55ed50u

struct wrapper {
    uint32_t magic, version;
    const void *data, *name;
};

struct fat_header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* behind the header */
};

struct elf_header { /* ELFCLASS64 */
    unsigned char ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, segments, sections;
    uint32_t flags;
    uint16_t header_bytes, segment_bytes, segment_count, section_bytes, section_count, names;
};

struct loaded {
    const void *owner;
    struct context *context;
    uint64_t granules;
    struct loaded *next;
};

static struct loaded *all;

/* An image may be a text of fewer characters than a number has. */
static bool begins_with(const void *image, uint32_t magic)
{
    return strncmp(image, (const char *)&magic, sizeof magic) == 0;
}

uint64_t code_image_bytes(const void *image)
{
    if (begins_with(image, WRAPPER_MAGIC))
        image = ((const struct wrapper *)image)->data;
    if (begins_with(image, FATBIN_MAGIC)) {
        const struct fat_header *header = image;
        return header->header_bytes + header->bytes;
    }
    if (strncmp(image, "\177ELF", 4) == 0) {
        const struct elf_header *header = image;
        return header->sections + (uint64_t)header->section_bytes * header->section_count;
    }
    return strlen(image);
}

bool code_is_lazy(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    return !mode || strcmp(mode, "EAGER") != 0;
}

CUresult code_load(const void *owner, uint64_t bytes, struct context *context)
{
    for (const struct loaded *known = all; known; known = known->next)
        if (known->owner == owner && known->context == context)
            return CUDA_SUCCESS;
    struct loaded *loaded = malloc(sizeof *loaded);
    uint64_t granules = round_up(bytes, GRANULE) / GRANULE;
    if (!loaded || !physical_take(context->device, granules)) {
        free(loaded);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *loaded = (struct loaded){owner, context, granules, all};
    all = loaded;
    return CUDA_SUCCESS;
}

static void end(const void *owner, const struct context *context)
{
    for (struct loaded **at = &all; *at;) {
        struct loaded *loaded = *at;
        if (loaded->owner != owner && loaded->context != context) {
            at = &loaded->next;
            continue;
        }
        physical_give(loaded->context->device, loaded->granules);
        *at = loaded->next;
        free(loaded);
    }
}

void code_end(const void *owner)
{
    end(owner, NULL);
}

void code_end_in(const struct context *context)
{
    end(NULL, context);
}
