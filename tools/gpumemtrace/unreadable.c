/* What to do about a file that cannot be read, in the same line that says so. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "gpumemtrace/trace.h"
#include "report_file.h"

/* The newest recording in the folder that the path names; false when there is none. */
static bool newest_recording(const char *path, char name[NAME_MAX + 1])
{
    char folder[PATH_MAX];
    struct stat status;
    struct timespec newest = {0};
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
    DIR *open = opendir(folder);
    name[0] = 0;
    for (const struct dirent *entry; open && (entry = readdir(open));) {
        if (!has_suffix(entry->d_name, TRACE_SUFFIX) || fstatat(dirfd(open), entry->d_name, &status, 0) != 0)
            continue;
        bool newer = status.st_mtim.tv_sec > newest.tv_sec ||
                     (status.st_mtim.tv_sec == newest.tv_sec && status.st_mtim.tv_nsec >= newest.tv_nsec);
        if (!newer)
            continue;
        newest = status.st_mtim;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    if (open)
        closedir(open);
    return name[0] != 0;
}

void complain_unreadable(const char *path, const char *why)
{
    char name[NAME_MAX + 1];
    if (strcmp(why, strerror(ENOENT)) == 0 && newest_recording(path, name))
        complain(path, "%s; the newest recording there is '%s'", why, name);
    else if (has_suffix(path, ".json") && strncmp(why, "not a recording", strlen("not a recording")) == 0)
        complain(path, "%s; the one that belongs to a report has its name with " TRACE_SUFFIX, why);
    else
        complain(path, "%s", why);
}
