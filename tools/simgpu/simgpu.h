/*
 * What the parts of the simulated driver share: devices, contexts, and the memory objects they own.
 *
 * One lock covers everything (entry.h takes it); the functions named here want it held. Memory is counted in
 * granules of 2 MiB, like the real driver's; an allocation above half a granule takes whole ones, smaller
 * ones share.
 */
#ifndef SIMGPU_H
#define SIMGPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/abi.h"
#include "extent.h"

#define GRANULE          (2ull << 20)
#define UNIT             512ull /* alignment of what shares a granule */
#define GRANULE_UNITS    (GRANULE / UNIT)
#define CONTEXT_LIMITS   8 /* of CUlimit, from 0 */
#define DEFAULT_STACK    1024
#define RESIDENT_THREADS (108 * 2048) /* multiprocessors, and threads of each: see device.c */
#define MAX_DEVICES      16

#define SIMGPU_DRIVER_VERSION 13000

struct device;
struct context;
struct external;
struct pool;
struct block;
struct window;

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* ---- handles ---- */

/* Every object behind a handle starts with this, so that a stale or foreign handle is told from a living one.
 */
enum handle_type {
    HANDLE_CONTEXT,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_LIBRARY,
    HANDLE_KERNEL,
    HANDLE_POOL,
    HANDLE_ARRAY,
    HANDLE_MIPMAP,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_ALLOCATION,
    HANDLE_EXTERNAL_MEMORY,
    HANDLE_EXTERNAL_SEMAPHORE,
    HANDLE_GREEN,
    HANDLE_USER_OBJECT,
    HANDLE_RESOURCE_DESC,
    HANDLE_TEXTURE,
};

struct handle {
    enum handle_type type;
    struct context *context;       /* whose end takes it along; NULL for none */
    struct handle *next, **before; /* the context's list */
};

/* A new, zeroed object of a type, live from now on; NULL when memory ran out. */
void *handle_new(enum handle_type type, size_t size, struct context *context);
/* The object behind a handle, or NULL when it is no living one of that type. */
void *handle_get(const void *handle, enum handle_type type);
void handle_end(void *object, size_t size);

/* ---- memory ---- */

enum block_kind {
    BLOCK_PLAIN, /* also pitched: cuMemFree ends both */
    BLOCK_MANAGED,
    BLOCK_PINNED,
    BLOCK_REGISTERED,
    BLOCK_POOL,
    BLOCK_ARRAY, /* no address of its own that a program could name */
    BLOCK_IPC,
    BLOCK_POOL_IMPORT,
    BLOCK_EXTERNAL,
    BLOCK_GRAPH,
};

struct block {
    uint64_t address;
    uint64_t size; /* bytes asked for */
    enum block_kind kind;
    unsigned flags;
    struct device *device;
    struct context *context;        /* NULL: no context's end takes it along */
    struct pool *pool;              /* of BLOCK_POOL */
    struct span *span;              /* where it lies */
    struct extent *extent;          /* its part of the span when it shares granules */
    struct small *small;            /* the heap that extent came from */
    unsigned references;            /* IPC: opens */
    unsigned long long id;          /* unique over the life of the process */
    struct block *next, **before;   /* the context's list */
    void *owner;                    /* the import, external memory or graph behind it */
    void (*on_end)(struct block *); /* what block_end() does first, where a kind needs it */
};

/* A run of granules of one window, in use as a whole. */
struct span {
    uint64_t start, size; /* bytes */
    struct window *window;
    struct extent *extent;           /* of the window's granules; NULL when it is no part of a window */
    struct block *block;             /* the one allocation that fills it, or */
    struct block **slots;            /* what starts at each of its units, or */
    struct extent *first;            /* (then: the first extent of its units) */
    struct graph_memory *graph;      /* addresses of a graph's memory, or */
    struct reservation *reservation; /* addresses of virtual memory management */
    unsigned imports;                /* blocks of another process's pool in `slots` */
};

/* A large range of addresses, made once, from which granules are taken. */
struct window {
    uint64_t base, size;
    int fd;                /* the file behind it; -1 for anonymous memory */
    struct device *device; /* whose physical memory its granules take; NULL: host memory */
    struct heap granules;
    uint64_t *touched; /* a bit for each granule that may hold pages of RAM */
    /* Adds granules when there are none; NULL: what there is is all. */
    bool (*grow)(struct window *window, uint64_t granules);
};

/* Where allocations of up to half a granule come from. A context has one per kind of memory, a pool has one.
 */
struct small {
    struct heap heap; /* in units, by address */
    struct window *window;
};

