/*
 * Marks of gpumemtrace.h: how high the live bytes of each layer and device rose since the program set one.
 * The lock of state.h covers everything here.
 *
 * A mark may be set before anything is recorded, so marks live outside the recording's memory.
 */
#ifndef PRELOAD_MARKS_H
#define PRELOAD_MARKS_H

#include <stdbool.h>

struct gpumemtrace_usage;

#define MARKS_MAX    64
#define MARK_DEVICES 16 /* those with a peak of their own */

/* A mark's number, from 1; 0 when all are set. */
int marks_set(void);
/* Nothing happens for one that is not set. */
void marks_take(int mark);
/* After an event that may have raised the live bytes of any space. Costs nothing while no mark is set. */
void marks_note(void);
/* Everything that was recorded is forgotten: marks that are set start from 0. */
void marks_restart(void);

/* As gpumemtrace_get_usage(). */
bool marks_usage(int mark, int layer, int device, struct gpumemtrace_usage *usage);

#endif
