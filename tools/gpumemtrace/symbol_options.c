/* --sysroot and --debug-dir; see symbol_options.h. */
#include "symbol_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder's absolute path. */
static char *folder(const char *value)
{
    struct stat status;
    char *path = realpath(value, NULL);
    if (path && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return path;
    complain(value, "%s", path ? "not a folder" : strerror(errno));
    exit(STATUS_UNUSABLE);
}

void symbol_options_take(struct symbol_options *options, const struct command *command, int id,
                         const char *value)
{
    struct symbol_places *places = &options->places;
    if (id == OPTION_SYSROOT) {
        free((char *)places->sysroot);
        places->sysroot = folder(value); /* "/" does no harm */
    } else if (id == OPTION_DEBUG_DIR) {
        if (places->debug_dir_count == DEBUG_DIRS_MAX)
            usage_error(command, "option '--debug-dir' was given more than %d times", DEBUG_DIRS_MAX);
        places->debug_dirs = options->debug_dirs;
        options->debug_dirs[places->debug_dir_count++] = folder(value);
    }
}

void symbol_options_release(struct symbol_options *options)
{
    free((char *)options->places.sysroot);
    for (size_t i = 0; i < options->places.debug_dir_count; i++)
        free((char *)options->debug_dirs[i]);
    *options = (struct symbol_options){0};
}
