/*
 * Another tool to be preloaded, as people write them: stands in front of cuMemAlloc_v2 and counts, and says
 * at the end how many calls came by. by symbol alone       exports cuMemAlloc_v2 and goes on by RTLD_NEXT
 *   -DHOOKS_DLSYM         exports a dlsym too, and hands out its own cuMemAlloc_v2 there and by
 * cuGetProcAddress
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int allocate(unsigned long long *, size_t);
typedef int get_address(const char *, void **, int, unsigned long long, int *);
typedef void *look_up(void *, const char *);

static int calls;
static allocate *real_allocate;

/* The usual way to the next dlsym: libc's by its version, or whoever comes next. */
static look_up *next_dlsym(void)
{
#ifdef HOOKS_DLSYM
    static look_up *next;
    if (next == NULL) {
        look_up *libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (libc == NULL)
            libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        if (libc == NULL)
            libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
        next = (look_up *)libc(RTLD_NEXT, "dlsym");
    }
    return next;
#else
    return dlsym;
#endif
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (real_allocate == NULL)
        real_allocate = (allocate *)next_dlsym()(RTLD_NEXT, "cuMemAlloc_v2");
    return real_allocate(address, bytes);
}

#ifdef HOOKS_DLSYM

static get_address *real_get_address;

static int my_get_address(const char *name, void **function, int version, unsigned long long flags,
                          int *status)
{
    int rc = real_get_address(name, function, version, flags, status);
    if (rc == 0 && strcmp(name, "cuMemAlloc") == 0 && version >= 3020) {
        real_allocate = *(allocate **)function;
        *function = (void *)cuMemAlloc_v2;
    }
    return rc;
}

void *dlsym(void *handle, const char *name)
{
    look_up *next = next_dlsym();
    if (handle == RTLD_NEXT)
        return next(handle, name);
    void *found = next(handle, name);
    if (found != NULL && strcmp(name, "cuMemAlloc_v2") == 0) {
        real_allocate = (allocate *)found;
        return (void *)cuMemAlloc_v2;
    }
    if (found != NULL && strcmp(name, "cuGetProcAddress_v2") == 0) {
        real_get_address = (get_address *)found;
        return (void *)my_get_address;
    }
    return found;
}

#endif

__attribute__((destructor)) static void say(void)
{
    if (calls > 0)
        printf("the other tool saw %d\n", calls);
    fflush(stdout);
}
