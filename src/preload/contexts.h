/* Numbers of contexts, beyond what hooks need of them (recorder_context() in recorder.h). */
#ifndef PRELOAD_CONTEXTS_H
#define PRELOAD_CONTEXTS_H

#include <stdint.h>

/* The number of a context that ended, or 0 when it never had one; its handle is free for another. */
uint32_t context_forget(const void *context);

#endif
