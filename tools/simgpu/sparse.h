/*
 * Arrays and mipmaps without memory of their own: sparse ones, mapped tile by tile, and deferred ones, mapped
 * as a whole. What is mapped keeps the memory behind it alive; copies to and from it are refused.
 */
#ifndef SIMGPU_SPARSE_H
#define SIMGPU_SPARSE_H

struct sparse;

/* The array ends: lets go of all memory. NULL is nothing. */
void sparse_end(struct sparse *sparse);

#endif
