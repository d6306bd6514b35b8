/* External memory, here a file in memory: imported, mapped as buffers and mipmaps, and let go, in any order.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

#define FILE_BYTES (8u << 20)

void external_start(struct work *work)
{
    work->external_file = memfd_create("external", MFD_CLOEXEC);
    if (work->external_file < 0 || ftruncate(work->external_file, FILE_BYTES) != 0)
        abort();
}

/* The driver owns the descriptor from a successful import on. */
static void import_memory(struct work *work, struct external *external)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC of = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                           .handle.fd = dup(work->external_file),
                                           .size = random_below(work, 8) ? FILE_BYTES : 2 * FILE_BYTES};
    CUresult rc = cuImportExternalMemory(&external->memory, &of);
    note_handle(work, "import external memory", rc, external->memory);
    external->context = work->depth;
    if (rc != CUDA_SUCCESS)
        close(of.handle.fd);
}

static void map_buffer(struct work *work, const struct external *external)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC of = {.offset = 4096 * random_below(work, FILE_BYTES / 4096),
                                           .size = random_below(work, FILE_BYTES / 2)};
    CUdeviceptr address = 0;
    CUresult rc = cuExternalMemoryGetMappedBuffer(&address, external->memory, &of);
    allocated(work, "map a buffer", rc, EXTERNAL, BY_FREE, address, of.size);
}

/* Of 64 × 64, halved from level to level. */
static void map_mipmap(struct work *work, const struct external *external)
{
    unsigned levels = 1 + random_below(work, 4);
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC of = {
        .offset = 4096 * random_below(work, FILE_BYTES / 4096),
        .arrayDesc = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1},
        .numLevels = levels};
    unsigned long long bytes = 0;
    CUmipmappedArray array = NULL;
    for (unsigned level = 0; level < levels; level++)
        bytes += (64ull >> level) * (64 >> level) * 4;
    CUresult rc = cuExternalMemoryGetMappedMipmappedArray(&array, external->memory, &of);
    allocated(work, "map a mipmap", rc, EXTERNAL, BY_MIPMAP_DESTROY, (uintptr_t)array, bytes);
}

void change_external(struct work *work)
{
    struct external *external = &work->externals[random_below(work, EXTERNALS)];
    if (external->memory == NULL) {
        import_memory(work, external);
    } else if (random_below(work, 6) == 0) {
        note(work, "let external memory go", cuDestroyExternalMemory(external->memory), 0);
        external->memory = NULL;
    } else if (random_below(work, 2)) {
        map_buffer(work, external);
    } else {
        map_mipmap(work, external);
    }
}

void external_context_ended(struct work *work, int context)
{
    for (unsigned i = 0; i < EXTERNALS; i++) {
        if (work->externals[i].context == context)
            work->externals[i].memory = NULL;
    }
}
