/*
 * What LD_PRELOAD can be given for a library. The variable is a list that spaces and colons separate, and
 * knows no way to write a path that has one: such a library is named by a link in a folder of temporary
 * files, until it is forgotten.
 */
#ifndef GPUMEMTRACE_PRELOAD_NAME_H
#define GPUMEMTRACE_PRELOAD_NAME_H

#include <limits.h>

#define PRELOAD_SEPARATORS " :"

/* `library` itself, or the link. 0, or the errno that kept a link from being made. At most one link at a
 * time. */
int preload_name(const char *library, char name[PATH_MAX]);
/* Removes the link, if there is one: what starts later cannot load the library by it, what runs keeps it. */
void preload_name_forget(void);

#endif
