/* Both halves of a stack in one (capture.h). */
#include "capture/capture.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>

#include "capture/elf_image.h"
#include "capture/native.h"
#include "capture/python.h"
#include "capture/thread_buffers.h"

#define FIRST_HINT 16 /* addresses asked for while it is not known where the interpreter is met */

static struct {
    enum capture_mode mode;
    uint32_t depth;
    struct elf_extent own; /* this library; 0 bytes when it is part of the program */
    _Atomic uint32_t generation;
} capture;

struct own_search {
    bool is_program;
    struct elf_extent extent;
};

static int find_own(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    struct own_search *search = arg;
    search->extent = elf_image_extent(info);
    if ((uintptr_t)&capture_take - search->extent.start < search->extent.bytes)
        return 1;
    search->is_program = false; /* which comes first */
    return 0;
}

void capture_start(enum capture_mode mode, uint32_t depth, void (*note)(const char *sentence))
{
    int saved = errno;
    struct own_search own = {.is_program = true};
    if (dl_iterate_phdr(find_own, &own) && !own.is_program)
        capture.own = own.extent;
    capture.depth = depth < 1 ? 1 : depth > CAPTURE_DEPTH_MAX ? CAPTURE_DEPTH_MAX : depth;
    thread_buffers_start(capture.depth);
    if (mode & CAPTURE_NATIVE)
        native_start(note);
    if (mode & CAPTURE_PYTHON)
        python_start(note);
    capture.mode = mode;
    errno = saved;
}

/* Index of the first address inside the interpreter, or `count`. */
static uint32_t find_interpreter(const uintptr_t *addresses, uint32_t count, struct elf_extent range)
{
    for (uint32_t i = 0; i < count; i++)
        if (addresses[i] - range.start < range.bytes)
            return i;
    return count;
}

/* Fills the buffer with the addresses up to the interpreter and returns their number. The interpreter's own
 * frames can outnumber the rest, so at first no more is asked for than it took lately. */
static uint32_t walk_to_interpreter(struct thread_buffer *buffer, struct elf_extent range)
{
    uint32_t asked = buffer->interpreter_at != 0 ? buffer->interpreter_at : FIRST_HINT;
    uint32_t count, end;
    for (;; asked *= 2) {
        asked = asked < buffer->native_max ? asked : buffer->native_max;
        count = native_walk(buffer->native, asked);
        end = find_interpreter(buffer->native, count, range);
        if (end < count || count < asked || asked == buffer->native_max)
            break;
    }
    uint32_t reached = end < count ? end + 1 : count;
    if (reached >= buffer->interpreter_at)
        buffer->interpreter_at = reached;
    else
        buffer->interpreter_at -= (buffer->interpreter_at - reached + 7) / 8;
    return end;
}

/* The first address that is not this library's own; in a program it is part of, the first beyond
 * capture_take(). */
static uint32_t skip_own(const uintptr_t *addresses, uint32_t count, uintptr_t caller)
{
    uint32_t i = 0;
    if (capture.own.bytes != 0) {
        while (i < count && addresses[i] - capture.own.start < capture.own.bytes)
            i++;
        return i;
    }
    while (i < count && i < OWN_FRAMES_MAX && addresses[i] != caller)
        i++;
    return i < count && addresses[i] == caller ? i : 0;
}

static uint64_t mix_addresses(uint64_t hash, const uintptr_t *addresses, uint32_t count)
{
    /* Two sums, so that one multiplication need not wait for the other. */
    uint64_t other = count;
    uint32_t i = 0;
    for (; i + 1 < count; i += 2) {
        hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
        other = (other ^ addresses[i + 1]) * UINT64_C(0xc2b2ae3d27d4eb4f);
        hash ^= hash >> 32;
        other ^= other >> 32;
    }
    if (i < count)
        hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ other) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

__attribute__((noinline)) void capture_take(struct raw_stack *stack)
{
    *stack = (struct raw_stack){0};
    if (capture.mode == CAPTURE_NONE)
        return;
    int saved = errno;
    struct thread_buffer *buffer = thread_buffer_get();
    if (buffer != NULL) {
        stack->native = buffer->native;
        stack->python = buffer->python;
        uint64_t hash = 0;
        if (capture.mode & CAPTURE_PYTHON)
            stack->python_count = python_walk(buffer->python, buffer->python_max, &hash);
        if (capture.mode & CAPTURE_NATIVE) {
            struct elf_extent range = {0};
            if (stack->python_count != 0)
                range = python_interpreter();
            uint32_t count = range.bytes != 0 ? walk_to_interpreter(buffer, range)
                                              : native_walk(buffer->native, buffer->native_max);
            uint32_t own = skip_own(buffer->native, count, (uintptr_t)__builtin_return_address(0));
            stack->native += own;
            stack->native_count = count - own < capture.depth ? count - own : capture.depth;
        }
        stack->hash = mix_addresses(hash, stack->native, stack->native_count);
    }
    errno = saved;
}

void capture_modules_changed(void)
{
    int saved = errno;
    native_modules_changed();
    python_modules_changed();
    atomic_fetch_add_explicit(&capture.generation, 1, memory_order_release);
    errno = saved;
}

uint32_t capture_generation(void)
{
    return atomic_load_explicit(&capture.generation, memory_order_acquire);
}

void capture_after_fork(void)
{
    thread_buffers_after_fork();
}
