/* What src/hooks/process.c tells the library about the process's life. */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

#include <stdbool.h>

/* From the last place code of ours runs in: writes the reports, closes the recording and says where they are.
 * Once; later calls, and those of a child that shares or copied this process's memory, do nothing. */
void preload_finish(void);

/* Around a call that replaces the program by another one, if it succeeds. The first does as preload_finish()
 * and keeps everybody from recording; where it returned true, the second takes that back, once the call has
 * failed. */
bool preload_before_exec(void);
void preload_after_exec_failed(void);

#endif
