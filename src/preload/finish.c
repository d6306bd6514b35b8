/*
 * The end of the traced process: closes the recording and writes the reports beside it. Runs after the
 * program's own atexit handlers and destructors, or inside its _exit(); it uses neither malloc nor stdio.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "preload/life.h"
#include "preload/shelter.h"
#include "preload/state.h"
#include "report/report.h"
#include "symbols/own_stack.h"
#include "symbols/symbols.h"

/* How long another thread in the middle of its work may keep us waiting. */
#define LOCK_PATIENCE_S 2

static bool wants_text(const struct config *config)
{
    return config->report_text;
}

static bool wants_json(const struct config *config)
{
    return config->report_json;
}

static void write_text(const struct report *report, struct output *out)
{
    report_write_text(report, &(struct report_text_options){0}, out);
}

/* The first one that is wanted is the one the summary line points at. */
static const struct {
    const char *suffix;
    bool (*wanted)(const struct config *);
    void (*write)(const struct report *, struct output *);
} outputs[] = {
    {".txt", wants_text, write_text},
    {".json", wants_json, report_write_json},
};

#define OUTPUT_COUNT (sizeof outputs / sizeof *outputs)

/* Which of them were written; under the lock. */
static bool is_written[OUTPUT_COUNT];

#define FINISHING_LINE (CONFIG_PATH_MAX + 256)

/* What is needed while finishing, too large for the stack of a thread that calls _exit(). */
struct finishing {
    struct output output;
    char path[CONFIG_PATH_MAX + 8];
    char line[FINISHING_LINE];
    struct suppressions suppressions;
    const char *notes[NOTES_MAX];
};

static bool lock_patiently(void)
{
    struct timespec until;
    if (thread_state.locked)
        return false; /* _exit() from a signal handler in the middle of our own work: the recording is all
                         there is */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOCK_PATIENCE_S;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &thread_state.cancel_state);
    thread_state.locked = thread_state.holds = pthread_mutex_timedlock(&preload.lock, &until) == 0;
    if (!thread_state.locked)
        pthread_setcancelstate(thread_state.cancel_state, NULL);
    return thread_state.locked;
}

/* Where the report goes that the reader should open; empty when none is written. */
static void name_first_report(char *path, size_t bytes)
{
    path[0] = '\0';
    for (size_t i = 0; i < OUTPUT_COUNT && path[0] == '\0' && preload.stem[0] != '\0'; i++) {
        if (outputs[i].wanted(&preload.config))
            snprintf(path, bytes, "%s%s", preload.stem, outputs[i].suffix);
    }
}

