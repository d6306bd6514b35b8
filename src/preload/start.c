/*
 * The library's life in the process: the constructor, fork, and every way out that runs code. It does as
 * little as possible before the first CUDA allocation, since it runs in every process the user starts under
 * it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "hooks/nvtx.h"
#include "preload/life.h"
#include "preload/program_phases.h"
#include "preload/recorder.h"
#include "preload/state.h"
#include "preload/turns.h"

/* The C library's list of things to do at exit. Ours is entered from a constructor, before the C library
 * enters the destructors of all loaded libraries, and the list runs backwards: ours comes after them, so that
 * frees in destructors and atexit handlers count. Without a DSO handle it is not run when this library itself
 * is finalised. */
int __cxa_atexit(void (*function)(void *), void *arg, void *dso_handle);

static void finish_at_exit(void *ignored)
{
    (void)ignored;
    preload_finish();
}

static bool finishes_at_exit;

/* In its stead, where the list had no memory left: earlier than it should be, and better than never. */
static __attribute__((destructor)) void finish_at_unloading(void)
{
    if (!finishes_at_exit)
        preload_finish();
}

/* A page that reads 1 here and 0 in any child that was made by copying memory, whatever made it. */
static uint32_t *make_fork_mark(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED)
        return NULL;
    if (madvise(mark, page, MADV_WIPEONFORK) != 0) { /* before Linux 4.14 */
        munmap(mark, page);
        return NULL;
    }
    *mark = 1;
    return mark;
}

static void before_fork(void)
{
    /* False in a handler that interrupted our own work on this thread: then the child inherits a locked state
     * and is turned away from it by `locked`, until it is reset below. */
    thread_state.fork_locked = preload_lock();
    capture_before_fork();
}

static void after_fork_in_parent(void)
{
    capture_after_fork_in_parent();
    if (thread_state.fork_locked)
        preload_unlock();
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&preload.lock, NULL);
    turns_after_fork();
    recorder_after_fork();
    trace_writer_abandon(&preload.writer);
    preload_reset();
    phases_after_fork();
    capture_after_fork();
    preload.pid = getpid();
    if (preload.fork_mark != NULL)
        *preload.fork_mark = 1;
    if (atomic_load(&preload.phase) == PHASE_RECORDING) {
        preload.parent_recorded = true;
        atomic_store(&preload.phase, PHASE_IDLE);
    }
    if (thread_state.fork_locked)
        pthread_setcancelstate(thread_state.cancel_state, NULL); /* preload_lock() turned it off */
    thread_state.locked = thread_state.holds = false;
}

/* The first copy of this library in the search order has the mark that all of them find by its name; its
 * hooks are called first, and come to the others'. Only it acts. */
__attribute__((visibility("default"))) extern const char gpumemtrace_preloaded;
const char gpumemtrace_preloaded = 1;
extern const char own_mark __attribute__((alias("gpumemtrace_preloaded"), visibility("hidden")));

static bool is_first_copy(void)
{
    const char *volatile found = &gpumemtrace_preloaded; /* not taken for ours at compile time */
    return found == &own_mark;
}

static void start(void)
{
    struct stat status;
    config_read(&preload.config);
    if (preload.config.disabled || getauxval(AT_SECURE) != 0 || !is_first_copy()) {
        atomic_store(&preload.phase, PHASE_OFF);
        return;
    }
    preload.pid = getpid();
    if (fstat(STDERR_FILENO, &status) == 0) {
        preload.stderr_device = status.st_dev;
        preload.stderr_inode = status.st_ino;
    } else {
        preload.stderr_error = errno;
    }
    preload.fork_mark = make_fork_mark();
    nvtx_offer();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    finishes_at_exit = __cxa_atexit(finish_at_exit, NULL, NULL) == 0;
    (void)at_quick_exit(preload_finish);
}

/* The constructors of other libraries may run, and allocate, before ours. */
__attribute__((constructor)) void preload_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
