/* What src/hooks/process.c tells the library about the process's life. */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

/* From the last place code of ours runs in: writes the reports, closes the recording and says where they are.
 * Once; later calls, and those of a child that shares or copied this process's memory, do nothing. */
void preload_finish(void);

#endif
