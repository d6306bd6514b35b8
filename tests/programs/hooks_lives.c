/*
 * Lives of a program that are easy to get wrong. The first argument says which:
 *   plugin FILE        dlopen of the plugin, local
 *   deepbind FILE      dlopen with RTLD_DEEPBIND
 *   namespace FILE     dlmopen into a namespace of its own
 *   reload FILE        dlopen, run, dlclose of the plugin and its driver, three times
 *   early              allocates in a constructor, frees in a destructor, and both in an atexit handler
 *   fork-before        forks, then both use CUDA
 *   fork-after         uses CUDA, then forks; the child finds CUDA out of order and says so
 *   bare-thread        allocates in a thread without a context
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*init)(unsigned int);
static int (*retain)(void **, int);
static int (*set_current)(void *);
static int (*allocate)(unsigned long long *, size_t);
static int (*release)(unsigned long long);
static unsigned long long early_block;
static const char *mode = "";

static void check(int result, const char *what)
{
    if (result != 0) {
        printf("%s gave %d\n", what, result);
        exit(1);
    }
}

static void look_up(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    init = (int (*)(unsigned int))dlsym(driver, "cuInit");
    retain = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    set_current = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    allocate = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
    release = (int (*)(unsigned long long))dlsym(driver, "cuMemFree_v2");
}

static void start(void)
{
    void *context;
    look_up();
    check(init(0), "cuInit");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(set_current(context), "cuCtxSetCurrent");
}

static void use(int keep, int scratch)
{
    unsigned long long address;
    for (int i = 0; i < keep + scratch; i++) {
        check(allocate(&address, 4096), "allocate");
        if (i >= keep)
            check(release(address), "release");
    }
}

__attribute__((constructor)) static void before_main(int count, char **arguments)
{
    if (count < 2 || strcmp(arguments[1], "early") != 0)
        return;
    mode = "early";
    start();
    check(allocate(&early_block, 1 << 20), "allocate");
}

__attribute__((destructor)) static void after_main(void)
{
    if (strcmp(mode, "early") == 0)
        check(release(early_block), "release");
}

static void at_exit(void)
{
    use(1, 2);
}

static void run_plugin(void *plugin)
{
    if (plugin == NULL) {
        puts(dlerror());
        exit(1);
    }
    ((void (*)(void))dlsym(plugin, "plugin_start"))();
    ((void (*)(int, int))dlsym(plugin, "plugin_run"))(1, 2);
}

static void *in_thread(void *unused)
{
    unsigned long long address = 77;
    (void)unused;
    printf("without a context: %d\n", allocate(&address, 4096));
    printf("address %llu\n", address);
    return NULL;
}

static void wait_for(pid_t child)
{
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
}

static int is_loaded(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_NOLOAD) != NULL;
}

int main(int count, char **arguments)
{
    mode = arguments[1];
    if (strcmp(mode, "plugin") == 0) {
        void *plugin = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
        run_plugin(plugin);
        ((void (*)(void))dlsym(plugin, "plugin_look_around"))();
    } else if (strcmp(mode, "deepbind") == 0) {
        run_plugin(dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND));
    } else if (strcmp(mode, "namespace") == 0) {
        run_plugin(dlmopen(LM_ID_NEWLM, arguments[2], RTLD_NOW));
    } else if (strcmp(mode, "reload") == 0) {
        for (int turn = 0; turn < 3; turn++) {
            void *plugin = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
            run_plugin(plugin);
            printf("dlclose %d\n", dlclose(plugin));
            printf("loaded %d\n", is_loaded("libcuda.so.1"));
        }
    } else if (strcmp(mode, "early") == 0) {
        atexit(at_exit);
    } else if (strcmp(mode, "fork-before") == 0) {
        pid_t child = fork();
        start();
        use(child == 0 ? 2 : 1, 3);
        if (child != 0)
            wait_for(child);
    } else if (strcmp(mode, "fork-after") == 0) {
        start();
        use(1, 1);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            unsigned long long address;
            int rc = allocate(&address, 4096);
            printf("in the child: %s\n", rc == 0 ? "works" : "fails");
            release(0x1234);
            return 0;
        }
        wait_for(child);
        use(0, 1);
    } else if (strcmp(mode, "bare-thread") == 0) {
        pthread_t thread;
        start();
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
        use(1, 1);
    }
    (void)count;
    return 0;
}
