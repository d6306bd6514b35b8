/* A library that uses the driver it is linked with: allocates `keep` + `scratch` blocks of 4096 bytes, frees
 * the scratch. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);

static void check(int result, const char *what)
{
    if (result != 0) {
        printf("%s gave %d\n", what, result);
        exit(1);
    }
}

/* What it brings along is found by a search from inside it, though by no other. */
void plugin_look_around(void)
{
    printf("the driver: %s\n", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL ? "found" : "nothing");
    printf("a runtime: %s\n", dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL ? "found" : "nothing");
}

void plugin_start(void)
{
    void *context;
    check(cuInit(0), "cuInit");
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void plugin_run(int keep, int scratch)
{
    unsigned long long address;
    for (int i = 0; i < keep + scratch; i++) {
        check(cuMemAlloc_v2(&address, 4096), "cuMemAlloc_v2");
        if (i >= keep)
            check(cuMemFree_v2(address), "cuMemFree_v2");
    }
}
