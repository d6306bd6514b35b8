/* The debuginfod client, opened at run time; see debuginfod.h. */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A made-up recording may name any number of files; a real process has some hundreds. */
#define QUESTIONS_MAX 512

/* As <elfutils/debuginfod.h> declares them; the header is in a package of its own. */
typedef void *begin_function(void);
typedef void end_function(void *client);
typedef int find_function(void *client, const unsigned char *id, int id_bytes, char **path);

static bool is_wanted(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    return urls && urls[0];
}

static void *function(const struct debuginfod *of, const char *name)
{
    return of->library ? dlsym(of->library, name) : NULL;
}

static void start(struct debuginfod *of)
{
    of->tried = true;
    of->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    begin_function *begin = (begin_function *)function(of, "debuginfod_begin");
    of->client = begin ? begin() : NULL;
}

int debuginfod_fetch(struct debuginfod *of, enum debuginfod_kind kind, const uint8_t *id, size_t id_bytes)
{
    static const char *const names[] = {[DEBUGINFOD_DEBUG_FILE] = "debuginfod_find_debuginfo",
                                        [DEBUGINFOD_EXECUTABLE] = "debuginfod_find_executable"};
    if (!is_wanted() || id_bytes == 0 || of->error || of->asked == QUESTIONS_MAX)
        return -1;
    if (!of->tried)
        start(of);
    find_function *find = of->client ? (find_function *)function(of, names[kind]) : NULL;
    of->is_missing = !find;
    if (!find)
        return -1;
    of->asked++;
    int fd = find(of->client, id, (int)id_bytes, NULL);
    if (fd >= 0)
        return fd;
    if (fd != -ENOENT) /* a server that does not answer takes its time over that, for each file */
        of->error = -fd;
    return -1;
}

const char *debuginfod_trouble(const struct debuginfod *of, char text[DEBUGINFOD_TROUBLE_MAX])
{
    if (of->is_missing)
        return "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 (Debian: libdebuginfod1) cannot be used.";
    if (!of->error)
        return NULL;
    snprintf(text, DEBUGINFOD_TROUBLE_MAX,
             "debuginfod (DEBUGINFOD_URLS) failed and was asked no further: %s.", strerror(of->error));
    return text;
}

void debuginfod_close(struct debuginfod *of)
{
    end_function *end = (end_function *)function(of, "debuginfod_end");
    if (of->client && end)
        end(of->client);
    /* Its library stays: what that is linked with (curl, OpenSSL) does not expect to be unloaded. */
    *of = (struct debuginfod){0};
}
