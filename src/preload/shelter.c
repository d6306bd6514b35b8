/* Both signals are sent to the thread that writes, so it is enough that this thread blocks them, and takes
 * them away again (shelter.h). */
#include "preload/shelter.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int raised_by_write[] = {SIGPIPE, SIGXFSZ};

#define RAISED_COUNT (sizeof raised_by_write / sizeof *raised_by_write)

void shelter_enter(struct shelter *shelter)
{
    sigset_t raised;
    sigemptyset(&raised);
    for (size_t i = 0; i < RAISED_COUNT; i++)
        sigaddset(&raised, raised_by_write[i]);
    sigemptyset(&shelter->pending);
    sigpending(&shelter->pending);
    pthread_sigmask(SIG_BLOCK, &raised, &shelter->mask);
}

void shelter_leave(const struct shelter *shelter)
{
    int kept = errno;
    for (size_t i = 0; i < RAISED_COUNT; i++) {
        sigset_t one;
        if (sigismember(&shelter->pending, raised_by_write[i]))
            continue;
        sigemptyset(&one);
        sigaddset(&one, raised_by_write[i]);
        while (sigtimedwait(&one, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &shelter->mask, NULL);
    errno = kept;
}
