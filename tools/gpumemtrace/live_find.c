/* Which recordings are being written: those that processes have mapped, by /proc/PID/maps. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpumemtrace/trace.h"
#include "live.h"

/* "… 12345  /home/me/out/gpumemtrace.4711.gmt\n": the path, or NULL. It ends the line, and may have spaces.
 */
static char *recording_of(char *line)
{
    char *path = strchr(line, '/');
    size_t length = path ? strcspn(path, "\n") : 0, tail = strlen(TRACE_SUFFIX);
    if (length <= tail || memcmp(path + length - tail, TRACE_SUFFIX, tail) != 0)
        return NULL;
    path[length] = 0;
    return path;
}

/* In a container the path is the process's own. */
static void show(uint32_t pid, const char *path, void (*found)(const char *path, void *arg), void *arg)
{
    char *inside;
    if (access(path, R_OK) == 0) {
        found(path, arg);
    } else if (asprintf(&inside, "/proc/%u/root%s", (unsigned)pid, path) >= 0) {
        if (access(inside, R_OK) == 0)
            found(inside, arg);
        free(inside);
    }
}

void live_find(uint32_t pid, void (*found)(const char *path, void *arg), void *arg)
{
    char name[64], *line = NULL, *last = NULL;
    size_t room = 0;
    snprintf(name, sizeof(name), "/proc/%u/maps", (unsigned)pid);
    FILE *maps = fopen(name, "re");
    while (maps && getline(&line, &room, maps) > 0) {
        const char *path = recording_of(line);
        if (!path || (last && strcmp(last, path) == 0))
            continue; /* it is mapped in several pieces */
        free(last);
        last = strdup(path);
        show(pid, path, found, arg);
    }
    free(last);
    free(line);
    if (maps)
        fclose(maps);
}

void live_find_all(void (*found)(const char *path, void *arg), void *arg)
{
    DIR *processes = opendir("/proc");
    for (const struct dirent *entry; processes && (entry = readdir(processes));) {
        char *end;
        unsigned long pid = strtoul(entry->d_name, &end, 10);
        if (*end == 0 && pid > 0)
            live_find((uint32_t)pid, found, arg);
    }
    if (processes)
        closedir(processes);
}
