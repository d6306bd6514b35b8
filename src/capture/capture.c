/* Both halves of a stack in one (capture.h). */
#include "capture/capture.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>

#include "capture/elf_image.h"
#include "capture/fork_gate.h"
#include "capture/native.h"
#include "capture/python.h"
#include "capture/python_end.h"
#include "capture/thread_buffers.h"

#define FIRST_HINT 16 /* addresses asked for while it is not known where the interpreter is met */

static struct {
    enum capture_mode mode;
    uint32_t depth;
    struct elf_extent own;               /* this library; 0 bytes when it is part of the program */
    _Atomic unsigned long long unloaded; /* dlpi_subs when it was last looked at */
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

static int read_unloaded(struct dl_phdr_info *info, size_t bytes, void *count)
{
    (void)bytes;
    *(unsigned long long *)count = info->dlpi_subs;
    return 1;
}

void capture_start(enum capture_mode mode, uint32_t depth, void (*note)(const char *sentence))
{
    int saved = errno;
    unsigned long long unloaded = 0;
    dl_iterate_phdr(read_unloaded, &unloaded);
    atomic_store_explicit(&capture.unloaded, unloaded, memory_order_relaxed);
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

/* How many of the first addresses are this library's own; where it is part of the program, all up to
 * `caller`. */
static uint32_t count_own(const uintptr_t *addresses, uint32_t count, uintptr_t caller)
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

#define MIX UINT64_C(0x9e3779b97f4a7c15)

/* Mixes the addresses before the first that lies in `range` into *hash and returns their number. By four: no
 * multiplication waits for the one before. */
static inline uint32_t mix_up_to(const uintptr_t *addresses, uint32_t count, struct elf_extent range,
                                 uint64_t *hash)
{
    uint64_t a = *hash, b = 1, c = 2, d = 3;
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const uintptr_t *four = addresses + i;
        if ((four[0] - range.start < range.bytes) | (four[1] - range.start < range.bytes) |
            (four[2] - range.start < range.bytes) | (four[3] - range.start < range.bytes))
            break;
        a = (a ^ four[0]) * MIX;
        b = (b ^ four[1]) * MIX;
        c = (c ^ four[2]) * MIX;
        d = (d ^ four[3]) * MIX;
    }
    for (; i < count && addresses[i] - range.start >= range.bytes; i++)
        a = (a ^ addresses[i]) * MIX;
    a = (a ^ a >> 32 ^ i) * MIX;
    b = (b ^ b >> 32) * MIX;
    c = (c ^ c >> 32) * MIX;
    d = (d ^ d >> 32) * MIX;
    a = (a ^ (b << 13 | b >> 51) ^ (c << 29 | c >> 35) ^ (d << 47 | d >> 17)) * MIX;
    *hash = a ^ a >> 32;
    return i;
}

/* The native half where it takes an unwinder for unusual frames. With a range, it ends at the first address
 * in there: the interpreter's own frames can outnumber the rest, so at first no more is asked for than it
 * took lately. */
static void take_slowly(struct raw_stack *stack, struct thread_buffer *buffer, struct elf_extent range,
                        uintptr_t caller)
{
    uint32_t max = buffer->native_max, asked = max, count, own, kept;
    bool full;
    uint64_t hash;
    if (range.bytes != 0)
        asked = buffer->interpreter_at != 0 ? buffer->interpreter_at : FIRST_HINT;
    fork_gate_enter();
    for (;; asked *= 2) {
        asked = asked < max ? asked : max;
        count = native_walk(buffer->native, asked);
        full = count == asked;
        count = unwind_trusted(buffer->native, count);
        own = count_own(buffer->native, count, caller);
        hash = stack->hash;
        kept = mix_up_to(buffer->native + own, count - own, range, &hash);
        if (own + kept < count || !full || asked == max)
            break;
    }
    fork_gate_leave();
    if (range.bytes != 0) {
        uint32_t reached = own + kept < count ? own + kept + 1 : count;
        if (reached >= buffer->interpreter_at)
            buffer->interpreter_at = reached;
        else
            buffer->interpreter_at -= (buffer->interpreter_at - reached + 7) / 8;
    }
    stack->native = buffer->native + own;
    stack->native_count = kept;
    if (kept > capture.depth) {
        stack->native_count = capture.depth;
        mix_up_to(stack->native, capture.depth, (struct elf_extent){0}, &stack->hash);
    } else {
        stack->hash = hash;
    }
}

/* Of a walk that may end beyond the depth that is wanted. */
static inline void mix_walk(const struct unwind_trail *trail, struct elf_extent range, uintptr_t caller,
                            uint64_t before, struct known_stack *known)
{
    const uintptr_t *addresses = trail->pc + trail->first;
    *known = (struct known_stack){.before = before, .hash = before};
    known->own = count_own(addresses, trail->count, caller);
    addresses += known->own;
    known->native_count = mix_up_to(addresses, trail->count - known->own, range, &known->hash);
    if (known->native_count > capture.depth) {
        known->native_count = capture.depth;
        known->hash = before;
        mix_up_to(addresses, capture.depth, (struct elf_extent){0}, &known->hash);
    }
}

/* The native half of a stack whose frames are from `start` on. A thread mostly takes the stack that it took
 * before: not to mix and look that up again spares a tenth of an event's instructions. */
static inline void take_native(struct raw_stack *stack, struct thread_buffer *buffer, struct elf_extent range,
                               struct unwind_frame start)
{
    struct known_stack *known = &buffer->known;
    if (__builtin_expect(!unwind_walk(&buffer->unwinding, start, range), 0)) {
        take_slowly(stack, buffer, range, start.pc);
        return;
    }
    const struct unwind_trail *trail = &buffer->unwinding.last;
    if (!buffer->unwinding.unchanged || known->before != stack->hash)
        mix_walk(trail, range, start.pc, stack->hash, known);
    stack->native = trail->pc + trail->first + known->own;
    stack->native_count = known->native_count;
    stack->hash = known->hash;
    stack->memo = &known->memo;
}

/* The state of the function that called the one whose frame address this is, by the frame pointer that
 * __builtin_frame_address() makes sure of. */
static inline struct unwind_frame caller_of(const uintptr_t *frame)
{
    return (struct unwind_frame){.pc = frame[1], .sp = (uintptr_t)(frame + 2), .bp = frame[0]};
}

__attribute__((noinline)) void capture_take(struct raw_stack *stack)
{
    *stack = (struct raw_stack){0};
    if (capture.mode == CAPTURE_NONE)
        return;
    int saved = errno;
    struct thread_buffer *buffer = thread_buffer_get();
    if (buffer != NULL) {
        struct elf_extent range = {0};
        stack->native = buffer->native;
        stack->python = buffer->python;
        if (capture.mode & CAPTURE_PYTHON)
            stack->python_count = python_walk(buffer, &stack->hash, &range);
        if (capture.mode & CAPTURE_NATIVE)
            take_native(stack, buffer, range, caller_of(__builtin_frame_address(0)));
    }
    errno = saved;
}

void capture_modules_changed(void)
{
    int saved = errno;
    unsigned long long unloaded = 0;
    fork_gate_enter();
    dl_iterate_phdr(read_unloaded, &unloaded);
    if (atomic_exchange_explicit(&capture.unloaded, unloaded, memory_order_relaxed) != unloaded) {
        unwind_modules_changed();
        native_modules_changed();
        python_modules_changed();
        atomic_fetch_add_explicit(&capture.generation, 1, memory_order_release);
    }
    fork_gate_leave();
    errno = saved;
}

uint32_t capture_generation(void)
{
    return atomic_load_explicit(&capture.generation, memory_order_acquire);
}

void capture_before_fork(void)
{
    fork_gate_close();
}

void capture_after_fork_in_parent(void)
{
    fork_gate_open();
}

void capture_after_fork(void)
{
    fork_gate_reset();
    thread_buffers_after_fork();
    python_end_after_fork();
}
