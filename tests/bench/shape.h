/* A native stack as deep, and as different from others, as a measurement wants it (shape.c). */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

/* Calls `function` from below so many native frames; equal paths make equal stacks. */
void shape_descend(unsigned frames, unsigned path, void (*function)(void *), void *arg);

#endif
