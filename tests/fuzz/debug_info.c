/* An ELF file that a recording names, as the tool reads its debug information: our own reading of what libdw
 * makes of it. The addresses asked for are those of the small programs of the corpus. */
#include <stdlib.h>
#include <string.h>

#include "report/model.h"
#include "symbols/symbols.h"
#include "target.h"

#define CODE       0x4000b0
#define CODE_BYTES 42

static void ask(struct symbol_source *source, const struct module *module, uint64_t offset)
{
    struct native_name names[8];
    size_t count = source->resolve(source->source, module, offset, names, 8);
    require(count <= 8);
    for (size_t i = 0; i < count; i++) {
        require(names[i].line >= 0);
        require(names[i].function == NULL || strlen(names[i].function) < 16384);
        require(names[i].file == NULL || names[i].file[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsetenv("DEBUGINFOD_URLS");
    struct fuzz_file file = fuzz_file(data, size);
    struct symbol_source *source = dwarf_source_create(NULL);
    require(source);
    struct module module = {.path = file.path};
    dwarf_source_problem(source, &module);
    for (uint64_t offset = 0; offset < CODE_BYTES; offset += 3)
        ask(source, &module, CODE + offset);
    for (uint64_t offset = 1; offset < UINT64_C(1) << 40; offset *= 25)
        ask(source, &module, offset);
    dwarf_source_destroy(source);
    fuzz_file_close(&file);
    return 0;
}
