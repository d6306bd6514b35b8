/*
 * What is mapped into the process, asked of dl_iterate_phdr and read from the images themselves: unlike
 * dlopen and dlsym this changes neither dlerror() nor a reference count, enters no one's dlsym, and sees
 * libraries of every scope. Call without any lock of ours held.
 */
#ifndef HOOKS_LOADED_H
#define HOOKS_LOADED_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/elf_image.h"

#define LOADED_NAME_MAX 4096

struct loaded_range {
    uintptr_t start, end; /* of the mapped segments; both 0 when there is none */
};

/* Inside this library. Costs two comparisons. */
bool loaded_is_ours(const void *address);

/* The mapped file that holds `address`. Where `name` is not NULL it receives the path as the dynamic linker
 * knows it. */
struct loaded_range loaded_range_of(const void *address, char name[LOADED_NAME_MAX]);

/* True when `address` lies in a file called libcuda.so… or libcudart…, by file name or soname. */
bool loaded_in_driver(const void *address);
bool loaded_in_runtime(const void *address);

/* The image of the CUDA driver; false when none is loaded. */
bool loaded_driver(struct elf_image *image, struct loaded_range *range);
/* The image that holds `address`. */
bool loaded_image_of(const void *address, struct elf_image *image);

/* A runtime's function as a reference from the file that holds `caller` would be bound within the file's own
 * dependencies, breadth first; NULL when none of them has it. */
void *loaded_in_dependencies(const void *caller, const char *name);
/* Any loaded runtime's function, the first loaded first. */
void *loaded_in_any_runtime(const char *name);

/* Any file's function of that name but ours, the first loaded first. */
void *loaded_anywhere(const char *name);

/* `name` in the file called `file`; NULL when there is none. */
void *loaded_in_file(const char *file, const char *name);

/* Whether a search that goes on behind the file of `caller` meets this library before any other that has
 * `name`. */
bool loaded_meets_us(const void *caller, const char *name);

/* Sets mapped[i] for every addresses[i] that lies in a mapped file. */
void loaded_which_are_mapped(const void *const *addresses, bool *mapped, uint32_t count);

/* Grows by one whenever something was unloaded. */
uint64_t loaded_unloads(void);

#endif
