/* An ELF file that a recording names, as the library reads its symbols, and the few things that the tool asks
 * of it before libdw does. */
#include <string.h>

#include "symbols/elf_file.h"
#include "symbols/symbols.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file(data, size);
    struct elf_file elf;
    uint8_t id[BUILD_ID_MAX];
    if (elf_open(&elf, file.path) == ELF_NONE) {
        require(elf_build_id(&elf, id) <= sizeof id);
        elf_inflates_well(&elf);
        elf_checksum_is(&elf, 0);
        elf_close(&elf);
    }
    struct arena arena = {0};
    struct symbol_source *source = dynsym_source_create(&arena);
    require(source);
    struct module module = {.path = file.path};
    for (uint64_t offset = 1; offset < UINT64_C(1) << 40; offset *= 5) {
        struct native_name names[4];
        size_t count = source->resolve(source->source, &module, offset, names, 4);
        require(count <= 4);
        for (size_t i = 0; i < count; i++)
            require(names[i].function == NULL || strlen(names[i].function) <= 8192);
    }
    dynsym_source_close(source);
    arena_release(&arena);
    fuzz_file_close(&file);
    return 0;
}