/* 0 or an errno. A report that could not be written whole is taken away again: half of one misleads. */
static int write_output(struct finishing *finishing, const struct report *report, size_t index)
{
    char *path = finishing->path;
    snprintf(path, sizeof finishing->path, "%s%s", preload.stem, outputs[index].suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    output_init(&finishing->output, fd);
    outputs[index].write(report, &finishing->output);
    int error = output_flush(&finishing->output);
    if (close(fd) != 0 && error == 0)
        error = errno;
    if (error != 0)
        unlink(path);
    return error;
}

/* Nobody is told to open what could not be written. */
static void write_outputs(struct finishing *finishing, const struct report *report,
                          struct report_input *input)
{
    bool written = false;
    for (size_t i = 0; i < OUTPUT_COUNT && preload.stem[0] != '\0'; i++) {
        if (!outputs[i].wanted(&preload.config))
            continue;
        int error = write_output(finishing, report, i);
        is_written[i] = error == 0;
        if (error == 0) {
            written = true;
            continue;
        }
        if (!written)
            input->report_path = NULL;
        snprintf(finishing->line, sizeof finishing->line, "gpumemtrace: cannot write %s: %s\n",
                 finishing->path, strerror(error));
        preload_say(finishing->line);
        return;
    }
}

static void say_summary(struct finishing *finishing, const struct report *report)
{
    if (preload.config.quiet || !preload_may_speak())
        return;
    output_init(&finishing->output, STDERR_FILENO);
    report_write_summary(report, &finishing->output);
    output_flush(&finishing->output);
}

/* Said once, and part of the report. */
static void complain_of_suppressions(void *arg, const char *sentence)
{
    char *line = arg;
    snprintf(line, FINISHING_LINE, "gpumemtrace: %s\n", sentence);
    preload_say(line);
    preload_note(sentence);
}

static void read_suppressions(struct finishing *finishing)
{
    if (preload.config.suppressions[0] != '\0')
        suppressions_read(&finishing->suppressions, preload.config.suppressions, &preload.arena,
                          complain_of_suppressions, finishing->line);
}

static struct report_input describe(struct finishing *finishing, const struct symbol_source *symbols)
{
    read_suppressions(finishing);
    for (uint32_t i = 0; i < preload.note_count; i++)
        finishing->notes[i] = preload.notes[i];
    name_first_report(finishing->path, sizeof finishing->path);
    const char *path = finishing->path[0] == '\0'
                           ? NULL
                           : arena_copy(&preload.arena, finishing->path, strlen(finishing->path));
    return (struct report_input){
        .catalog = preload.catalog,
        .ledger = preload.ledger,
        .process = &preload.process,
        .symbols = symbols,
        .note_count = preload.note_count,
        .notes = finishing->notes,
        .bound_bytes = preload.writer.log.generation > 0 ? 2 * preload.writer.log.half_bytes : 0,
        .suppressions = &finishing->suppressions,
        .report_path = path};
}

static void note_lost_recording(void)
{
    const struct trace_log *log = &preload.writer.log;
    char note[NOTE_BYTES];
    trace_log_check(&preload.writer.log);
    if (log->end == TRACE_LOG_GOES_ON || preload.stem[0] == '\0')
        return;
    if (log->end == TRACE_LOG_FULL)
        snprintf(note, sizeof note,
                 "The recording ends early: what is alive and the places it comes from "
                 "need more than GPUMEMTRACE_MAX_TRACE; this report does not.");
    else
        snprintf(note, sizeof note, "The recording ends early (%s); this report does not.",
                 log->end == TRACE_LOG_CUT ? "somebody made the file shorter" : strerror(log->error));
    preload_note(note);
}

static void write_reports(void *unused)
{
    (void)unused;
    struct finishing *finishing = arena_alloc(&preload.arena, sizeof *finishing);
    struct symbol_source *symbols = dynsym_source_create(&preload.arena);
    struct report_input input;
    struct report *report = NULL;
    if (finishing != NULL) {
        input = describe(finishing, symbols);
        report = report_build(&input, &preload.arena);
    }
    if (report == NULL) {
        preload_say(
            "gpumemtrace: not enough memory for the reports; the recording has everything, and gpumemtrace "
            "report makes them of it\n");
        return;
    }
    struct shelter shelter;
    shelter_enter(&shelter);
    write_outputs(finishing, report, &input);
    say_summary(finishing, report);
    shelter_leave(&shelter);
}

/* Under the lock, while recording. */
static void finish(void)
{
    preload.process.duration_ns = preload_now_ns();
    preload.process.end = PROCESS_EXITED;
    /* The books are whole even where the recording is not. */
    preload.process.complete = ledger_counters(preload.ledger)->dropped_events == 0;
    note_lost_recording();
    struct own_stack stack = {0};
    /* Reports take more than the stack of a small thread, which may be the one that ends the process. */
    if (!own_stack_call(&stack, write_reports, NULL))
        write_reports(NULL);
    own_stack_release(&stack);
    trace_writer_close(&preload.writer, preload.process.duration_ns);
}

/* Takes the lock, and true, where there is something to finish. */
static bool lock_to_finish(void)
{
    /* Not one system call where there is nothing to do: a process in a sandbox may be killed for it. */
    if (atomic_load_explicit(&preload.phase, memory_order_acquire) != PHASE_RECORDING)
        return false;
    /* A vfork child borrows its parent's memory: its _exit() is not the parent's end. */
    if (preload.pid != getpid())
        return false;
    if (!lock_patiently()) {
        preload_say(
            "gpumemtrace: the end came in the middle of our own work; the recording has everything, and "
            "gpumemtrace report makes the report of it\n");
        return false;
    }
    if (atomic_exchange(&preload.phase, PHASE_OFF) == PHASE_RECORDING)
        return true;
    preload_unlock();
    return false;
}

void preload_finish(void)
{
    int kept = errno;
    if (lock_to_finish()) {
        finish();
        preload_unlock();
    }
    errno = kept;
}

bool preload_before_exec(void)
{
    int kept = errno;
    bool finished = lock_to_finish();
    if (finished)
        finish();
    errno = kept;
    return finished;
}

void preload_after_exec_failed(void)
{
    char path[CONFIG_PATH_MAX + 8];
    int kept = errno;
    for (size_t i = 0; i < OUTPUT_COUNT; i++) {
        if (is_written[i] && snprintf(path, sizeof path, "%s%s", preload.stem, outputs[i].suffix) > 0)
            unlink(path);
        is_written[i] = false;
    }
    trace_writer_resume(&preload.writer);
    atomic_store_explicit(&preload.phase, PHASE_RECORDING, memory_order_release);
    preload_unlock();
    errno = kept;
}
