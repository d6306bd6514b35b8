/*
 * The events a recording is made of. One struct serves the hooks, the ledger, the writer and the reader, so
 * that what happened in the traced process and what is read back later are the same thing.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC since the recording began. Sites are catalog ids.
 */
#ifndef LEDGER_EVENT_H
#define LEDGER_EVENT_H

#include <stdint.h>

/* X(symbol, code in the trace file, fields in the order they are stored). The codes never change meaning. */
#define EVENTS(X)                                                                                            \
    X(ALLOC, 16, FIELD_SITE | FIELD_KEY | FIELD_SIZE | FIELD_CONTEXT) /* a block begins */                   \
    X(FREE, 17, FIELD_KEY) /* one reference ends; the last one ends the block */                             \
    X(UNFREE, 18,                                                                                            \
      FIELD_KEY | FIELD_SITE | FIELD_SIZE | FIELD_CONTEXT |                                                  \
          FIELD_BORN)              /* the driver refused that free: the block is back */                     \
    X(RETAIN, 19, FIELD_KEY)       /* one more reference to a living block */                                \
    X(TEARDOWN, 20, FIELD_CONTEXT) /* a context went, and every block that lived in it */                    \
    X(FAILED, 21,                                                                                            \
      FIELD_SITE | FIELD_SIZE | FIELD_ERROR) /* an allocation the driver refused, not for want of memory */  \
    X(OOM, 22,                                                                                               \
      FIELD_SITE | FIELD_SIZE | FIELD_ERROR | FIELD_FREE_BYTES |                                             \
          FIELD_TOTAL_BYTES)       /* … and for want of memory */                                          \
    X(FOREIGN_FREE, 23, FIELD_KEY) /* a free, forwarded, of something never seen */                          \
    X(MEMORY, 24,                                                                                            \
      FIELD_DEVICE | FIELD_FREE_BYTES | FIELD_TOTAL_BYTES) /* as SAMPLE; what recordings of 0.1.0 have */    \
    X(MAP, 40, FIELD_SITE | FIELD_KEY | FIELD_SIZE) /* memory of that site can be reached at that address */ \
    X(UNMAP, 41, FIELD_KEY)                         /* … and no longer */                                  \
    X(POOL, 42,                                                                                              \
      FIELD_KEY | FIELD_SIZE | FIELD_FREE_BYTES | FIELD_TOTAL_BYTES |                                        \
          FIELD_DEVICE) /* a memory pool's release threshold (size), reserved (total), unused of it (free)   \
                         */                                                                                  \
    X(PHASE_BEGIN, 43, FIELD_NAME | FIELD_RANGE) /* from here the process is in a phase of that name … */  \
    X(PHASE_END, 44, FIELD_RANGE)                /* … to here; ranges are told apart by number */          \
    X(STEP, 45, FIELD_SIZE)                      /* a step of the program ended, the size-th */              \
    X(CONTEXTS, 46,                                                                                          \
      FIELD_DEVICE | FIELD_SIZE | FIELD_COUNT |                                                              \
          FIELD_DETAIL) /* contexts that live on a device, what they took (enum basis) */                    \
    X(CODE, 47,                                                                                              \
      FIELD_DEVICE | FIELD_SIZE | FIELD_COUNT | FIELD_DETAIL) /* the same of loaded modules and libraries */ \
    X(PROCESSES, 48,                                                                                         \
      FIELD_DEVICE | FIELD_SIZE |                                                                            \
          FIELD_TOTAL_BYTES) /* NVML's: this process's bytes (0: not listed), and all processes' */          \
    X(RESIZE, 49, FIELD_KEY | FIELD_SIZE) /* memory behind a handle turns out to be that large */            \
    X(SAMPLE, 50,                                                                                            \
      FIELD_DEVICE | FIELD_SIZE | FIELD_FREE_BYTES | FIELD_TOTAL_BYTES |                                     \
          FIELD_DETAIL) /* what is free (enum sample_reason), and reserved for graphs (size) */

/* When the driver was asked how much is free. X(symbol, name in JSON); the numbers are the recording's. */
#define SAMPLE_REASONS(X)                                                                                    \
    X(ALLOCATION, "allocation")                                                                              \
    X(START, "start")     /* before this process had anything on the device */                               \
    X(CONTEXT, "context") /* a context was made */                                                           \
    X(CODE, "code")       /* a module or library was loaded */                                               \
    X(OOM, "out_of_memory")                                                                                  \
    X(EXIT, "exit")

#define AS_REASON(symbol, name) SAMPLE_##symbol,
enum sample_reason { SAMPLE_REASONS(AS_REASON) SAMPLE_REASON_COUNT };
#undef AS_REASON

