/*
 * The catalog: everything events refer to by a small number. Strings, modules (mapped ELF files), frames,
 * stacks and sites, each stored once and numbered from 0 in the order they were first seen. The traced
 * process fills one while it runs, the reader fills an equal one from the recording, and reports read either.
 *
 * Not locked: in the traced process the recorder's lock covers every call. Entries never move or change once
 * added, so a pointer to one stays good without the lock. Every catalog_add_* returns the entry's id, or
 * CATALOG_NONE when memory ran out (nothing was added then); *is_new, where not NULL, tells whether the call
 * added it.
 */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define CATALOG_NONE UINT32_MAX
#define BUILD_ID_MAX 32

/* What kind of memory a block takes. X(symbol, name in reports, tied to one device) */
#define SPACES(X)                                                                                            \
    X(DEVICE, "device", true)                                                                                \
    X(MANAGED, "managed", true)                                                                              \
    X(PINNED, "pinned", false)                                                                               \
    X(REGISTERED, "registered", false)                                                                       \
    X(HOST, "host", false)                                                                                   \
    X(GRAPH, "graph", true)                                                                                  \
    X(FOREIGN, "foreign", true)

/* How a block is created and ended. X(symbol, name in reports, layer, owned: counts as this process's memory)
 */
#define FAMILIES(X)                                                                                          \
    X(PLAIN, "plain", DRIVER, true)                                                                          \
    X(PITCHED, "pitched", DRIVER, true)                                                                      \
    X(MANAGED, "managed", DRIVER, true)                                                                      \
    X(POOL, "pool", DRIVER, true)                                                                            \
    X(VMM, "vmm", DRIVER, true)                                                                              \
    X(ARRAY, "array", DRIVER, true)                                                                          \
    X(PINNED, "pinned", DRIVER, true)                                                                        \
    X(REGISTERED, "registered", DRIVER, true)                                                                \
    X(GRAPH, "graph", DRIVER, true)                                                                          \
    X(IPC, "ipc", DRIVER, false)                                                                             \
    X(EXTERNAL, "external", DRIVER, false)                                                                   \
    X(TORCH, "torch", FRAMEWORK, true)                                                                       \
    X(ALLOCATOR, "allocator", FRAMEWORK, true)

#define AS_SPACE(symbol, ...)  SPACE_##symbol,
#define AS_FAMILY(symbol, ...) FAMILY_##symbol,
enum space_kind { SPACES(AS_SPACE) SPACE_COUNT };
enum family { FAMILIES(AS_FAMILY) FAMILY_COUNT };
enum layer { LAYER_DRIVER, LAYER_FRAMEWORK, LAYER_COUNT };
#undef AS_SPACE
#undef AS_FAMILY

struct space_info {
    const char *name;
    bool per_device;
};

struct family_info {
    const char *name;
    enum layer layer;
    bool owned; /* false: maps memory owned elsewhere; listed, never added to totals */
};

extern const struct space_info space_infos[SPACE_COUNT];
extern const struct family_info family_infos[FAMILY_COUNT];
extern const char *const layer_names[LAYER_COUNT];

/* A file that is unloaded and loaded again, perhaps elsewhere, stays the same module, so that its frames do:
 * one that can be told by its size or build-id is known by what comes before `bias`, any other by all. */
struct module {
    const char *path;
    uint64_t file_size, file_mtime_ns; /* 0 when the file could not be examined */
    uint32_t build_id_bytes;           /* 0 when it has none */
    uint8_t build_id[BUILD_ID_MAX];
    /* Where it was when it was first seen: */
    uint64_t bias;  /* run-time address minus the address in the file's program headers */
    uint64_t start; /* the mapped range, [start, end) */
    uint64_t end;
};

enum frame_kind { FRAME_NATIVE, FRAME_PYTHON };

struct frame {
    enum frame_kind kind;
    uint32_t module; /* native: CATALOG_NONE when the address is in no mapped file (JIT code) */
    uint64_t offset; /* native: return address minus the module's bias; the address itself without a module */
    uint32_t function; /* Python: string id of the qualified name, or of the name before 3.11 */
    uint32_t file;     /* Python: string id */
    int32_t line;      /* Python: 0 when unknown */
};

/* Frames innermost first: native ones out to the interpreter, then all Python ones. */
struct stack {
    uint32_t count;
    const uint32_t *frames;
};

/* One place that allocates: what a report calls a site. */
struct site_key {
    uint32_t stack; /* CATALOG_NONE when no stack was taken */
    uint32_t api;   /* string id: "cuMemAlloc", without _v2 or _ptsz */
    uint8_t family; /* enum family */
    uint8_t space;  /* enum space_kind */
    int16_t device; /* -1 when the space is not tied to a device */
};

struct catalog;

/* Uses `arena` for everything; NULL when memory ran out. */
struct catalog *catalog_create(struct arena *arena);
/* Gives back the hash tables; the rest goes with the arena. */
void catalog_destroy(struct catalog *catalog);

uint32_t catalog_add_string(struct catalog *catalog, const char *text, size_t bytes, bool *is_new);
uint32_t catalog_add_module(struct catalog *catalog, const struct module *module, bool *is_new);
uint32_t catalog_add_frame(struct catalog *catalog, const struct frame *frame, bool *is_new);
uint32_t catalog_add_stack(struct catalog *catalog, const uint32_t *frames, uint32_t count, bool *is_new);
uint32_t catalog_add_site(struct catalog *catalog, const struct site_key *site, bool *is_new);

uint32_t catalog_string_count(const struct catalog *catalog);
uint32_t catalog_module_count(const struct catalog *catalog);
uint32_t catalog_frame_count(const struct catalog *catalog);
uint32_t catalog_stack_count(const struct catalog *catalog);
uint32_t catalog_site_count(const struct catalog *catalog);

/* Each returns NULL for an id that was never given out. */
const char *catalog_string(const struct catalog *catalog, uint32_t id);
const struct module *catalog_module(const struct catalog *catalog, uint32_t id);
const struct frame *catalog_frame(const struct catalog *catalog, uint32_t id);
const struct stack *catalog_stack(const struct catalog *catalog, uint32_t id);
const struct site_key *catalog_site(const struct catalog *catalog, uint32_t id);

#endif
