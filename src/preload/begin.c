/* The first allocation: makes catalog, ledger and recording, and says who is traced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/transfer.h"
#include "preload/checkpoint.h"
#include "preload/learn.h"
#include "preload/program_phases.h"
#include "preload/state.h"
#include "trace/liveness.h"

/* Memory for remembered stacks; beyond it every new stack costs its naming again. */
#define STACK_TABLE_BYTES  ((size_t)256 << 20)
#define ARGUMENTS_MAX      1024
#define COMMAND_LINE_BYTES 65536
#define STEM_TRIES         1000

/* Under the lock. Too large for the stack of the thread that allocates first, which may have a few KiB. */
static struct {
    char path[CONFIG_PATH_MAX + 8]; /* of the recording */
    char stem[CONFIG_PATH_MAX];
    char other[CONFIG_PATH_MAX + 8];
    char line[CONFIG_PATH_MAX + 256];
} texts;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A file of /proc, up to `bytes`; 0 when it cannot be read. */
static size_t read_file(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t used = transfer_read(fd, text, bytes);
    close(fd);
    return used;
}

static void read_arguments(struct process_info *process)
{
    char *text = arena_alloc(&preload.arena, COMMAND_LINE_BYTES + 1);
    const char **arguments = arena_alloc(&preload.arena, ARGUMENTS_MAX * sizeof *arguments);
    if (text == NULL || arguments == NULL)
        return;
    size_t bytes = read_file("/proc/self/cmdline", text, COMMAND_LINE_BYTES);
    uint32_t count = 0;
    for (size_t at = 0; at < bytes && count < ARGUMENTS_MAX; at += strlen(text + at) + 1)
        arguments[count++] = text + at;
    process->arguments = arguments;
    process->argument_count = count;
}

static const char *read_exe(void)
{
    ssize_t bytes = readlink("/proc/self/exe", texts.other, sizeof texts.other);
    const char *copy = bytes < 0 ? NULL : arena_copy(&preload.arena, texts.other, (size_t)bytes);
    return copy == NULL ? "" : copy;
}

static void read_process(struct process_info *process)
{
    static char boot_id[40];
    struct utsname name;
    const char *host =
        uname(&name) == 0 ? arena_copy(&preload.arena, name.nodename, strlen(name.nodename)) : NULL;
    read_boot_id(boot_id, sizeof boot_id);
    *process = (struct process_info){.pid = (uint32_t)getpid(),
                                     .ppid = (uint32_t)getppid(),
                                     .host = host == NULL ? "" : host,
                                     .exe = read_exe(),
                                     .rank = -1,
                                     .start_realtime_ns = clock_ns(CLOCK_REALTIME),
                                     .start_monotonic_ns = clock_ns(CLOCK_MONOTONIC),
                                     .process_start_ticks = process_start_ticks((uint32_t)getpid()),
                                     .boot_id = boot_id,
                                     .session = preload.config.session};
    if (preload.config.rank[0] != '\0') {
        process->rank = 0;
        for (const char *at = preload.config.rank; *at != '\0' && process->rank < 100000000; at++)
            process->rank = process->rank * 10 + (*at - '0');
    }
    read_arguments(process);
}

/* Whether any file of this stem is there already: another run's, never to be written over. */
static bool stem_is_taken(const char *stem)
{
    static const char *const suffixes[] = {TRACE_SUFFIX, ".txt", ".json"};
    struct stat status;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(texts.other, sizeof texts.other, "%s%s", stem, suffixes[i]);
        if (lstat(texts.other, &status) == 0)
            return true;
    }
    return false;
}

/* Opens STEM.gmt, or STEM-2.gmt and so on where that name is taken. 0 or an errno; the path tried last is in
 * `texts`. */
static int open_recording(void)
{
    int error = ENAMETOOLONG;
    snprintf(texts.path, sizeof texts.path, "%s", preload.config.output);
    if (!config_expand(&preload.config, preload.process.host, preload.process.exe, texts.stem,
                       sizeof texts.stem - 16))
        return error;
    for (int number = 1; number <= STEM_TRIES; number++) {
        size_t length = strlen(texts.stem);
        if (number > 1)
            snprintf(preload.stem, sizeof preload.stem, "%.*s-%d", (int)length, texts.stem, number);
        else
            memcpy(preload.stem, texts.stem, length + 1);
        if (snprintf(texts.path, sizeof texts.path, "%s%s", preload.stem, TRACE_SUFFIX) >=
            (int)sizeof texts.path)
            return ENAMETOOLONG;
        error = stem_is_taken(preload.stem)
                    ? EEXIST
                    : trace_writer_open(&preload.writer, texts.path, &preload.process,
                                        preload.config.max_trace_bytes, preload_checkpoint, NULL);
        if (error != EEXIST)
            break;
    }
    return error;
}

static void say_cannot_record(int error)
{
    char note[NOTE_BYTES];
    snprintf(texts.line, sizeof texts.line,
             "gpumemtrace: cannot write %s: %s; going on without a recording\n", texts.path, strerror(error));
    preload_say(texts.line);
    snprintf(note, sizeof note, "The recording could not be written (%s).", strerror(error));
    preload_note(note);
    preload.stem[0] = '\0';
}

static void learn_process(void)
{
    const struct process_info *process = &preload.process;
    uint32_t *strings = arena_alloc(&preload.arena, (ARGUMENTS_MAX + 3) * sizeof *strings);
    uint32_t count = 0;
    if (strings == NULL)
        return;
    strings[count++] = learn_string(process->exe);
    strings[count++] = learn_string(process->host);
    strings[count++] = learn_string(preload.config.rank);
    for (uint32_t i = 0; i < process->argument_count; i++)
        strings[count++] = learn_string(process->arguments[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (strings[i] == CATALOG_NONE)
            return;
    }
    preload.process_strings = strings;
    preload.process_string_count = count;
    trace_put_process(&preload.writer, strings, count);
}

static void say_and_record_notes(void)
{
    preload_say(preload.config.complaints);
    preload.config.complaints[0] = '\0';
    for (uint32_t i = 0; i < preload.note_count; i++) {
        char line[NOTE_BYTES + 32];
        snprintf(line, sizeof line, "gpumemtrace: %s\n", preload.notes[i]);
        preload_say(line);
        trace_put_note(&preload.writer, learn_string(preload.notes[i]));
    }
}

static bool make_books(void)
{
    preload.catalog = catalog_create(&preload.arena);
    if (preload.catalog != NULL)
        preload.ledger = ledger_create(&preload.arena, preload.catalog);
    preload.site_cache = arena_alloc(&preload.arena, SITE_CACHE_LINES * sizeof *preload.site_cache);
    struct stack_table *stacks = stack_table_create(&preload.arena, STACK_TABLE_BYTES);
    atomic_store_explicit(&preload.stacks, stacks, memory_order_release);
    return preload.ledger != NULL && preload.site_cache != NULL && stacks != NULL;
}

bool preload_begin(void)
{
    if (!make_books()) {
        preload_say("gpumemtrace: not enough memory to record\n");
        preload_reset();
        atomic_store(&preload.phase, PHASE_OFF);
        return false;
    }
    read_process(&preload.process);
    int error = open_recording();
    say_and_record_notes();
    if (error != 0)
        say_cannot_record(error);
    learn_process();
    atomic_store_explicit(&preload.phase, PHASE_RECORDING, memory_order_release);
    phases_begin_recording();
    return true;
}