/* The span that an address lies in, or NULL. */
struct span *span_at(uint64_t address);
/* The living allocation that an address lies in, or NULL; registered host memory included. */
struct block *block_at(uint64_t address);
struct block *registered_at(uint64_t address); /* in registered host memory only */
/* As block_at(), when it starts there; not for registered host memory. */
struct block *block_starting(uint64_t address);

/* A window of new memory; NULL when there is no room. `shared`: backed by a file that other processes can
 * map. */
/* `wanted` addresses, or what is set as the most (SIMGPU_ADDRESSES), but `needed` in any case. */
uint64_t window_size(uint64_t wanted, uint64_t needed);
struct window *window_new(uint64_t size, struct device *device, bool shared);
struct window *window_of_fd(int fd, uint64_t size);
/* Addresses only: no memory, and no access. */
struct window *window_of_addresses(uint64_t size);
void window_end(struct window *window);
struct window *host_window(void);
struct window *managed_window(void);
/* Below 4 GiB, for the 32-bit names of CUDA before 3.2; NULL when there is no room. */
struct window *low_window(struct device *device);

struct span *span_take(struct window *window, uint64_t bytes); /* NULL: no memory */
void span_give(struct span *span);
/* Makes a range of addresses known that the driver did not take from a window. */
struct span *span_known(uint64_t start, uint64_t size);
void span_forget(struct span *span);
/* A table for what starts at each unit of a granule: empty when taken, and when given back. */
struct block **slots_new(void);
void slots_give(struct block **slots);
/* The pages behind a piece of it may hold RAM from now on. */
void span_touch(const struct span *span, uint64_t address, uint64_t bytes);

/* A block of memory, from `small` or from whole granules of its window. NULL when memory ran out. */
struct block *block_new(struct small *small, uint64_t bytes, enum block_kind kind);
/* A block that lies in memory already there. */
struct block *block_on(struct span *span, uint64_t address, uint64_t bytes, enum block_kind kind);
void block_end(struct block *block);
void block_own(struct block *block, struct context *context);

/* Physical memory (physical.h): false when the device has no `granules` left. */
bool physical_take(struct device *device, uint64_t granules);
void physical_give(struct device *device, uint64_t granules);

/* ---- devices and contexts ---- */

struct device {
    int ordinal;
    char name[64];
    CUuuid uuid;
    uint64_t memory, used; /* granules; used by this process */
    struct window *window;
    struct window *low;
    struct context *primary; /* made on first use, kept for the life of the process */
    unsigned primary_references;
    unsigned primary_flags;
    struct pool *default_pool, *current_pool;
    struct window *graph_window; /* addresses of graphs' memory, without memory behind */
    uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high; /* bytes */
};

struct context {
    struct handle handle;
    bool alive;
    struct device *device;
    unsigned flags;
    unsigned api_version;
    unsigned stacked;    /* how often it stands on threads' stacks */
    unsigned references; /* cuCtxAttach */
    unsigned long long id;
    uint64_t limits[CONTEXT_LIMITS];
    uint64_t stack_granules; /* for deeper stacks than the default */
    unsigned peers;          /* a bit for each device whose memory it may use */
    struct block *blocks;
    struct handle *handles;
    struct small device_memory, managed_memory, pinned_memory, low_memory;
    struct context *green_parent; /* a green context's view of the primary one: memory is the primary's */
    struct green *green;
    struct stream *legacy; /* its default stream, made on first use */
};

extern struct device devices[MAX_DEVICES];
extern int device_count;

struct device *device_get(CUdevice ordinal); /* NULL: no such device */
CUuuid device_uuid(int ordinal);             /* before devices are made, too */

/* The context that the calling thread's work and memory belong to, not checked for life; NULL when there is
 * none. */
struct context *context_current(void);
/* The living context behind a handle, or NULL. */
struct context *context_get(CUcontext handle);
/* Takes and gives back a context's memory; its structure stays. */
CUresult context_start(struct context *context);
void context_stop(struct context *context);
CUresult context_new(struct context **out, struct device *device, unsigned flags);
CUresult primary_retain(struct device *device, struct context **out);
CUresult primary_release(struct device *device);
/* Another handle for a context, for a green one; what is made through it is the context's own. */
struct context *context_view(struct context *context);
void context_end_view(struct context *view);
/* Whether the calling thread's current context may be used. */
CUresult context_state(void);

/* What a context's end does to the objects of each type; the memory blocks are ended after. */
void handle_teardown(struct handle *handle);
void external_end(struct external *external);
void texture_end(void *object);

#endif
