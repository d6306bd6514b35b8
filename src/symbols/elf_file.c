/* Bounds-checked reading of ELF headers, sections and notes; see elf_file.h. */
#include "symbols/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_BYTE_ORDER ELFDATA2LSB
#else
#define OUR_BYTE_ORDER ELFDATA2MSB
#endif

/* More than any real file has; bounds what a made-up header can cost. */
#define SECTIONS_MAX      65536
#define PROGRAM_PARTS_MAX 1024
#define NOTES_MAX         64

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

enum elf_problem elf_open(struct elf_file *file, const char *path)
{
    enum elf_problem problem = ELF_MISSING;
    struct stat status;
    file->fd = -1;
    if (path[0] != '/')
        return ELF_NOT_A_FILE;
    /* O_NONBLOCK: a recording may name a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return ELF_MISSING;
    if (fstat(fd, &status) != 0)
        goto refuse;
    problem = ELF_NOT_A_FILE;
    if (!S_ISREG(status.st_mode))
        goto refuse;
    file->fd = fd;
    file->size = (uint64_t)status.st_size;
    file->mtime_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    problem = ELF_NOT_ELF;
    if (!elf_read(file, 0, &file->header, sizeof(file->header)) || !header_is_ours(&file->header))
        goto refuse;
    return ELF_NONE;
refuse:
    close(fd);
    file->fd = -1;
    return problem;
}

static bool is_same_file(const struct elf_file *file, const struct module *module)
{
    uint8_t id[BUILD_ID_MAX];
    if (module->build_id_bytes > 0) {
        size_t bytes = elf_build_id(file, id);
        return bytes == module->build_id_bytes && memcmp(id, module->build_id, bytes) == 0;
    }
    if (module->file_size == 0)
        return true; /* nothing is known to hold against it */
    return file->size == module->file_size && file->mtime_ns == module->file_mtime_ns;
}

enum elf_problem elf_open_module(struct elf_file *file, const struct module *module)
{
    enum elf_problem problem = elf_open(file, module->path);
    if (problem != ELF_NONE || is_same_file(file, module))
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

bool elf_section(const struct elf_file *file, uint32_t type, Elf64_Shdr *section)
{
    uint64_t count = file->header.e_shnum;
    if (file->header.e_shoff == 0)
        return false;
    if (count == 0 && elf_section_at(file, 0, section))
        count = section->sh_size; /* more than fit the header's field */
    if (count > SECTIONS_MAX)
        count = SECTIONS_MAX;
    for (uint64_t i = 0; i < count; i++)
        if (elf_section_at(file, i, section) && section->sh_type == type)
            return true;
    return false;
}

static uint64_t aligned(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* The build-id among the notes in [offset, offset + bytes) of the file. */
static size_t build_id_in_notes(const struct elf_file *file, const Elf64_Phdr *part, uint8_t *id)
{
    uint64_t alignment = part->p_align == 8 ? 8 : 4;
    uint64_t at = part->p_offset, left = part->p_filesz;
    Elf64_Nhdr note;
    char name[4];
    if (at > file->size || left > file->size - at)
        return 0;
    for (int n = 0; n < NOTES_MAX && left >= sizeof(note); n++) {
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
    Elf64_Phdr part;
    if (header->e_phentsize != sizeof(part) || header->e_phoff > file->size)
        return 0;
    for (unsigned i = 0; i < header->e_phnum && i < PROGRAM_PARTS_MAX; i++) {
        if (!elf_read(file, header->e_phoff + i * sizeof(part), &part, sizeof(part)))
            return 0;
        size_t bytes = part.p_type == PT_NOTE ? build_id_in_notes(file, &part, id) : 0;
        if (bytes > 0)
            return bytes;
    }
    return 0;
}

bool elf_is_function(const Elf64_Sym *symbol)
{
    unsigned char type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size > 0;
}

int elf_name_rank(const Elf64_Sym *symbol, const char *name)
{
    unsigned char binding = ELF64_ST_BIND(symbol->st_info);
    size_t underscores = strspn(name, "_");
    int rank = binding == STB_LOCAL ? 0 : binding == STB_WEAK ? 4 : 8;
    return rank + 3 - (int)(underscores > 3 ? 3 : underscores);
}
