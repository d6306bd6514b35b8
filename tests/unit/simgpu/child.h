/*
 * Tests of the simulated GPU run in processes of their own: the driver starts fresh in each, with its own
 * settings. EXPECT(expression, value) ends the child when they differ, and says where.
 */
#ifndef TEST_SIMGPU_CHILD_H
#define TEST_SIMGPU_CHILD_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../tools/simgpu/api/driver.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)

#define EXPECT(expression, value)                                                                            \
    do {                                                                                                     \
        long long got_ = (long long)(expression), wanted_ = (long long)(value);                              \
        if (got_ != wanted_) {                                                                               \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #expression, got_,          \
                    wanted_);                                                                                \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(expression)  EXPECT(expression, CUDA_SUCCESS)
#define TRUE(condition) EXPECT(!!(condition), 1)

/* A file of the simulated GPU. */
static inline const char *simgpu_path(const char *name)
{
    static char path[4096];
    const char *build = getenv("GPUMEMTRACE_BUILD");
    snprintf(path, sizeof path, "%s/simgpu/%s", build ? build : "build", name);
    return path;
}

static inline void *driver_symbol(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(simgpu_path("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    return symbol;
}

/* A function of the driver: CU(cuInit)(0). */
#define CU(name) ((__typeof__(&name))driver_symbol(#name))

/* The body in a child, with settings like "SIMGPU_MEMORY=64M SIMGPU_DEVICES=2". */
static inline int child_status(void (*body)(void), const char *settings)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char copy[512], *rest = NULL;
        snprintf(copy, sizeof copy, "%s", settings);
        for (char *setting = strtok_r(copy, " ", &rest); setting; setting = strtok_r(NULL, " ", &rest)) {
            char *value = strchr(setting, '=');
            *value++ = '\0';
            setenv(setting, value, 1);
        }
        body();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static inline void in_child(void (*body)(void), const char *settings)
{
    assert_int_equal(child_status(body, settings), 0);
}

/* A test whose body is body_NAME, in a child. */
#define CHILD_TEST(name, settings)                                                                           \
    static void name(void **state)                                                                           \
    {                                                                                                        \
        (void)state;                                                                                         \
        in_child(body_##name, settings);                                                                     \
    }

/* The driver initialised and a device's primary context current. */
static inline CUcontext start(int device)
{
    CUcontext context;
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&context, device));
    OK(CU(cuCtxSetCurrent)(context));
    return context;
}

static inline size_t free_bytes(void)
{
    size_t free, total;
    OK(CU(cuMemGetInfo_v2)(&free, &total));
    return free;
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address;
    OK(CU(cuMemAlloc_v2)(&address, bytes));
    return address;
}

#endif