/*
 * How it is known what contexts, or code, took: by the difference that they made. X(symbol, name in JSON),
 * the surest last; the numbers are the recording's.
 */
#define BASES(X)                                                                                             \
    X(UNKNOWN, "unknown") /* it is not */                                                                    \
    X(PART, "part")       /* of some it is not: they took this at least */                                   \
    X(DEVICE, "device")   /* in what is free on the device: what others took meanwhile is in it */           \
    X(PROCESS, "process") /* in what this process uses, by NVML */

#define AS_BASIS(symbol, name) BASIS_##symbol,
enum basis { BASES(AS_BASIS) BASIS_COUNT };
#undef AS_BASIS

enum event_field {
    FIELD_SITE = 1 << 0,
    FIELD_KEY = 1 << 1,
    FIELD_SIZE = 1 << 2,
    FIELD_CONTEXT = 1 << 3,
    FIELD_BORN = 1 << 4,
    FIELD_ERROR = 1 << 5,
    FIELD_FREE_BYTES = 1 << 6,
    FIELD_TOTAL_BYTES = 1 << 7,
    FIELD_DEVICE = 1 << 8,
    FIELD_NAME = 1 << 9,
    FIELD_RANGE = 1 << 10,
    FIELD_COUNT = 1 << 11,
    FIELD_DETAIL = 1 << 12,
};

#define AS_EVENT(symbol, code, fields) EVENT_##symbol = code,
enum event_type { EVENTS(AS_EVENT) };
#undef AS_EVENT

/* Which fields an event has; 0 for a code that is no event's. */
static inline unsigned event_fields(unsigned code)
{
#define AS_EVENT(symbol, value, fields)                                                                      \
    case value:                                                                                              \
        return fields;
    switch (code) {
        EVENTS(AS_EVENT)
    default:
        return 0;
    }
#undef AS_EVENT
}

/* Which numbers a block's key is taken from: equal numbers of two key spaces are different blocks. */
enum key_space {
    KEY_ADDRESS,    /* device, managed and pinned pointers: CUDA's one unified address range */
    KEY_REGISTERED, /* host ranges registered with the driver: the program's own addresses */
    KEY_HANDLE,     /* CUmemGenericAllocationHandle */
    KEY_ARRAY,      /* CUarray, CUmipmappedArray */
    KEY_GRAPH,      /* allocation nodes of graphs */
    KEY_FRAMEWORK,  /* addresses PyTorch's allocator hands out inside its own driver blocks */
    KEY_ALLOCATOR,  /* the same for other allocators: a space each, since one may hand on another's memory */
    KEY_ALLOCATOR_LAST = KEY_ALLOCATOR + 6, /* … and this one for all further ones */
    KEY_POOL,                               /* CUmemoryPool: of no block */
    KEY_SPACE_COUNT
};

#define KEY_NUMBER_BITS 60

/* Addresses and handles are user-space pointers, under 2^57 on every Linux the driver supports. */
static inline uint64_t block_key(enum key_space space, uint64_t number)
{
    return (uint64_t)space << KEY_NUMBER_BITS | (number & ((UINT64_C(1) << KEY_NUMBER_BITS) - 1));
}

static inline uint64_t block_key_number(uint64_t key)
{
    return key & ((UINT64_C(1) << KEY_NUMBER_BITS) - 1);
}

static inline enum key_space block_key_space(uint64_t key)
{
    return (enum key_space)(key >> KEY_NUMBER_BITS);
}

/* No event has both of two fields that share their room: up to 80 bytes are set to zero in the hot path by
 * plain stores, more by a loop that takes 15 ns. */
struct event {
    enum event_type type;
    uint32_t site;
    uint64_t time_ns;
    uint64_t key;
    uint64_t size;
    uint32_t context; /* which context's end takes the block with it; 0 for none */
    int32_t error;    /* the CUresult */
    int32_t device;
    union {
        uint32_t name; /* a string of the catalog */
        uint32_t count;
    };
    union {
        uint64_t born_ns; /* when the block was allocated */
        uint64_t free_bytes;
    };
    uint64_t total_bytes;
    union {
        uint32_t range;
        uint32_t detail;
    };
};

#define EVENT_ASSERT(symbol, number, fields)                                                                 \
    _Static_assert(((fields)&FIELD_NAME) == 0 || ((fields)&FIELD_COUNT) == 0, #symbol);                      \
    _Static_assert(((fields)&FIELD_BORN) == 0 || ((fields)&FIELD_FREE_BYTES) == 0, #symbol);                 \
    _Static_assert(((fields)&FIELD_RANGE) == 0 || ((fields)&FIELD_DETAIL) == 0, #symbol);
EVENTS(EVENT_ASSERT)
#undef EVENT_ASSERT

#endif
