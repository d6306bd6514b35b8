/*
 * A kernel that refuses: a program that names one of these functions has its own mmap(), which fails with
 * ENOMEM when the given number of mappings was granted. For code that takes memory by mmap() alone; malloc()
 * keeps its own way to the kernel.
 */
#ifndef UNIT_KERNEL_H
#define UNIT_KERNEL_H

#include <limits.h>
#include <stdbool.h>

#define KERNEL_GRANTS_ALL INT_MAX

void kernel_grants(int mappings);
/* As a file system that cannot map files for writing: ENODEV. */
void kernel_refuses_shared_maps(bool refuses);
/* How often it refused since kernel_grants(). */
int kernel_refusals(void);

#endif
