/* Bounds-checked reading of ELF headers, sections and notes; see elf_file.h. */
#include "symbols/elf_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_BYTE_ORDER ELFDATA2LSB
#else
#define OUR_BYTE_ORDER ELFDATA2MSB
#endif

#define SECOND_NS UINT64_C(1000000000)

/* More than any real file has; bounds what a made-up header can cost. */
#define SECTIONS_MAX      65536
#define PROGRAM_PARTS_MAX 1024
#define NOTES_MAX         256
#define CHECKED_BYTES_MAX (UINT64_C(1) << 30)

const char *elf_problem_text(enum elf_problem problem)
{
#define AS_TEXT(symbol, text) text,
    static const char *const texts[] = {ELF_PROBLEMS(AS_TEXT)};
#undef AS_TEXT
    return texts[problem];
}

bool elf_read(const struct elf_file *file, uint64_t offset, void *buffer, size_t bytes)
{
    if (offset > file->size || bytes > file->size - offset)
        return false;
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file->fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool header_is_ours(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == OUR_BYTE_ORDER;
}

enum elf_problem elf_take(struct elf_file *file, int fd)
{
    struct stat status;
    file->fd = fd;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        elf_close(file);
        return ELF_NOT_A_FILE;
    }
    file->size = (uint64_t)status.st_size;
    file->mtime_ns = (uint64_t)status.st_mtim.tv_sec * SECOND_NS + (uint64_t)status.st_mtim.tv_nsec;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    if (file->size <= ELF_BYTES_MAX && elf_read(file, 0, &file->header, sizeof(file->header)) &&
        header_is_ours(&file->header))
        return ELF_NONE;
    elf_close(file);
    return file->size > ELF_BYTES_MAX ? ELF_TOO_LARGE : ELF_NOT_ELF;
}

enum elf_problem elf_open_in(struct elf_file *file, const char *root, const char *path)
{
    int fd = regular_file_open(root, path);
    file->fd = -1;
    if (fd < 0)
        return errno == EINVAL ? ELF_NOT_A_FILE : ELF_MISSING;
    return elf_take(file, fd);
}

enum elf_problem elf_open(struct elf_file *file, const char *path)
{
    return elf_open_in(file, NULL, path);
}

/* Archives and images keep whole seconds. */
static bool is_same_time(uint64_t left_ns, uint64_t right_ns)
{
    bool whole = left_ns % SECOND_NS == 0 || right_ns % SECOND_NS == 0;
    return whole ? left_ns / SECOND_NS == right_ns / SECOND_NS : left_ns == right_ns;
}

bool elf_is_module(const struct elf_file *file, const struct module *module)
{
    uint8_t id[BUILD_ID_MAX];
    if (module->build_id_bytes > 0) {
        size_t bytes = elf_build_id(file, id);
        return bytes == module->build_id_bytes && memcmp(id, module->build_id, bytes) == 0;
    }
    if (module->file_size == 0)
        return true; /* nothing is known to hold against it */
    return file->size == module->file_size && is_same_time(file->mtime_ns, module->file_mtime_ns);
}

enum elf_problem elf_open_module(struct elf_file *file, const char *root, const struct module *module)
{
    enum elf_problem problem = elf_open_in(file, root, module->path);
    if (problem != ELF_NONE || elf_is_module(file, module))
        return problem;
    elf_close(file);
    return ELF_CHANGED;
}

void elf_close(struct elf_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

bool elf_section_at(const struct elf_file *file, uint64_t index, Elf64_Shdr *section)
{
    const Elf64_Ehdr *header = &file->header;
    if (index >= SECTIONS_MAX || header->e_shentsize != sizeof(*section) || header->e_shoff > file->size)
        return false;
    if (!elf_read(file, header->e_shoff + index * sizeof(*section), section, sizeof(*section)))
        return false;
    return section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL ||
           (section->sh_offset <= file->size && section->sh_size <= file->size - section->sh_offset);
}

static uint64_t count_sections(const struct elf_file *file)
{
    Elf64_Shdr first;
    uint64_t count = file->header.e_shnum;
    if (file->header.e_shoff == 0)
        return 0;
    if (count == 0 && elf_section_at(file, 0, &first))
        count = first.sh_size; /* more than fit the header's field */
    uint64_t room = file->header.e_shoff < file->size ? file->size - file->header.e_shoff : 0;
    uint64_t most = room / sizeof(first) < SECTIONS_MAX ? room / sizeof(first) : SECTIONS_MAX;
    return count < most ? count : most;
}

bool elf_section(const struct elf_file *file, uint32_t type, Elf64_Shdr *section)
{
    uint64_t count = count_sections(file);
    for (uint64_t i = 0; i < count; i++)
        if (elf_section_at(file, i, section) && section->sh_type == type)
            return true;
    return false;
}

bool elf_inflates_well(const struct elf_file *file)
{
    uint64_t count = count_sections(file), bytes = 0;
    Elf64_Shdr section;
    Elf64_Chdr compressed;
    for (uint64_t i = 0; i < count; i++) {
        if (!elf_section_at(file, i, &section) || !(section.sh_flags & SHF_COMPRESSED))
            continue;
        if (!elf_read(file, section.sh_offset, &compressed, sizeof(compressed)) ||
            compressed.ch_size > ELF_BYTES_MAX - bytes)
            return false;
        bytes += compressed.ch_size;
    }
    return true;
}

static uint64_t aligned(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* CRC-32 as in zlib. */
static uint32_t crc32_add(const uint32_t table[256], uint32_t crc, const uint8_t *bytes, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}

static void crc32_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (UINT32_C(0xedb88320) & -(table[i] & 1));
    }
}

