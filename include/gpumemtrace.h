/*
 * gpumemtrace.h: for programs that want to tell gpumemtrace more, or to ask it something.
 *
 * A program with these calls runs the same whether it is traced (LD_PRELOAD=libgpumemtrace.so, or
 * `gpumemtrace run`) or not. Nothing has to be linked but dlsym (-ldl, a part of newer C libraries). Where
 * the library is not there, every function does nothing and answers 0, for the price of a load and a branch.
 *
 * C99 and C++11 and later, with GCC or Clang. Every function may be called from any thread and at any time,
 * also before the first allocation; none fails, throws, sets errno or uses the program's heap. Figures are
 * those of the whole process, all threads together. Sizes are in bytes, devices are CUDA ordinals as the
 * process sees them, names are UTF-8 and copied, as far as their first 255 bytes.
 */
#ifndef GPUMEMTRACE_H
#define GPUMEMTRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What this header offers: one more with every addition. Nothing is ever taken away or changed. */
#define GPUMEMTRACE_API 1

/* Device memory has two layers: what the driver handed out, and what the allocators of frameworks handed out
 * of that, such as tensors. The second lies inside the first. */
#define GPUMEMTRACE_DRIVER    0
#define GPUMEMTRACE_FRAMEWORK 1

#define GPUMEMTRACE_ALL_DEVICES (-1)

/* Device memory of one layer, on one device or on all together. */
struct gpumemtrace_usage {
    uint64_t live_bytes;  /* now */
    uint64_t live_blocks; /* now */
    uint64_t start_bytes; /* live_bytes when the mark was set */
    uint64_t peak_bytes;  /* the highest live_bytes since then */
};

#ifdef GPUMEMTRACE_LIBRARY /* the library itself, which exports them */
#define GPUMEMTRACE_FUNCTION_ __attribute__((visibility("default")))
#else
#define GPUMEMTRACE_FUNCTION_ static inline
#endif

/* GPUMEMTRACE_API of a library that records, or will from the first allocation on; 0 where there is none, it
 * is disabled, or it has finished because the process ends. */
GPUMEMTRACE_FUNCTION_ int gpumemtrace_active(void);

/*
 * Blocks of an allocator of the program's own: memory that it took from the driver, or from another
 * allocator, and hands out in pieces. Each is listed with the caller's stack under the allocator's name
 * ("rmm", "cupy"), and the report tells how fragmented the allocator's memory is.
 *
 * begin: `bytes` at `address` are handed out. Where the memory around it is known, so is its device;
 * `device` is for where it is not. A block that begins where another of this allocator's lives ends that one.
 *
 * end: the block is taken back. To be called before the allocator can hand the address out again: under its
 * lock, or before the block is on its free list. An address without a block is ignored.
 *
 * An allocator may hand on another's memory, so that both have a block at one address: their names tell them
 * apart. Six names can be told apart in this way; further ones must keep to addresses of their own.
 */
GPUMEMTRACE_FUNCTION_ void gpumemtrace_block_begin(const char *allocator, const void *address, size_t bytes,
                                                   int device);
GPUMEMTRACE_FUNCTION_ void gpumemtrace_block_end(const char *allocator, const void *address);

/*
 * Phases: from begin to end the process is in the phase of that name, whatever its threads do; the report
 * tells the peak in each, and what it left behind. They nest: end is for the innermost that the thread began.
 * With gpumemtrace_step() at the end of each step (a batch, a request) growth is told per step.
 */
GPUMEMTRACE_FUNCTION_ void gpumemtrace_phase_begin(const char *name);
GPUMEMTRACE_FUNCTION_ void gpumemtrace_phase_end(void);
GPUMEMTRACE_FUNCTION_ void gpumemtrace_step(void);

/* Marks: the peak is watched from mark to unmark. A mark is a number above 0; 0, which is no mark, where
 * nothing can be recorded or 64 are set. */
GPUMEMTRACE_FUNCTION_ int gpumemtrace_mark(void);
GPUMEMTRACE_FUNCTION_ void gpumemtrace_unmark(int mark);

/* What a layer uses of a device (0 to 15, or GPUMEMTRACE_ALL_DEVICES), now and since a mark. With mark 0,
 * start_bytes is 0 and peak_bytes the whole run's, which is not known (0) for all devices together. Returns
 * 1, or 0 where there is no such mark, layer or device and where nothing was recorded: *usage is all zero. */
GPUMEMTRACE_FUNCTION_ int gpumemtrace_get_usage(int mark, int layer, int device,
                                                struct gpumemtrace_usage *usage);

#ifndef GPUMEMTRACE_LIBRARY

#include <dlfcn.h>
#include <errno.h>

/* *known is the function's address; *known's own when it is known that there is none; NULL at first. */
static inline void *gpumemtrace_find_(void **known, const char *name)
{
    void *found = __atomic_load_n(known, __ATOMIC_ACQUIRE);
    if (found == NULL) {
        int kept = errno;
        found = dlsym(NULL, name); /* RTLD_DEFAULT */
        if (found == NULL) {
            dlerror(); /* that is no error of the program's */
            found = known;
        }
        __atomic_store_n(known, found, __ATOMIC_RELEASE);
        errno = kept;
    }
    return found == (void *)known ? NULL : found;
}

#define GPUMEMTRACE_FORWARD_(leave, type, name, parameters, arguments)                                       \
    {                                                                                                        \
        static void *known;                                                                                  \
        void *found = gpumemtrace_find_(&known, #name);                                                      \
        type(*function) parameters;                                                                          \
        if (found != NULL) {                                                                                 \
            __builtin_memcpy(&function, &found, sizeof function);                                            \
            leave function arguments;                                                                        \
        }                                                                                                    \
    }

static inline int gpumemtrace_active(void)
{
    GPUMEMTRACE_FORWARD_(return, int, gpumemtrace_active, (void), ())
    return 0;
}

static inline void gpumemtrace_block_begin(const char *allocator, const void *address, size_t bytes,
                                           int device)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_block_begin, (const char *, const void *, size_t, int),
                         (allocator, address, bytes, device))
}

static inline void gpumemtrace_block_end(const char *allocator, const void *address)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_block_end, (const char *, const void *), (allocator, address))
}

static inline void gpumemtrace_phase_begin(const char *name)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_phase_begin, (const char *), (name))
}

static inline void gpumemtrace_phase_end(void)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_phase_end, (void), ())
}

static inline void gpumemtrace_step(void)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_step, (void), ())
}

static inline int gpumemtrace_mark(void)
{
    GPUMEMTRACE_FORWARD_(return, int, gpumemtrace_mark, (void), ())
    return 0;
}

static inline void gpumemtrace_unmark(int mark)
{
    GPUMEMTRACE_FORWARD_(, void, gpumemtrace_unmark, (int), (mark))
}

static inline int gpumemtrace_get_usage(int mark, int layer, int device, struct gpumemtrace_usage *usage)
{
    GPUMEMTRACE_FORWARD_(return, int, gpumemtrace_get_usage, (int, int, int, struct gpumemtrace_usage *),
                               (mark, layer, device, usage))
    usage->live_bytes = usage->live_blocks = usage->start_bytes = usage->peak_bytes = 0;
    return 0;
}

#undef GPUMEMTRACE_FORWARD_
#endif

#undef GPUMEMTRACE_FUNCTION_

#ifdef __cplusplus
}
#endif

#endif
