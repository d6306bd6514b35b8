/* Runs a program the way a shell would: it keeps the terminal, gets the signals, and its end becomes ours. */
#ifndef GPUMEMTRACE_FOREGROUND_H
#define GPUMEMTRACE_FOREGROUND_H

#include <stdbool.h>

/* Runs `argv` (found in PATH) with this process's environment and waits for its end; `follow`: and for the
 * end of every process that it started and left behind. Returns 0 with its wait status, or the errno that
 * kept it from starting. Signals sent to us meanwhile are passed on; those of the terminal it gets by itself,
 * being in our process group. */
int foreground_run(char *const argv[], bool follow, int *wait_status);

/* Ends this process as the child ended: with its exit status, or by the same signal, without a core of our
 * own. */
void foreground_end_like(int wait_status) __attribute__((noreturn));

#endif
