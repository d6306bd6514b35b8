/*
 * Addresses: the windows that memory is taken from, the spans of granules in use, and which allocation an
 * address lies in. A table of two levels, indexed by granule, leads from any address to its span in constant
 * time.
 *
 * A window's memory is address space without a price until it is touched. Only the driver's own copies, a
 * program that holds a host pointer, and other processes touch it, so RAM is given back when a touched
 * granule is freed.
 */
#include "entry.h"
#include "simgpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAF_BITS      13 /* granules of a leaf */
#define TABLE_SIZE     (1u << 13)
#define LEAF_SIZE      (1u << LEAF_BITS)
#define HOST_WINDOW    (256ull << 30)
#define MANAGED_WINDOW (1024ull << 30)
#define LOW_WINDOW     (512ull << 20) /* small enough to lie below the shadow of a sanitizer */
#define FIRST_ADDRESS  (32ull << 40)  /* where little else is, with sanitizers too */
#define ADDRESS_STEP   (1ull << 32)
#define HIGH_FD        700 /* descriptors of ours start here, out of the way of a program's own */

static struct span **table[TABLE_SIZE]; /* 2^47 bytes of addresses */
static struct slab span_slab = {.size = sizeof(struct span)};
static struct slab block_slab = {.size = sizeof(struct block)};
static struct slab slots_slab = {.size = GRANULE_UNITS * sizeof(struct block *)};
static unsigned long long last_id;

/* ---- the table ---- */

static struct span **entry_of(uint64_t address, bool make)
{
    uint64_t granule = address / GRANULE, at = granule >> LEAF_BITS;
    if (at >= TABLE_SIZE)
        return NULL;
    if (!table[at] && make)
        table[at] = calloc(LEAF_SIZE, sizeof(struct span *));
    return table[at] ? &table[at][granule & (LEAF_SIZE - 1)] : NULL;
}

static bool table_set(uint64_t start, uint64_t size, struct span *span)
{
    for (uint64_t at = start; at < start + size; at += GRANULE) {
        struct span **entry = entry_of(at, span != NULL);
        if (!entry)
            return false;
        *entry = span;
    }
    return true;
}

struct span *span_at(uint64_t address)
{
    struct span **entry = entry_of(address, false);
    return entry ? *entry : NULL;
}

/* ---- windows ---- */

static struct window *window_at(void *base, uint64_t size, int fd, struct device *device)
{
    struct window *window = calloc(1, sizeof *window);
    uint64_t *touched = calloc(size / GRANULE / 64 + 1, sizeof *touched);
    /* Addresses are handed out in whole granules: the ragged ends are left alone. */
    uint64_t start = round_up((uint64_t)base, GRANULE), lost = start - (uint64_t)base;
    if (!window || !touched || !heap_add(&window->granules, start / GRANULE, (size - lost) / GRANULE)) {
        free(window);
        free(touched);
        return NULL;
    }
    window->base = (uint64_t)base;
    window->size = size;
    window->fd = fd;
    window->device = device;
    window->touched = touched;
    return window;
}

uint64_t window_size(uint64_t wanted, uint64_t needed)
{
    uint64_t most = simgpu_window_bytes() / GRANULE * GRANULE;
    return wanted <= most ? wanted : most > needed ? most : needed;
}

/* Maps `size` bytes so that they begin at a granule, and file offsets are granules too. The same calls give
 * the same addresses in every process, as long as nothing else lies there: runs can be compared. */
