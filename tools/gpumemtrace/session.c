/* Writing the reports that killed processes could not; see session.h. */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "command.h"
#include "gpumemtrace/trace.h"
#include "rendering.h"
#include "report_file.h"
#include "trace/liveness.h"

int session_create(char token[SESSION_TOKEN_BYTES])
{
    unsigned char bytes[(SESSION_TOKEN_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return errno ? errno : EIO;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* '*' for whatever the library fills in, and after the stem, where it may have had to choose another name. */
char *session_names(const char *pattern)
{
    char *text = malloc(strlen(pattern) * 2 + sizeof("*" TRACE_SUFFIX)), *to = text;
    if (!text)
        return NULL;
    for (const char *at = pattern; *at; at++) {
        if (*at == '%' && at[1]) {
            *to++ = '*';
            at++;
            continue;
        }
        if (strchr("*?[\\", *at))
            *to++ = '\\';
        *to++ = *at;
    }
    bool is_open = to - text > 1 && to[-1] == '*' && to[-2] != '\\';
    strcpy(to, is_open ? "" : "*");
    strcat(to, TRACE_SUFFIX);
    return text;
}

/* The header of a recording of this session; false for any other file. */
static bool read_header(const char *path, const char *token, struct trace_header *header)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : pread(fd, header, sizeof(*header), 0);
    if (fd >= 0)
        close(fd);
    return got == (ssize_t)sizeof(*header) &&
           memcmp(header->magic, TRACE_MAGIC, sizeof(header->magic)) == 0 &&
           strncmp(header->session, token, sizeof(header->session)) == 0;
}

/* Whether the process is gone without having written its reports. */
static bool needs_reports(struct trace_header *header)
{
    header->boot_id[sizeof(header->boot_id) - 1] = 0;
    struct process_info process = {
        .pid = header->pid, .process_start_ticks = header->process_start_ticks, .boot_id = header->boot_id};
    return header->state == TRACE_RUNNING && !process_is_alive(&process);
}

/* Which reports GPUMEMTRACE_REPORT asks for, as the library reads it: what is not understood means both. */
static void read_kinds(const char *reports, bool *text, bool *json)
{
    *text = *json = false;
    if (reports && strcmp(reports, "none") == 0)
        return;
    for (const char *at = reports ? reports : "text,json"; *at;) {
        size_t length = strcspn(at, ",");
        bool is_text = length == 4 && memcmp(at, "text", 4) == 0;
        bool is_json = length == 4 && memcmp(at, "json", 4) == 0;
        *text |= is_text;
        *json |= is_json;
        if (!is_text && !is_json)
            break;
        at += length;
        if (*at == 0)
            return;
        at++;
    }
    *text = *json = true;
}

static bool write_text(const struct rendering *rendering, struct output *out)
{
    static const struct report_text_options plain = {0};
    report_write_text(rendering->report, &plain, out);
    return true;
}

static bool write_json(const struct rendering *rendering, struct output *out)
{
    report_write_json(rendering->report, out);
    return true;
}

static void write_reports(const char *recording, const char *reports)
{
    struct rendering rendering;
    char error[512];
    bool wants_text, wants_json;
    read_kinds(reports, &wants_text, &wants_json);
    char *text = report_file_beside(recording, ".txt"), *json = report_file_beside(recording, ".json");
    if (rendering_open(&rendering, recording, NULL, NULL,
                       wants_text   ? text
                       : wants_json ? json
                                    : recording,
                       error, sizeof(error)) != 0) {
        complain(recording, "%s", error);
    } else {
        if (wants_text)
            report_file_write(&rendering, text, write_text);
        if (wants_json)
            report_file_write(&rendering, json, write_json);
        rendering_close(&rendering);
    }
    free(text);
    free(json);
}

void session_finish(const char *token, const char *pattern, const char *reports,
                    void (*each)(const char *recording, void *arg), void *arg)
{
    glob_t found = {0};
    struct trace_header header;
    char *names = session_names(pattern);
    if (names && glob(names, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *recording = found.gl_pathv[i];
            if (!read_header(recording, token, &header))
                continue;
            if (needs_reports(&header))
                write_reports(recording, reports);
            each(recording, arg);
        }
    }
    if (names)
        globfree(&found);
    free(names);
}
