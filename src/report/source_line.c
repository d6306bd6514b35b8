/*
 * One line of a source file. The path comes from a recording and so from anyone: only a regular file is read,
 * only up to a size, and only the one line of it is shown, made safe by whoever prints it.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "report/text.h"

#define FILE_MAX   (8 << 20)
#define TOTAL_MAX  (UINT64_C(512) << 20) /* of one report: it may name many lines of many large files */
#define READ_BYTES 1024                  /* on the stack of whichever thread exits */

/* A file changed after the recording began may say something else at that line now. */
static bool is_usable(int fd, uint64_t start_realtime_ns)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size > FILE_MAX)
        return false;
    uint64_t changed_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec;
    return start_realtime_ns == 0 || changed_ns <= start_realtime_ns;
}

/* Copies line number `wanted`, from 1; counts what it reads. */
static bool read_line(int fd, int wanted, char *line, size_t bytes, uint64_t *read_bytes)
{
    char chunk[READ_BYTES];
    int number = 1;
    size_t used = 0;
    ssize_t got;
    while ((got = read(fd, chunk, sizeof chunk)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        *read_bytes += (uint64_t)got;
        for (ssize_t i = 0; i < got && number <= wanted; i++) {
            if (chunk[i] == '\n')
                number++;
            else if (number == wanted && used + 1 < bytes && chunk[i] != '\0')
                line[used++] = chunk[i];
        }
        if (number > wanted)
            break;
    }
    line[used] = '\0';
    return used > 0;
}

static void trim(char *line)
{
    size_t start = 0, end = strlen(line);
    while (isspace((unsigned char)line[start]))
        start++;
    while (end > start && isspace((unsigned char)line[end - 1]))
        end--;
    memmove(line, line + start, end - start);
    line[end - start] = '\0';
}

bool source_line(struct text *text, const struct named_frame *frame, char *line, size_t bytes)
{
    const struct report_input *input = text->report->input;
    if (!frame->file || frame->line <= 0 || text->source_bytes > TOTAL_MAX)
        return false;
    int fd = regular_file_open(input->source_root, frame->file);
    if (fd < 0)
        return false;
    bool found = is_usable(fd, input->process->start_realtime_ns) &&
                 read_line(fd, frame->line, line, bytes, &text->source_bytes);
    close(fd);
    if (found)
        trim(line);
    return found && line[0];
}
