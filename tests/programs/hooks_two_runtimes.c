/* A library that brings a runtime of its own, and says which one answers. */
#include <dlfcn.h>
#include <stdio.h>

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaRuntimeGetVersion(int *);

#ifdef MAIN

/* two_runtimes LIBRARY...: loads each by itself and has it allocate; then asks both by handle. */
int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            puts(dlerror());
            return 1;
        }
        ((void (*)(void))dlsym(library, "allocate"))();
    }
    static const char *const runtimes[] = {"libcudart.so.12", "libcudart.so.13"};
    for (int i = 0; i < 2; i++) {
        void *block = NULL, *runtime = dlopen(runtimes[i], RTLD_NOW | RTLD_LOCAL);
        int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(runtime, "cudaMalloc");
        int (*last_error)(void) = (int (*)(void))dlsym(runtime, "cudaGetLastError");
        printf("by handle: %d %d\n", allocate(&block, 1000), block != NULL);
        /* Only the runtime that was called remembers an error. */
        printf("refused: %d", allocate(&block, (size_t)1 << 50));
        printf(" and remembered: %d\n", last_error());
    }
    return 0;
}

#else

int cudaGetLastError(void);

void allocate(void)
{
    void *block = NULL;
    int version = 0;
    cudaRuntimeGetVersion(&version);
    printf("version %d: %d %d\n", version, cudaMalloc(&block, 1000), block != NULL);
    printf("refused: %d", cudaMalloc(&block, (size_t)1 << 50));
    printf(" and remembered: %d\n", cudaGetLastError());
}

#endif
