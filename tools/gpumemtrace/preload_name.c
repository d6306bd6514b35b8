/* A name for the library without separators; see preload_name.h. */
#include "preload_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_NAME "/libgpumemtrace.so"

static char folder[PATH_MAX - sizeof(LINK_NAME)]; /* "": no link */

/* Of the user alone, so that nobody else decides what is loaded. */
static int make_folder(void)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || parent[0] != '/' || strpbrk(parent, PRELOAD_SEPARATORS))
        parent = "/tmp";
    int length = snprintf(folder, sizeof(folder), "%s/gpumemtrace-XXXXXX", parent);
    int error = length >= (int)sizeof(folder) ? ENAMETOOLONG : mkdtemp(folder) ? 0 : errno;
    if (error)
        folder[0] = 0;
    return error;
}

int preload_name(const char *library, char name[PATH_MAX])
{
    if (!strpbrk(library, PRELOAD_SEPARATORS)) {
        snprintf(name, PATH_MAX, "%s", library);
        return 0;
    }
    int error = make_folder();
    if (error)
        return error;
    snprintf(name, PATH_MAX, "%s" LINK_NAME, folder);
    error = symlink(library, name) == 0 ? 0 : errno;
    if (error)
        preload_name_forget();
    return error;
}

void preload_name_forget(void)
{
    char name[PATH_MAX];
    if (!folder[0])
        return;
    snprintf(name, sizeof(name), "%s" LINK_NAME, folder);
    unlink(name);
    rmdir(folder);
    folder[0] = 0;
}
