/* To be preloaded first: says on stderr what each look-up by cuGetProcAddress is given, whoever makes it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int get_address(const char *, void **, int, unsigned long long, void *);
typedef void *look_up(void *, const char *);

static get_address *real;

static int observe(const char *name, void **function, int version, unsigned long long flags, void *status)
{
    Dl_info info = {0};
    int rc = real(name, function, version, flags, status);
    void *found = rc == 0 && function != NULL ? *function : NULL;
    if (found != NULL)
        dladdr(found, &info);
    const char *file =
        info.dli_fname != NULL && strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : "";
    fprintf(stderr, "look-up %s %d %llu: %d %s %s\n", name, version, flags, rc,
            info.dli_sname != NULL && info.dli_saddr == found ? info.dli_sname : "-", file);
    if (found != NULL && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) {
        real = (get_address *)found;
        *function = (void *)observe;
    }
    return rc;
}

void *dlsym(void *handle, const char *name)
{
    static look_up *next;
    if (next == NULL) {
        look_up *libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (libc == NULL)
            libc = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        next = (look_up *)libc(RTLD_NEXT, "dlsym");
    }
    void *found = next(handle, name);
    if (found == NULL || strcmp(name, "cuGetProcAddress_v2") != 0)
        return found;
    real = (get_address *)found;
    return (void *)observe;
}