static void *map_aligned(uint64_t size, int fd)
{
    static uint64_t hint = FIRST_ADDRESS;
    int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
    void *at_once = mmap((void *)hint, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at_once == MAP_FAILED)
        return NULL;
    if ((uint64_t)at_once % GRANULE == 0) {
        hint += round_up(size + GRANULE, ADDRESS_STEP);
        return at_once;
    }
    munmap(at_once, size);
    char *room =
        mmap((void *)hint, size + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    hint += round_up(size + GRANULE, ADDRESS_STEP);
    char *start = (char *)round_up((uint64_t)room, GRANULE);
    if (start > room)
        munmap(room, (size_t)(start - room));
    munmap(start + size, (size_t)(room + GRANULE - start));
    if (mmap(start, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(start, size);
        return NULL;
    }
    return start;
}

static int memory_file(uint64_t size)
{
    int low = syscall(SYS_memfd_create, "simgpu", MFD_CLOEXEC);
    if (low < 0)
        return -1;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
    if (fd < 0)
        fd = low;
    else
        close(low);
    if (ftruncate(fd, (off_t)size)) {
        close(fd);
        return -1;
    }
    return fd;
}

struct window *window_of_fd(int fd, uint64_t size)
{
    void *base = map_aligned(size, fd);
    struct window *window = base ? window_at(base, size, fd, NULL) : NULL;
    if (base && !window)
        munmap(base, size);
    return window;
}

struct window *window_of_addresses(uint64_t size)
{
    struct window *window = window_of_fd(-1, size);
    if (window)
        mprotect((void *)window->base, size, PROT_NONE);
    return window;
}

struct window *window_new(uint64_t size, struct device *device, bool shared)
{
    int fd = shared ? memory_file(size) : -1;
    if (shared && fd < 0)
        return NULL;
    struct window *window = window_of_fd(fd, size);
    if (window)
        window->device = device;
    else if (fd >= 0)
        close(fd);
    return window;
}

void window_end(struct window *window)
{
    munmap((void *)window->base, window->size);
    if (window->fd >= 0)
        close(window->fd);
    free(window->touched);
    free(window);
}

/* As large as there is room for: a limit on addresses, or a sanitizer, may leave less. */
static struct window *host_memory_window(uint64_t size)
{
    struct window *window = NULL;
    for (; !window && size >= GRANULE; size /= 2)
        window = window_new(size, NULL, false);
    return window;
}

struct window *host_window(void)
{
    static struct window *window;
    if (!window)
        window = host_memory_window(window_size(HOST_WINDOW, GRANULE));
    return window;
}

struct window *managed_window(void)
{
    static struct window *window;
    if (!window)
        window = host_memory_window(window_size(MANAGED_WINDOW, GRANULE));
    return window;
}

struct window *low_window(struct device *device)
{
    for (uint64_t at = 0x40000000; !device->low && at + LOW_WINDOW <= 0x100000000; at += LOW_WINDOW / 4) {
        void *base = mmap((void *)at, LOW_WINDOW, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (base == MAP_FAILED)
            continue;
        if ((uint64_t)base == at)
            device->low = window_at(base, LOW_WINDOW, -1, device);
        if (!device->low)
            munmap(base, LOW_WINDOW);
    }
    return device->low;
}

/* ---- spans ---- */

struct span *span_take(struct window *window, uint64_t bytes)
{
    if (!bytes || bytes > window->size)
        return NULL;
    uint64_t granules = (bytes + GRANULE - 1) / GRANULE;
    if (!physical_take(window->device, granules))
        return NULL;
    struct extent *extent = heap_take(&window->granules, granules);
    if (!extent && window->grow && window->grow(window, granules))
        extent = heap_take(&window->granules, granules);
    struct span *span = extent ? slab_take(&span_slab) : NULL;
    if (span) {
        span->start = extent->start * GRANULE;
        span->size = granules * GRANULE;
        span->window = window;
        span->extent = extent;
        if (table_set(span->start, span->size, span))
            return span;
        table_set(span->start, span->size, NULL);
        slab_give(&span_slab, span);
    }
    if (extent)
        heap_give(&window->granules, extent);
    physical_give(window->device, granules);
    return NULL;
}

static void drop_pages(struct window *window, uint64_t start)
{
    if (window->fd >= 0)
        fallocate(window->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(start - window->base),
                  GRANULE);
    else
        madvise((void *)start, GRANULE, MADV_DONTNEED);
}

void span_give(struct span *span)
{
    struct window *window = span->window;
    for (uint64_t at = span->start; at < span->start + span->size; at += GRANULE) {
        uint64_t index = (at - window->base) / GRANULE, bit = 1ull << (index % 64);
        if (window->touched[index / 64] & bit) {
            drop_pages(window, at);
            window->touched[index / 64] &= ~bit;
        }
    }
    table_set(span->start, span->size, NULL);
    heap_give(&window->granules, span->extent);
    physical_give(window->device, span->size / GRANULE);
    slab_give(&span_slab, span);
}

struct span *span_known(uint64_t start, uint64_t size)
{
    struct span *span = slab_take(&span_slab);
    if (!span)
        return NULL;
    span->start = start;
    span->size = size;
    if (table_set(start, size, span))
        return span;
    span_forget(span);
    return NULL;
}

void span_forget(struct span *span)
{
    table_set(span->start, span->size, NULL);
    slab_give(&span_slab, span);
}

void span_touch(const struct span *span, uint64_t address, uint64_t bytes)
{
    struct window *window = span->window;
    if (!window || !bytes)
        return;
    uint64_t first = (address - window->base) / GRANULE,
             last = (address + bytes - 1 - window->base) / GRANULE;
    for (uint64_t index = first; index <= last; index++)
        window->touched[index / 64] |= 1ull << (index % 64);
}

/* ---- blocks ---- */

struct block **slots_new(void)
{
    return slab_take_blank(&slots_slab);
}

void slots_give(struct block **slots)
{
    slab_give(&slots_slab, slots);
}

struct block *block_on(struct span *span, uint64_t address, uint64_t bytes, enum block_kind kind)
{
    struct block *block = slab_take(&block_slab);
    if (!block)
        return NULL;
    block->address = address;
    block->size = bytes;
    block->kind = kind;
    block->span = span;
    block->id = ++last_id;
    return block;
}

static bool small_grow(struct small *small)
{
    struct span *span = span_take(small->window, GRANULE);
    if (!span)
        return false;
    span->slots = slots_new();
    span->first = span->slots ? heap_add(&small->heap, span->start / UNIT, GRANULE_UNITS) : NULL;
    if (span->first)
        return true;
    if (span->slots)
        slots_give(span->slots);
    span_give(span);
    return false;
}

static struct block *block_of_units(struct small *small, uint64_t bytes, enum block_kind kind)
{
    uint64_t units = (bytes + UNIT - 1) / UNIT;
    struct extent *extent = heap_take(&small->heap, units);
    if (!extent && small_grow(small))
        extent = heap_take(&small->heap, units);
    if (!extent)
        return NULL;
    struct span *span = span_at(extent->start * UNIT);
    struct block *block = block_on(span, extent->start * UNIT, bytes, kind);
    if (!block) {
        heap_give(&small->heap, extent);
        return NULL;
    }
    block->extent = extent;
    block->small = small;
    span->slots[extent->start % GRANULE_UNITS] = block;
    return block;
}

struct block *block_new(struct small *small, uint64_t bytes, enum block_kind kind)
{
    if (bytes <= GRANULE / 2)
        return block_of_units(small, bytes, kind);
    struct span *span = span_take(small->window, bytes);
    if (!span)
        return NULL;
    span->block = block_on(span, span->start, bytes, kind);
    if (span->block)
        return span->block;
    span_give(span);
    return NULL;
}

void block_own(struct block *block, struct context *context)
{
    block->context = context;
    block->next = context->blocks;
    block->before = &context->blocks;
    if (block->next)
        block->next->before = &block->next;
    context->blocks = block;
}

void block_end(struct block *block)
{
    if (block->on_end)
        block->on_end(block);
    struct span *span = block->span;
    if (block->before) {
        *block->before = block->next;
        if (block->next)
            block->next->before = block->before;
    }
    if (block->extent) {
        span->slots[block->extent->start % GRANULE_UNITS] = NULL;
        struct extent *extent = heap_give(&block->small->heap, block->extent);
        if (extent_is_whole_region(extent)) {
            heap_remove(&block->small->heap, extent);
            slots_give(span->slots);
            span_give(span);
        }
    } else if (span && span->block == block) {
        if (span->window)
            span_give(span);
        else
            span_forget(span);
    }
    slab_give(&block_slab, block);
}

struct block *block_starting(uint64_t address)
{
    struct span *span = span_at(address);
    struct block *block = NULL;
    if (span && span->slots)
        block = address % UNIT ? NULL : span->slots[address / UNIT % GRANULE_UNITS];
    else if (span)
        block = span->block;
    return block && block->address == address ? block : NULL;
}

struct block *block_at(uint64_t address)
{
    struct span *span = span_at(address);
    if (!span)
        return registered_at(address);
    struct block *block = span->block;
    if (span->slots)
        for (uint64_t slot = address / UNIT % GRANULE_UNITS + 1; slot-- > 0 && !block;)
            block = span->slots[slot];
    return block && address - block->address < block->size ? block : NULL;
}
