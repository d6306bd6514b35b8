/* The state of state.h: its lock, its clock, its notes, its one way to speak to the user. */
#include "preload/state.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "preload/learn.h"
#include "preload/marks.h"
#include "preload/program_phases.h"
#include "preload/shelter.h"
#include "preload/sites.h"

struct preload preload = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock: a thread jumped away in the middle of it, and what it left is half done. */
static bool given_up;

__thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

bool preload_lock(void)
{
    if (thread_state.locked)
        return false;
    thread_state.locked = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &thread_state.cancel_state);
    preload_hold();
    if (!given_up)
        return true;
    preload_unlock();
    return false;
}

void preload_unlock(void)
{
    preload_let_go();
    thread_state.locked = false;
    pthread_setcancelstate(thread_state.cancel_state, NULL);
}

bool preload_abandon(void)
{
    stack_t stack;
    if (sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK))
        return false;
    if (!thread_state.locked)
        return true;
    if (!thread_state.holds) { /* it waited, and nothing is half done */
        thread_state.locked = false;
        pthread_setcancelstate(thread_state.cancel_state, NULL);
        return true;
    }
    given_up = true;
    atomic_store(&preload.phase, PHASE_OFF);
    preload_unlock();
    preload_say("gpumemtrace: the program jumped out of the middle of our own work; nothing is recorded from "
                "here on, and gpumemtrace report makes the report of what was\n");
    return true;
}

uint64_t preload_now_ns(void)
{
    uint64_t ns = clock_monotonic_ns();
    return ns > preload.process.start_monotonic_ns ? ns - preload.process.start_monotonic_ns : 0;
}

bool preload_may_speak(void)
{
    struct stat status;
    if (fstat(STDERR_FILENO, &status) != 0) /* refused as it was at the start: nothing can be told */
        return errno != EBADF && errno == preload.stderr_error;
    return status.st_dev == preload.stderr_device && status.st_ino == preload.stderr_inode;
}

void preload_say(const char *text)
{
    size_t bytes = preload_may_speak() ? strlen(text) : 0;
    struct shelter shelter;
    shelter_enter(&shelter);
    while (bytes > 0) {
        ssize_t wrote = write(STDERR_FILENO, text, bytes);
        if (wrote <= 0)
            break;
        text += wrote;
        bytes -= (size_t)wrote;
    }
    shelter_leave(&shelter);
}

void preload_note(const char *sentence)
{
    for (uint32_t i = 0; i < preload.note_count; i++) {
        if (strncmp(preload.notes[i], sentence, NOTE_BYTES - 1) == 0)
            return;
    }
    if (preload.note_count == NOTES_MAX)
        return;
    char *note = preload.notes[preload.note_count++];
    memcpy(note, sentence, strnlen(sentence, NOTE_BYTES - 1));
    if (trace_writer_is_open(&preload.writer))
        trace_put_note(&preload.writer, learn_string(note));
}

void preload_reset(void)
{
    marks_restart();
    phases_forget_recording();
    learn_reset();
    sites_forget();
    if (preload.ledger != NULL)
        ledger_destroy(preload.ledger);
    if (preload.catalog != NULL)
        catalog_destroy(preload.catalog);
    atomic_store(&preload.stacks, NULL);
    arena_release(&preload.arena);
    preload.ledger = NULL;
    preload.catalog = NULL;
    preload.site_cache = NULL;
    preload.stem[0] = '\0';
    preload.context_count = 0;
    memset(preload.sampling, 0, sizeof preload.sampling);
    atomic_store(&preload.context_slots, 0);
    preload.process = (struct process_info){0};
    preload.process_strings = NULL;
    preload.process_string_count = 0;
}
