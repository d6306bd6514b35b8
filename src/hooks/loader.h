/* How this library itself asks the dynamic linker: never through its own dlsym. */
#ifndef HOOKS_LOADER_H
#define HOOKS_LOADER_H

/* What a reference from this library would find behind it in the search order; NULL when nothing, and then
 * dlerror() has nothing to say either. */
void *loader_next(const char *name);

#endif
