/* Looks at the program itself with dl_iterate_phdr; see own_modules.h. */
#include "own_modules.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>

struct search {
    uintptr_t address;
    struct module *module;
    char *path;
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || search->address - start >= part->p_memsz)
            continue;
        const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
        if (!realpath(name, search->path))
            return 0;
        *search->module = (struct module){
            .path = search->path, .bias = info->dlpi_addr, .start = start, .end = start + part->p_memsz};
        return 1;
    }
    return 0;
}

struct module own_module(const void *address, char *path)
{
    struct module module = {0};
    struct search search = {(uintptr_t)address, &module, path};
    if (dl_iterate_phdr(look, &search) != 1) {
        fprintf(stderr, "%p is in no module\n", address);
        abort();
    }
    return module;
}

__asm__(".text\n"
        ".balign 16\n"
        ".globl sizeless\n"
        ".type sizeless, %function\n"
        "sizeless: nop\n nop\n nop\n nop\n"
        ".globl untyped\n"
        "untyped: nop\n nop\n nop\n nop\n"
        ".globl sized_one\n"
        ".type sized_one, %function\n"
        "sized_one: nop\n nop\n"
        ".globl label_within\n"
        "label_within: nop\n nop\n"
        ".size sized_one, . - sized_one\n");
