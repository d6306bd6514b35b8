/*
 * The phases and steps that the program names (gpumemtrace.h, NVTX): each thread's stack of pushed ranges,
 * and the list of all that are open, so that a recording that begins in the middle of one knows it.
 *
 * Whatever a program does with names, there is a bound: of names that differ in their digits only ("step 1",
 * "step 2", …) the first few stay as they are, and all further ones are one phase, "step #".
 *
 * Every function may be called at any time, from any thread; errno is kept.
 */
#ifndef PRELOAD_PROGRAM_PHASES_H
#define PRELOAD_PROGRAM_PHASES_H

#include <stdint.h>

#define PHASE_NAME_BYTES 256 /* with its NUL; longer names are cut */

/* A range that ends with the innermost pop of the same thread and domain. `domain` is any address that stands
 * for who marks it. Returns how many of the domain were open in the thread. */
int phase_push(const void *domain, const char *name);
/* The same, of those left; -1 when none was open. */
int phase_pop(const void *domain);

/* A range that any thread may end: its number, never 0. */
uint32_t phase_start(const char *name);
void phase_stop(uint32_t range);

/* Under the lock: what is open becomes part of the recording that has just begun. */
void phases_begin_recording(void);
/* Under the lock: the recording and its strings are gone. */
void phases_forget_recording(void);
/* In a child: the threads whose phases were open are not there. */
void phases_after_fork(void);

#endif
