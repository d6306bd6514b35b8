/*
 * Looks functions of the driver up and says what came of it, one line a look-up: the result code, the status,
 * and the symbol and file that hold the function.
 *
 *   hooks_look_up address            lines "name version flags" on stdin: cuGetProcAddress_v2
 *   hooks_look_up address-v1         the same, by the four-argument cuGetProcAddress
 *   hooks_look_up name               lines "name": dlsym on the driver's handle
 *   hooks_look_up global             the same on the handle of all that is loaded globally, the driver too
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int look_up_v1(const char *, void **, int, unsigned long long);
typedef int look_up_v2(const char *, void **, int, unsigned long long, int *);

static void say(void *function)
{
    Dl_info info;
    if (function == NULL || !dladdr(function, &info)) {
        puts("nothing");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    printf("%s %s\n", info.dli_sname != NULL && info.dli_saddr == function ? info.dli_sname : "?",
           slash != NULL ? slash + 1 : info.dli_fname);
}

int main(int count, char **arguments)
{
    char name[256];
    int version;
    unsigned long long flags;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL || count != 2)
        return 2;
    look_up_v1 *v1 = (look_up_v1 *)dlsym(driver, "cuGetProcAddress");
    look_up_v2 *v2 = (look_up_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
    if (strcmp(arguments[1], "global") == 0) {
        dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        driver = dlopen(NULL, RTLD_NOW);
    }
    if (strcmp(arguments[1], "name") == 0 || strcmp(arguments[1], "global") == 0) {
        while (scanf("%255s", name) == 1) {
            printf("%s: ", name);
            say(dlsym(driver, name));
        }
        return 0;
    }
    while (scanf("%255s %d %llu", name, &version, &flags) == 3) {
        void *function = NULL, *again = NULL;
        int status = 77;
        if (strcmp(name, "(empty)") == 0)
            name[0] = '\0';
        if (strcmp(arguments[1], "address-v1") == 0) {
            printf("%s %d %llu: %d ", name, version, flags, v1(name, &function, version, flags));
        } else {
            int rc = v2(name, &function, version, flags, &status);
            /* NVIDIA's own runtime passes no status. */
            int rc_without = v2(name, &again, version, flags, NULL);
            printf("%s %d %llu: %d %d %s ", name, version, flags, rc, status,
                   rc == rc_without && function == again ? "alike" : "different without status");
        }
        say(function);
    }
    return 0;
}