bool elf_checksum_is(const struct elf_file *file, uint32_t checksum)
{
    uint8_t buffer[16384];
    uint32_t table[256], crc = 0;
    if (file->size > CHECKED_BYTES_MAX)
        return false;
    crc32_table(table);
    for (uint64_t at = 0; at < file->size; at += sizeof(buffer)) {
        size_t bytes = file->size - at < sizeof(buffer) ? (size_t)(file->size - at) : sizeof(buffer);
        if (!elf_read(file, at, buffer, bytes))
            return false;
        crc = crc32_add(table, crc, buffer, bytes);
    }
    return crc == checksum;
}

/* The build-id among the notes in [at, at + left) of the file, of which `looks` may be looked at still. */
static size_t build_id_in_notes(const struct elf_file *file, uint64_t at, uint64_t left, uint64_t alignment,
                                uint8_t *id, int *looks)
{
    Elf64_Nhdr note;
    char name[4];
    alignment = alignment == 8 ? 8 : 4;
    if (at > file->size || left > file->size - at)
        return 0;
    for (; *looks > 0 && left >= sizeof(note); (*looks)--) {
        if (!elf_read(file, at, &note, sizeof(note)))
            return 0;
        uint64_t data = aligned(sizeof(note) + (uint64_t)note.n_namesz, alignment);
        uint64_t whole = aligned(data + note.n_descsz, alignment);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= BUILD_ID_MAX &&
            data + note.n_descsz <= left && elf_read(file, at + sizeof(note), name, 4) &&
            memcmp(name, ELF_NOTE_GNU, 4) == 0 && elf_read(file, at + data, id, note.n_descsz))
            return note.n_descsz;
        if (whole > left)
            return 0;
        at += whole;
        left -= whole;
    }
    return 0;
}

size_t elf_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX])
{
    const Elf64_Ehdr *header = &file->header;
    uint64_t sections = count_sections(file);
    Elf64_Phdr part;
    Elf64_Shdr section;
    size_t bytes = 0;
    int looks = NOTES_MAX;
    bool has_parts = header->e_phentsize == sizeof(part) && header->e_phoff <= file->size;
    for (unsigned i = 0; bytes == 0 && has_parts && i < header->e_phnum && i < PROGRAM_PARTS_MAX; i++)
        if (elf_read(file, header->e_phoff + i * sizeof(part), &part, sizeof(part)) && part.p_type == PT_NOTE)
            bytes = build_id_in_notes(file, part.p_offset, part.p_filesz, part.p_align, id, &looks);
    /* Separate debug files may have no program headers, or some that describe the original. */
    for (uint64_t i = 0; bytes == 0 && i < sections; i++)
        if (elf_section_at(file, i, &section) && section.sh_type == SHT_NOTE)
            bytes =
                build_id_in_notes(file, section.sh_offset, section.sh_size, section.sh_addralign, id, &looks);
    return bytes;
}

bool elf_is_function(const Elf64_Sym *symbol)
{
    unsigned char type = ELF64_ST_TYPE(symbol->st_info);
    /* Local ones without a type are labels, and on some processors marks between code and data. */
    bool untyped = type == STT_NOTYPE && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
    return (type == STT_FUNC || type == STT_GNU_IFUNC || untyped) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_shndx < SHN_LORESERVE;
}

bool elf_needs_section(const Elf64_Sym *symbol)
{
    return symbol->st_size == 0 || ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE;
}

int elf_name_rank(const Elf64_Sym *symbol, const char *name)
{
    unsigned char binding = ELF64_ST_BIND(symbol->st_info);
    size_t underscores = strspn(name, "_");
    int rank = binding == STB_LOCAL ? 0 : binding == STB_WEAK ? 4 : 8;
    return rank + 3 - (int)(underscores > 3 ? 3 : underscores);
}
