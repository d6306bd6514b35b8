/* Symbol look-up in mapped ELF files (elf_image.h), by DT_GNU_HASH or DT_HASH as the System V ABI lays them
 * out. */
#include "capture/elf_image.h"

#include <elf.h>
#include <string.h>

/* glibc relocates most addresses in a mapped dynamic section in place, other loaders and the vdso leave them
 * be. */
static uintptr_t dynamic_address(uintptr_t bias, ElfW(Addr) value)
{
    return value < bias ? bias + value : value;
}

bool elf_image_open(struct elf_image *image, uintptr_t bias, const ElfW(Dyn) * dynamic)
{
    *image = (struct elf_image){.bias = bias};
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            image->symbols = (const void *)dynamic_address(bias, dynamic->d_un.d_ptr);
            break;
        case DT_STRTAB:
            image->strings = (const void *)dynamic_address(bias, dynamic->d_un.d_ptr);
            break;
        case DT_STRSZ:
            image->string_bytes = dynamic->d_un.d_val;
            break;
        case DT_GNU_HASH:
            image->gnu_hash = (const void *)dynamic_address(bias, dynamic->d_un.d_ptr);
            break;
        case DT_HASH:
            image->sysv_hash = (const void *)dynamic_address(bias, dynamic->d_un.d_ptr);
            break;
        }
    }
    return image->symbols != NULL && image->strings != NULL &&
           (image->gnu_hash != NULL || image->sysv_hash != NULL);
}

bool elf_image_open_loaded(struct elf_image *image, const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return elf_image_open(image, info->dlpi_addr,
                                  (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
    return false;
}

struct elf_extent elf_image_extent(const struct dl_phdr_info *info)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        low = header->p_vaddr < low ? header->p_vaddr : low;
        high = header->p_vaddr + header->p_memsz > high ? header->p_vaddr + header->p_memsz : high;
    }
    return (struct elf_extent){info->dlpi_addr + low, high > low ? high - low : 0};
}

static bool symbol_matches(const struct elf_image *image, const ElfW(Sym) * symbol, const char *name)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_name < image->string_bytes &&
           (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) &&
           strcmp(image->strings + symbol->st_name, name) == 0;
}

static const ElfW(Sym) * find_gnu(const struct elf_image *image, const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at != '\0'; at++)
        hash = hash * 33 + (uint8_t)*at;

    const uint32_t *table = image->gnu_hash;
    uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const void *)(table + 4);
    const uint32_t *bucket = (const void *)(bloom + words);
    const uint32_t *chain = bucket + buckets;
    const unsigned bits = 8 * sizeof *bloom;
    if (buckets == 0 || words == 0)
        return NULL;
    ElfW(Addr) word = bloom[hash / bits % words];
    if ((word >> hash % bits & word >> (hash >> shift) % bits & 1) == 0)
        return NULL;
    uint32_t index = bucket[hash % buckets];
    if (index < first)
        return NULL;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && symbol_matches(image, &image->symbols[index], name))
            return &image->symbols[index];
        if (entry & 1)
            return NULL;
    }
}

static const ElfW(Sym) * find_sysv(const struct elf_image *image, const char *name)
{
    uint32_t hash = 0;
    for (const char *at = name; *at != '\0'; at++) {
        hash = (hash << 4) + (uint8_t)*at;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    const uint32_t *table = image->sysv_hash;
    uint32_t buckets = table[0], symbols = table[1];
    if (buckets == 0)
        return NULL;
    uint32_t index = table[2 + hash % buckets];
    for (uint32_t steps = 0; index != 0 && index < symbols && steps < symbols; steps++) {
        if (symbol_matches(image, &image->symbols[index], name))
            return &image->symbols[index];
        index = table[2 + buckets + index];
    }
    return NULL;
}

bool elf_image_find(const struct elf_image *image, const char *name, struct elf_symbol *symbol)
{
    const ElfW(Sym) *found = image->gnu_hash != NULL ? find_gnu(image, name) : find_sysv(image, name);
    if (found == NULL)
        return false;
    symbol->address = image->bias + found->st_value;
    symbol->bytes = found->st_size;
    return true;
}

void *elf_image_address(const struct elf_image *image, const char *name)
{
    struct elf_symbol symbol;
    return elf_image_find(image, name, &symbol) ? (void *)symbol.address : NULL;
}
