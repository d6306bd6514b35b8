/* Helpers that render recordings; see render_ahead.h. */
#include "render_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/transfer.h"
#include "progress.h"

#define HELPERS_MAX 4
#define PATHS_MIN   4 /* for fewer it is not worth it */

/* What a helper says of one recording; then come so many bytes: its report as JSON, or a sentence. */
struct answer {
    enum { ANSWER_REPORT, ANSWER_ERROR, ANSWER_NO_RECORDING } kind;
    uint64_t bytes;
};

struct helper {
    pid_t pid;
    int fd; /* to read from; -1: it came to its end */
};

struct render_ahead {
    const char *const *paths;
    size_t count, taken;
    const struct symbol_places *places;
    size_t helper_count;
    struct helper helpers[HELPERS_MAX];
};

static bool write_whole(int fd, const void *from, size_t bytes)
{
    return transfer_write(fd, from, bytes) == 0;
}

static bool read_whole(int fd, void *to, size_t bytes)
{
    return transfer_read(fd, to, bytes) == bytes;
}

static bool hand_over(int to, int report)
{
    char part[1 << 16];
    off_t bytes = lseek(report, 0, SEEK_END);
    struct answer answer = {.kind = ANSWER_REPORT, .bytes = (uint64_t)bytes};
    if (bytes < 0 || lseek(report, 0, SEEK_SET) != 0 || !write_whole(to, &answer, sizeof(answer)))
        return false;
    while (bytes > 0) {
        ssize_t got = read(report, part, sizeof(part));
        if (got <= 0 || !write_whole(to, part, (size_t)got))
            return false;
        bytes -= got;
    }
    return true;
}

static bool render(int to, const char *path, const struct symbol_places *places)
{
    char error[512] = "";
    int report = saved_report_render(path, places, error, sizeof(error));
    if (report >= 0) {
        bool is_handed_over = hand_over(to, report);
        close(report);
        return is_handed_over;
    }
    struct answer answer = {.kind = error[0] ? ANSWER_ERROR : ANSWER_NO_RECORDING, .bytes = strlen(error)};
    return write_whole(to, &answer, sizeof(answer)) && write_whole(to, error, strlen(error));
}

/* Its own part of the paths: every helper_count-th. */
static _Noreturn void help(const struct render_ahead *ahead, size_t number, size_t helper_count, int to)
{
    progress_never();
    for (size_t i = number; i < ahead->count; i += helper_count)
        if (!render(to, ahead->paths[i], ahead->places))
            break;
    _exit(0);
}

static bool start_helper(struct render_ahead *ahead, size_t helper_count)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < ahead->helper_count; i++)
            close(ahead->helpers[i].fd);
        close(ends[0]);
        help(ahead, ahead->helper_count, helper_count, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    ahead->helpers[ahead->helper_count++] = (struct helper){.pid = pid, .fd = ends[0]};
    return true;
}

/* A machine with more than CPU_SETSIZE processors does not tell those that we may use by a set of this size.
 */
static size_t processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return (size_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (size_t)online : 1;
}

struct render_ahead *render_ahead_start(const char *const *paths, size_t count,
                                        const struct symbol_places *places)
{
    size_t wanted = processors();
    if (wanted < 2 || count < PATHS_MIN)
        return NULL;
    struct render_ahead *ahead = calloc(1, sizeof(*ahead));
    if (!ahead)
        return NULL;
    *ahead = (struct render_ahead){.paths = paths, .count = count, .places = places};
    if (wanted > HELPERS_MAX)
        wanted = HELPERS_MAX;
    while (ahead->helper_count < wanted && start_helper(ahead, wanted))
        ;
    /* Those of a helper that could not be started are done here; see render_ahead_take(). */
    for (size_t i = ahead->helper_count; i < wanted; i++)
        ahead->helpers[i] = (struct helper){.fd = -1};
    ahead->helper_count = wanted;
    return ahead;
}

static int refuse(char *error, size_t error_bytes, const char *text)
{
    snprintf(error, error_bytes, "%s", text);
    return -1;
}

/* The text that follows an answer, with a NUL; free() it. NULL: memory ran out, or the helper's end. */
static char *read_text(struct helper *helper, uint64_t bytes)
{
    char *text = bytes < SAVED_REPORT_BYTES_MAX ? malloc(bytes + 1) : NULL;
    if (!text || !read_whole(helper->fd, text, bytes)) {
        free(text);
        return NULL;
    }
    text[bytes] = 0;
    return text;
}

int render_ahead_take(struct render_ahead *ahead, struct saved_report *report, char *error,
                      size_t error_bytes)
{
    struct helper *helper = &ahead->helpers[ahead->taken % ahead->helper_count];
    const char *path = ahead->paths[ahead->taken++];
    struct answer answer;
    char *text = NULL;
    if (helper->fd >= 0 && read_whole(helper->fd, &answer, sizeof(answer)))
        text = read_text(helper, answer.bytes);
    if (!text && helper->fd >= 0) {
        close(helper->fd);
        helper->fd = -1;
    }
    if (!text || answer.kind == ANSWER_NO_RECORDING) {
        free(text);
        return saved_report_load(report, path, ahead->places, error, error_bytes);
    }
    int result = answer.kind == ANSWER_ERROR
                     ? refuse(error, error_bytes, text)
                     : saved_report_parse(report, text, answer.bytes, error, error_bytes);
    free(text);
    return result;
}

/* A helper that has more to say than is wanted ends by SIGPIPE. */
void render_ahead_stop(struct render_ahead *ahead)
{
    for (size_t i = 0; ahead && i < ahead->helper_count; i++)
        if (ahead->helpers[i].fd >= 0)
            close(ahead->helpers[i].fd);
    for (size_t i = 0; ahead && i < ahead->helper_count; i++)
        while (ahead->helpers[i].pid > 0 && waitpid(ahead->helpers[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
    free(ahead);
}
