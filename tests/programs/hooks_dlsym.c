/*
 * What dlsym means from where it is called. Says, a line each, whether a look-up found something, and what
 * dlerror() says. With LINKED, the program is linked with the driver.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void say(const char *what, void *found)
{
    const char *error = dlerror();
    Dl_info info = {0};
    const char *symbol = "";
    if (found != NULL && dladdr(found, &info) && info.dli_sname != NULL)
        symbol = info.dli_sname;
    printf("%s: %s%s%s, %s\n", what, found == NULL ? "nothing" : "found", *symbol ? " " : "", symbol,
           error == NULL                       ? "no error"
           : strstr(error, "undefined symbol") ? "undefined symbol"
                                               : "other error");
}

int main(void)
{
    void *self = dlopen(NULL, RTLD_NOW);
    say("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    say("program", dlsym(self, "cuMemAlloc_v2"));
    say("next", dlsym(RTLD_NEXT, "puts"));
    say("next, of the driver", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
    say("next, of the runtime", dlsym(RTLD_NEXT, "cudaMalloc"));
    say("runtime", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    say("unknown", dlsym(RTLD_DEFAULT, "cuMemAlloc_v99"));
    say("other", dlsym(RTLD_DEFAULT, "printf"));
    say("null handle of nothing", dlsym(self, "no_such_function"));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    say("handle", dlsym(driver, "cuMemAlloc_v2"));
    say("handle, unknown", dlsym(driver, "cuMemAlloc_v99"));
    say("handle, other library's", dlsym(driver, "cudaMalloc"));
    say("default after a local dlopen", dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
    say("program after a local dlopen", dlsym(self, "cuMemFree_v2"));
    (void)dlsym(RTLD_DEFAULT, "no_such_function");
    (void)dlsym(driver, "cuMemAllocHost_v2");
    say("a success clears the error", driver);
    errno = 99;
    (void)dlsym(driver, "cuMemAllocManaged");
    printf("errno %d\n", errno);
    dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    say("default after a global dlopen", dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
    say("next after a global dlopen", dlsym(RTLD_NEXT, "cuMemFree_v2"));
    void *c = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    say("another library's handle", dlsym(c, "cuMemAlloc_v2"));
    say("a bad version", dlvsym(driver, "cuMemAlloc_v2", "NO_SUCH_VERSION"));
    return 0;
}
