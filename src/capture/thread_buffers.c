/* Buffers by thread (thread_buffers.h). A buffer never moves or goes away; the list only grows at its head.
 */
#include "capture/thread_buffers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"

#define FIRST_COLLECTION 64 /* buffers */

static __thread struct thread_buffer *mine;

static struct {
    uint32_t depth;
    _Atomic(struct thread_buffer *) buffers;
    _Atomic uint32_t count;
    _Atomic uint32_t collect_at; /* look for ended threads when there are this many buffers */
} all = {.depth = CAPTURE_DEPTH_DEFAULT, .collect_at = FIRST_COLLECTION};

static int64_t own_id(void)
{
    return (int64_t)getpid() << 32 | (uint32_t)syscall(SYS_gettid);
}

void thread_buffers_start(uint32_t depth)
{
    all.depth = depth;
}

static bool has_ended(int64_t owner)
{
    if (owner == 0)
        return true;
    /* Another process's: this is a child made by a bare clone(). Not ours to judge. */
    if (owner >> 32 != getpid())
        return false;
    return syscall(SYS_tgkill, getpid(), (int)(uint32_t)owner, 0) != 0 && errno == ESRCH;
}

/* A buffer left behind by an ended thread, most simply by one that had the same id. */
static struct thread_buffer *take_over(int64_t id)
{
    struct thread_buffer *buffer = atomic_load_explicit(&all.buffers, memory_order_acquire);
    for (; buffer != NULL; buffer = buffer->next)
        if (atomic_load_explicit(&buffer->owner, memory_order_relaxed) == id)
            return buffer;

    uint32_t count = atomic_load_explicit(&all.count, memory_order_relaxed);
    if (count < atomic_load_explicit(&all.collect_at, memory_order_relaxed))
        return NULL;
    uint32_t living = 0;
    struct thread_buffer *taken = NULL;
    buffer = atomic_load_explicit(&all.buffers, memory_order_acquire);
    for (; buffer != NULL; buffer = buffer->next) {
        int64_t owner = atomic_load_explicit(&buffer->owner, memory_order_relaxed);
        if (!has_ended(owner))
            living++;
        else if (taken == NULL && atomic_compare_exchange_strong(&buffer->owner, &owner, id))
            taken = buffer;
    }
    /* While most are free this is worth doing again for the next thread; else not before their number has
     * doubled. */
    atomic_store_explicit(&all.collect_at, living < count / 2 ? count : 2 * count, memory_order_relaxed);
    return taken;
}

static struct thread_buffer *add_buffer(int64_t id)
{
    uint32_t native_max = all.depth + OWN_FRAMES_MAX;
    size_t bytes = sizeof(struct thread_buffer) + all.depth * sizeof(struct python_frame) +
                   native_max * sizeof(uintptr_t) + unwind_memory_bytes(native_max);
    struct thread_buffer *buffer = pages_alloc(bytes);
    if (buffer == NULL)
        return NULL;
    buffer->native_max = native_max;
    buffer->python_max = all.depth;
    buffer->python = (struct python_frame *)(buffer + 1);
    buffer->native = (uintptr_t *)(buffer->python + all.depth);
    unwind_memory_init(&buffer->unwinding, native_max, buffer->native + native_max);
    atomic_store_explicit(&buffer->owner, id, memory_order_relaxed);
    buffer->next = atomic_load_explicit(&all.buffers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&all.buffers, &buffer->next, buffer))
        ;
    atomic_fetch_add_explicit(&all.count, 1, memory_order_relaxed);
    return buffer;
}

struct thread_buffer *thread_buffer_get(void)
{
    if (__builtin_expect(mine == NULL, 0)) {
        int64_t id = own_id();
        mine = take_over(id);
        if (mine == NULL) {
            mine = add_buffer(id);
        } else {
            mine->interpreter_at = 0;
            mine->known = (struct known_stack){0};
            unwind_forget(&mine->unwinding);
            atomic_store_explicit(&mine->reads_python, false, memory_order_relaxed);
        }
    }
    return mine;
}

const struct thread_buffer *thread_buffers(void)
{
    return atomic_load(&all.buffers);
}

void thread_buffers_after_fork(void)
{
    struct thread_buffer *buffer = atomic_load_explicit(&all.buffers, memory_order_acquire);
    for (; buffer != NULL; buffer = buffer->next) {
        atomic_store_explicit(&buffer->owner, buffer == mine ? own_id() : 0, memory_order_relaxed);
        if (buffer != mine)
            atomic_store_explicit(&buffer->reads_python, false, memory_order_relaxed);
        buffer->known.memo = (struct stack_memo){0};
    }
}
