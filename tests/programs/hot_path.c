/* hot_path ROUNDS FRAMES: allocates and frees so often, from a stack of so many frames. */
#include <stdlib.h>

typedef unsigned long long address;

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(address *, size_t);
int cuMemFree_v2(address);

static __attribute__((noinline)) void work(long rounds, int frames)
{
    if (frames > 1) {
        work(rounds, frames - 1);
    } else {
        for (address block; rounds > 0; rounds--)
            if (cuMemAlloc_v2(&block, 4096) != 0 || cuMemFree_v2(block) != 0)
                exit(1);
    }
    __asm__ volatile("" ::: "memory"); /* no jump in place of the call */
}

int main(int count, char **arguments)
{
    void *context;
    if (count != 3 || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        cuCtxSetCurrent(context) != 0)
        return 2;
    work(atol(arguments[1]), atoi(arguments[2]));
    return 0;
}
