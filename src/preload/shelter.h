/*
 * Keeps our own writing from ending the traced program: a write to a closed pipe raises SIGPIPE, one beyond
 * ulimit -f SIGXFSZ, and both kill by default. Between the two calls they are errors of write(2) and no more;
 * those that came before, or from others, are left as they are.
 */
#ifndef PRELOAD_SHELTER_H
#define PRELOAD_SHELTER_H

#include <signal.h>

struct shelter {
    sigset_t mask, pending; /* before */
};

void shelter_enter(struct shelter *shelter);
void shelter_leave(const struct shelter *shelter);

#endif
