/*
 * A program that starts under any C library, however old: its entry is its own, since that of the linker's
 * start files asks for the version of where it was built. Allocates 10 blocks of 1 MiB, of which it gives
 * back 7, and names the version of its C library.
 */
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/abi.h"

CUresult cuInit(unsigned int);
CUresult cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);

static void work(void)
{
    CUcontext context;
    CUdeviceptr blocks[10];
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0))
        exit(3);
    for (int i = 0; i < 10; i++)
        if (cuMemAlloc_v2(&blocks[i], 1 << 20))
            exit(4);
    for (int i = 0; i < 7; i++)
        if (cuMemFree_v2(blocks[i]))
            exit(5);
    puts(gnu_get_libc_version());
    exit(0);
}

#ifdef __x86_64__
/* The kernel enters with the stack where a call would not have left it. */
__attribute__((force_align_arg_pointer))
#endif
void _start(void)
{
    work();
}
