/*
 * The capture code as a library of its own, for tests that call it from Python by ctypes or preload it into a
 * program. Stacks come back as text, one frame a line, innermost first:
 *   python TAB function TAB file TAB line          native TAB module TAB offset in it, hexadecimal
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "capture/capture.h"
#include "capture/modules.h"

#define EXPORT __attribute__((visibility("default")))

static char notes[4096];

static void add_note(const char *sentence)
{
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", sentence);
}

EXPORT void probe_start(int mode, int depth)
{
    capture_start((enum capture_mode)mode, (uint32_t)depth, add_note);
}

EXPORT const char *probe_notes(void)
{
    return notes;
}

static int append(char *text, int bytes, int used, const char *line)
{
    int length = (int)strlen(line);
    if (used < 0 || used + length >= bytes)
        return -1;
    memcpy(text + used, line, (size_t)length + 1);
    return used + length;
}

static int describe(const struct raw_stack *stack, char *text, int bytes)
{
    char line[9000];
    int used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < stack->native_count; i++) {
        struct loaded_module module;
        bool known = modules_find(stack->native[i], &module);
        snprintf(line, sizeof line, "native\t%s\t%" PRIxPTR "\n", known ? module.path : "",
                 stack->native[i] - (known ? module.module.bias : 0));
        used = append(text, bytes, used, line);
    }
    for (uint32_t i = 0; i < stack->python_count; i++) {
        struct python_name name;
        capture_python_name(&stack->python[i], &name);
        snprintf(line, sizeof line, "python\t%s\t%s\t%d\n", name.function, name.file, (int)name.line);
        used = append(text, bytes, used, line);
    }
    return used;
}

static int (*unwind)(void **, int);

/* From now on every native half is compared with what libunwind says. False when that cannot be had. */
EXPORT int probe_compare(void)
{
#ifndef __SANITIZE_THREAD__ /* which has forgotten a thread when libunwind frees its cache */
    void *libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (libunwind != NULL)
        unwind = (int (*)(void **, int))dlsym(libunwind, "unw_backtrace");
#endif
    return unwind != NULL;
}

static bool is_what_libunwind_says(const struct raw_stack *stack)
{
    void *frames[2048];
    int count = unwind(frames, 2048), own = 0;
    while (own < count && stack->native_count != 0 && (uintptr_t)frames[own] != stack->native[0])
        own++;
    return (uint32_t)(count - own) >= stack->native_count &&
           memcmp(frames + own, stack->native, stack->native_count * sizeof *stack->native) == 0;
}

/* Number of Python frames, -1 when `text` is too small, -2 when the native half is wrong. */
EXPORT int probe_walk(char *text, int bytes)
{
    struct raw_stack stack;
    capture_take(&stack);
    if (unwind != NULL && !is_what_libunwind_says(&stack))
        return -2;
    return describe(&stack, text, bytes) < 0 ? -1 : (int)stack.python_count;
}

/* The same after spinning, so that other threads run while the caller is detached from the interpreter. */
EXPORT int probe_walk_late(char *text, int bytes, int spins)
{
    for (volatile int i = 0; i < spins; i++)
        ;
    return probe_walk(text, bytes);
}

/* Captures for `milliseconds`; the number of captures. */
EXPORT long probe_capture_for(int milliseconds)
{
    struct timespec start, now;
    long captures = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        struct raw_stack stack;
        capture_take(&stack);
        captures++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
    return captures;
}

EXPORT uint64_t probe_hash(void)
{
    struct raw_stack stack;
    capture_take(&stack);
    return stack.hash;
}

EXPORT void probe_modules_changed(void)
{
    capture_modules_changed();
}

EXPORT void probe_call(void (*callback)(void))
{
    callback();
}

struct thread_walk {
    char *text;
    int bytes, result;
};

static void *walk_in_thread(void *arg)
{
    struct thread_walk *walk = arg;
    walk->result = probe_walk(walk->text, walk->bytes);
    return NULL;
}

/* As probe_walk, in a new thread that Python has never heard of. */
EXPORT int probe_walk_in_thread(char *text, int bytes)
{
    struct thread_walk walk = {text, bytes, -2};
    pthread_t thread;
    if (pthread_create(&thread, NULL, walk_in_thread, &walk) != 0)
        return -2;
    pthread_join(thread, NULL);
    return walk.result;
}

static void *call_in_thread(void *arg)
{
    ((void (*)(void))arg)();
    return NULL;
}

EXPORT int probe_call_in_thread(void (*callback)(void))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_in_thread, (void *)callback) != 0)
        return -1;
    return pthread_join(thread, NULL);
}
