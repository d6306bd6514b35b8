/*
 * A program that is not Python and comes to have one late, opened RTLD_LOCAL: python_host LIBPYTHON PROBE
 * SOURCE. Takes stacks with the probe before, in (at every call of a function) and after Python, and again in
 * another thread of a second Python, and prints the number of Python frames of each; of those inside, the
 * largest.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s is missing\n", name);
        exit(2);
    }
    return found;
}

static int (*walk)(char *, int);
static char stack[1 << 16];
static int most_inside;

/* A Py_tracefunc. */
static int called(void *self, void *frame, int what, void *argument)
{
    (void)self, (void)frame, (void)argument;
    int frames = what == 0 ? walk(stack, sizeof stack) : 0; /* PyTrace_CALL */
    if (frames > most_inside)
        most_inside = frames;
    return 0;
}

/* Runs the source with a stack at every call of a function; the result is PyRun_SimpleString's. The library
 * loads `atexit`, by Python functions, which would count too if it were not there already. */
static int run(void *python, const char *source)
{
    void (*set_profile)(void *, void *) = (void (*)(void *, void *))symbol(python, "PyEval_SetProfile");
    int (*run_source)(const char *) = (int (*)(const char *))symbol(python, "PyRun_SimpleString");
    int failed = run_source("import atexit");
    most_inside = 0;
    set_profile((void *)called, NULL);
    failed |= run_source(source);
    set_profile(NULL, NULL);
    return failed;
}

struct job {
    void *python;
    const char *source;
    int failed;
};

static void *run_in_thread(void *argument)
{
    struct job *job = argument;
    int state = ((int (*)(void))symbol(job->python, "PyGILState_Ensure"))();
    job->failed = run(job->python, job->source);
    ((void (*)(int))symbol(job->python, "PyGILState_Release"))(state);
    return NULL;
}

static int run_in_another_thread(void *python, const char *source)
{
    struct job job = {python, source, 1};
    pthread_t thread;
    void *own_state = ((void *(*)(void))symbol(python, "PyEval_SaveThread"))();
    if (pthread_create(&thread, NULL, run_in_thread, &job) == 0)
        pthread_join(thread, NULL);
    ((void (*)(void *))symbol(python, "PyEval_RestoreThread"))(own_state);
    return job.failed;
}

static int is_mapped(const char *path)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, path) != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    void *probe = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
    if (probe == NULL)
        return 2;
    void (*start)(int, int) = (void (*)(int, int))symbol(probe, "probe_start");
    walk = (int (*)(char *, int))symbol(probe, "probe_walk");
    void (*changed)(void) = (void (*)(void))symbol(probe, "probe_modules_changed");
    start(3, 64);
    printf("before %d\n", walk(stack, sizeof stack));
    usleep(20000); /* the search for Python is repeated at intervals */

    void *python = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (python == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    printf("loaded %d\n", walk(stack, sizeof stack));
    ((void (*)(int))symbol(python, "Py_InitializeEx"))(0);
    printf("initialised %d\n", walk(stack, sizeof stack));
    int failed = run(python, arguments[3]);
    printf("inside %d\n", most_inside);
    ((void (*)(void))symbol(python, "Py_Finalize"))();
    printf("after %d\n", walk(stack, sizeof stack));

    ((void (*)(int))symbol(python, "Py_InitializeEx"))(0);
    failed |= run_in_another_thread(python, arguments[3]);
    printf("again %d\n", most_inside);
    ((void (*)(void))symbol(python, "Py_Finalize"))();
    printf("ended %d\n", walk(stack, sizeof stack));
    dlclose(python);
    printf("mapped %d\n", is_mapped(arguments[1]));
    changed();
    printf("unloaded %d\n", walk(stack, sizeof stack));
    return failed ? 1 : 0;
}
