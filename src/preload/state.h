/*
 * All state of the library in the traced process, in one struct, shared by the files of src/preload and no
 * other.
 *
 * `lock` covers everything below it. It is never held across a call into the CUDA driver, libunwind or the
 * dynamic linker. A thread that holds it has `thread_state.locked` set, so that a signal handler of the
 * program that comes back to us on the same thread is turned away instead of waiting for itself.
 */
#ifndef PRELOAD_STATE_H
#define PRELOAD_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "capture/stack_table.h"
#include "catalog/catalog.h"
#include "ledger/ledger.h"
#include "preload/config.h"
#include "preload/sampling.h"
#include "trace/process_info.h"
#include "trace/writer.h"

enum phase {
    PHASE_IDLE,      /* nothing allocated yet: no file, no memory */
    PHASE_RECORDING, /* from the first allocation on */
    PHASE_OFF,       /* disabled, or finished */
};

#define NOTES_MAX    16
#define NOTE_BYTES   256
#define CONTEXTS_MAX 1024

struct context_slot {
    _Atomic(const void *) handle; /* NULL: the context ended, the slot is free */
    _Atomic uint32_t id;
};

/* A site by the address of its API's name, a literal. */
struct site_cache_line {
    const char *api; /* NULL: nothing is here */
    uint32_t stack, site;
    int16_t device;
    uint8_t family, space;
};

#define SITE_CACHE_LINES 1024 /* a power of two */

/* An API name by the address of its literal. */
struct api_entry;
/* A raw frame that was named before. */
struct frame_entry;

struct preload {
    struct config config;
    _Atomic int phase;     /* enum phase */
    _Atomic bool prepared; /* capture is ready */
    pid_t pid;             /* of the process this state belongs to */
    bool parent_recorded;  /* … which is a forked one's, of a process that had CUDA */
    dev_t
        stderr_device; /* what fd 2 was at the start: if it is something else later, it is not ours to use */
    ino_t stderr_inode;
    int stderr_error;    /* … which could not be told, for this reason */
    uint32_t *fork_mark; /* 1 in this process, 0 in a child made by whatever means; NULL: cannot tell */
    struct context_slot contexts[CONTEXTS_MAX];
    _Atomic uint32_t context_slots; /* in use or once used */

    pthread_mutex_t lock;
    struct arena arena;
    struct catalog *catalog;
    struct ledger *ledger;
    struct stack_table *_Atomic stacks;
    struct trace_writer writer;
    struct process_info process;
    const uint32_t *process_strings; /* its names as the recording has them */
    uint32_t process_string_count;
    char stem[CONFIG_PATH_MAX]; /* of this recording's files; empty when there is none */
    struct api_entry *apis;
    struct frame_entry *frames;
    struct site_cache_line *site_cache;
    uint32_t context_count; /* ids given out */
    struct sampling sampling[SAMPLED_DEVICES];
    /* Outlive preload_reset(): what capture could not have, a child cannot have either. */
    char notes[NOTES_MAX][NOTE_BYTES];
    uint32_t note_count;
};

extern struct preload preload;

/* In cancel_state: it was left alone. No state there is, so that to set it changes nothing. */
#define CANCEL_STATE_KEPT (-1)

struct thread_state {
    int depth;            /* of nested hooked calls */
    volatile bool locked; /* this thread holds preload.lock, or waits for it */
    volatile bool holds;  /* … holds it. Volatile: the program may jump away from a signal handler */
    bool fork_locked;     /* fork() took it, and gives it back */
    int cancel_state; /* before it was taken: whoever holds it is not cancelled, and opens and writes files */
};

extern __thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

/* Reads the settings, and has the process's end told; once, in our constructor or before the first
 * allocation, whichever comes first. */
void preload_start(void) __attribute__((weak));

/* False when this thread holds the lock already (a signal handler in the middle of our work), and for ever
 * after preload_abandon(). */
bool preload_lock(void);
void preload_unlock(void);
/* The lock alone, for who sets `locked` itself. */
static inline void preload_hold(void)
{
    pthread_mutex_lock(&preload.lock);
    thread_state.holds = true;
}
static inline bool preload_try_hold(void)
{
    if (pthread_mutex_trylock(&preload.lock) != 0)
        return false;
    thread_state.holds = true;
    return true;
}
static inline void preload_let_go(void)
{
    thread_state.holds = false;
    pthread_mutex_unlock(&preload.lock);
}
/* The program has jumped out of a hooked call of this thread's. Where that held the lock, the books are half
 * written: the recording ends, and nobody waits for the lock. False, and nothing is done, in a handler on a
 * stack of its own, to whose end the call may go on. */
bool preload_abandon(void);

/* Time since the recording began. */
uint64_t preload_now_ns(void);

/* Whether stderr is still what it was at the start, and not a file the program opened in its place. */
bool preload_may_speak(void);
/* Whole lines for stderr, where preload_may_speak(). */
void preload_say(const char *text);

/* Under the lock. A sentence for the report and the recording, once. */
void preload_note(const char *sentence);
/* Under the lock. Gives everything from `arena` back and makes the state that of a process that never
 * allocated. */
void preload_reset(void);

/* Under the lock. Opens the recording; false only without memory. */
bool preload_begin(void);
#endif
