/* The debuginfod client, opened at run time; see debuginfod.h. */
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

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
    if (!is_wanted() || id_bytes == 0 || of->asked == QUESTIONS_MAX)
        return -1;
    if (!of->tried)
        start(of);
    find_function *find = of->client ? (find_function *)function(of, names[kind]) : NULL;
    if (!find)
        return -1;
    of->asked++;
    int fd = find(of->client, id, (int)id_bytes, NULL);
    return fd < 0 ? -1 : fd;
}

bool debuginfod_is_missing(struct debuginfod *of)
{
    if (is_wanted() && !of->tried)
        start(of);
    return is_wanted() && !of->client;
}

void debuginfod_close(struct debuginfod *of)
{
    end_function *end = (end_function *)function(of, "debuginfod_end");
    if (of->client && end)
        end(of->client);
    if (of->library)
        dlclose(of->library);
    *of = (struct debuginfod){0};
}
