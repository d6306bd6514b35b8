/*
 * The few things wanted from an ELF file that may be anything: read with pread(), so that a file cut short
 * while it is looked at gives an error, where a mapping would end the process with SIGBUS. Every offset is
 * checked against the file's size. No malloc. 64-bit files of this machine's byte order only: what runs in
 * this process.
 */
#ifndef SYMBOLS_ELF_FILE_H
#define SYMBOLS_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"

struct elf_file {
    int fd; /* -1: not open */
    uint64_t size, mtime_ns;
    uint64_t device, inode; /* equal for one file under many names */
    Elf64_Ehdr header;
};

/* Why a module's file gives no names. X(symbol, what to tell a person, after the path) */
#define ELF_PROBLEMS(X)                                                                                      \
    X(NONE, "")                                                                                              \
    X(NOT_A_FILE, "is no regular file")                                                                      \
    X(MISSING, "cannot be opened")                                                                           \
    X(TOO_LARGE, "is too large to be read")                                                                  \
    X(NOT_ELF, "is no 64-bit ELF file")                                                                      \
    X(CHANGED, "has changed since the recording")

#define AS_PROBLEM(symbol, text) ELF_##symbol,
enum elf_problem { ELF_PROBLEMS(AS_PROBLEM) };
#undef AS_PROBLEM

const char *elf_problem_text(enum elf_problem problem);

/* Larger ones are not read: no real one is, and a recording may name any file. */
#define ELF_BYTES_MAX (UINT64_C(1) << 34)

/* Opens `path`. On a problem nothing is left open and fd is -1. */
enum elf_problem elf_open(struct elf_file *file, const char *path);
/* The same, with `root` in the place of "/"; NULL: "/" itself. */
enum elf_problem elf_open_in(struct elf_file *file, const char *root, const char *path);
/* The same of a descriptor, which it takes and closes with the file. */
enum elf_problem elf_take(struct elf_file *file, int fd);
/* Whether the file is still the one that was mapped: by build-id where one was recorded, else by size and
 * modification time. */
bool elf_is_module(const struct elf_file *file, const struct module *module);
/* Opens the file of `module` and makes sure that it is the same still. */
enum elf_problem elf_open_module(struct elf_file *file, const char *root, const struct module *module);
void elf_close(struct elf_file *file);

/* Exactly `bytes` bytes from `offset`, or false. */
bool elf_read(const struct elf_file *file, uint64_t offset, void *buffer, size_t bytes);
/* The first section of `type` that lies within the file. False: none. */
bool elf_section(const struct elf_file *file, uint32_t type, Elf64_Shdr *section);
bool elf_section_at(const struct elf_file *file, uint64_t index, Elf64_Shdr *section);
/* Whether what its compressed sections say they hold is no more than a file may. */
bool elf_inflates_well(const struct elf_file *file);
/* Whether the whole file has this checksum, the CRC-32 of .gnu_debuglink. False for one over 1 GiB. */
bool elf_checksum_is(const struct elf_file *file, uint32_t checksum);
/* The GNU build-id's length, 0 when there is none or it is longer than BUILD_ID_MAX. */
size_t elf_build_id(const struct elf_file *file, uint8_t id[BUILD_ID_MAX]);

/* Whether a symbol is code defined in the file; where elf_needs_section(), only if its section is code. */
bool elf_is_function(const Elf64_Sym *symbol);
/* Functions written in assembly may have no type, no size, or neither: their section tells whether they are
 * any, and where they end at the latest. */
bool elf_needs_section(const Elf64_Sym *symbol);
/* Of several names of one function, the one with the highest rank is what people know it by: global before
 * weak before local, then the one with fewer leading underscores. At least 0. */
int elf_name_rank(const Elf64_Sym *symbol, const char *name);

#endif
