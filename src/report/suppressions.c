/* Reading suppressions, and matching their patterns (suppressions.h). */
#include "report/suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "base/transfer.h"

#define FILE_BYTES_MAX ((off_t)4 << 20)
#define COUNT_MAX      4096 /* each is looked for in every name */
#define COMPLAINTS_MAX 20   /* about single lines */
#define SENTENCE_BYTES 512

/* Between stars each part is taken where it first stands: memmem() takes linear time, so all takes it. */
bool suppression_matches(const char *pattern, const char *name)
{
    bool from_start = *pattern == '^';
    pattern += from_start;
    const char *end = pattern + strlen(pattern), *name_end = name + strlen(name);
    bool to_end = end > pattern && end[-1] == '$';
    end -= to_end;
    for (bool tied = from_start;; tied = false) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern));
        size_t bytes = (size_t)((star ? star : end) - pattern), left = (size_t)(name_end - name);
        bool last = star == NULL;
        if (bytes > left)
            return false;
        const char *found = last && to_end ? name_end - bytes : name;
        if (tied && found != name)
            return false;
        if (tied || (last && to_end))
            found = memcmp(found, pattern, bytes) == 0 ? found : NULL;
        else
            found = memmem(name, left, pattern, bytes);
        if (found == NULL || last)
            return found != NULL;
        name = found + bytes;
        pattern = star + 1;
    }
}

static char *skip_spaces(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static void trim_end(char *text)
{
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r", text[bytes - 1]))
        text[--bytes] = '\0';
}

/* "leak:pattern  # reason". False when it is something else. */
static bool parse_line(char *line, struct suppression *suppression)
{
    static const char kind[] = "leak:";
    if (strncmp(line, kind, sizeof kind - 1) != 0)
        return false;
    char *pattern = skip_spaces(line + sizeof kind - 1), *reason = NULL;
    for (char *at = pattern; *at && !reason; at++)
        if (*at == '#' && at > pattern && (at[-1] == ' ' || at[-1] == '\t'))
            reason = at;
    if (reason) {
        *reason = '\0';
        reason = skip_spaces(reason + 1);
        trim_end(reason);
    }
    trim_end(pattern);
    suppression->pattern = pattern;
    suppression->reason = reason && *reason ? reason : NULL;
    return *pattern != '\0' && *pattern != '#';
}

bool suppressions_parse(struct suppressions *suppressions, const char *path, char *text, size_t bytes,
                        struct arena *arena, suppressions_complain *complain, void *arg)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    struct suppression *list = arena_alloc(arena, lines * sizeof *list);
    char *copy = arena_copy(arena, text, bytes);
    *suppressions = (struct suppressions){0};
    if (!list || !copy) {
        complain(arg, "not enough memory for suppressions");
        return false;
    }
    suppressions->list = list;
    unsigned number = 0, complaints = 0;
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        number++;
        trim_end(line);
        line = skip_spaces(line);
        if (*line == '\0' || *line == '#')
            continue;
        char sentence[SENTENCE_BYTES];
        if (suppressions->count == COUNT_MAX) {
            snprintf(sentence, sizeof sentence, "%s:%u and what follows is left out: over %d suppressions",
                     path, number, COUNT_MAX);
            complain(arg, sentence);
            break;
        }
        struct suppression *suppression = &list[suppressions->count];
        if (parse_line(line, suppression)) {
            suppression->file = path;
            suppression->line = number;
            suppressions->count++;
            continue;
        }
        if (++complaints > COMPLAINTS_MAX)
            continue;
        snprintf(sentence, sizeof sentence, "%s:%u is no suppression: not of the form leak:PATTERN", path,
                 number);
        complain(arg, sentence);
    }
    if (complaints > COMPLAINTS_MAX) {
        char sentence[SENTENCE_BYTES];
        snprintf(sentence, sizeof sentence, "%s has %u more such lines", path, complaints - COMPLAINTS_MAX);
        complain(arg, sentence);
    }
    return true;
}

bool suppressions_read(struct suppressions *suppressions, const char *path, struct arena *arena,
                       suppressions_complain *complain, void *arg)
{
    struct stat status;
    char *text = NULL;
    size_t bytes = 0;
    int fd = regular_file_open(NULL, path), error = fd < 0 ? errno : 0;
    *suppressions = (struct suppressions){0};
    if (error == 0 && fstat(fd, &status) != 0)
        error = errno;
    if (error == 0 && status.st_size > FILE_BYTES_MAX)
        error = EFBIG;
    if (error == 0 && !(text = arena_alloc(arena, (size_t)status.st_size + 1)))
        error = ENOMEM;
    if (error == 0)
        bytes = transfer_read(fd, text, (size_t)status.st_size);
    if (fd >= 0)
        close(fd);
    if (error == 0)
        return suppressions_parse(suppressions, arena_copy(arena, path, strlen(path)), text, bytes, arena,
                                  complain, arg);
    char sentence[SENTENCE_BYTES];
    snprintf(sentence, sizeof sentence, "cannot read suppressions from %s: %s", path, strerror(error));
    complain(arg, sentence);
    return false;
}
