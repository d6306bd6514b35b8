/*
 * Reads the dynamic symbol table of a mapped ELF file. Unlike dlsym it takes no lock, follows no scope (a
 * library opened RTLD_LOCAL is as good as any) and never enters a dlsym that someone has put in front of
 * libc's.
 */
#ifndef CAPTURE_ELF_IMAGE_H
#define CAPTURE_ELF_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
    uintptr_t bias;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t string_bytes;
    const uint32_t *gnu_hash, *sysv_hash; /* either may be NULL */
};

struct elf_symbol {
    uintptr_t address;
    size_t bytes;
};

/* False when `dynamic`, the mapped PT_DYNAMIC, lacks what a look-up needs. The image is good while it stays
 * mapped. */
bool elf_image_open(struct elf_image *image, uintptr_t bias, const ElfW(Dyn) * dynamic);
/* The same for an entry of dl_iterate_phdr. */
bool elf_image_open_loaded(struct elf_image *image, const struct dl_phdr_info *info);

/* The addresses from the first to the last that its segments take. */
struct elf_extent {
    uintptr_t start, bytes;
};
struct elf_extent elf_image_extent(const struct dl_phdr_info *info);

/* A defined function or data symbol of any version; false when there is none. */
bool elf_image_find(const struct elf_image *image, const char *name, struct elf_symbol *symbol);
/* Its address, NULL when there is none. */
void *elf_image_address(const struct elf_image *image, const char *name);

#endif
