/* Preloaded: a monotonic clock of which each look takes equally long, so that a program's turns are even
 * however busy the machine is. Other clocks are the machine's. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 100000

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static _Atomic long long looks;
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, time);
    long long now = (atomic_fetch_add(&looks, 1) + 1) * LOOK_NS;
    *time = (struct timespec){now / 1000000000, now % 1000000000};
    return 0;
}
