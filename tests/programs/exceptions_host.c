/* A C program, without any C++ in it, that loads some later: exceptions_host LIBRARY NAME calls its
 * run(NAME). */
#include <dlfcn.h>
#include <stdio.h>

typedef unsigned long long address;
int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *address, size_t bytes);

int main(int count, char **arguments)
{
    void *context;
    address block;
    /* A stack is taken before there is any C++. */
    if (count != 3 || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        cuCtxSetCurrent(context) != 0 || cuMemAlloc_v2(&block, 4096) != 0)
        return 2;
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return ((int (*)(const char *))dlsym(library, "run"))(arguments[2]);
}
