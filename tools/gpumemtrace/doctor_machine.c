/* The checks of doctor that need no program; see doctor.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "install_paths.h"
#include "preload_name.h"

enum finding check_library(struct words *words)
{
    char path[PATH_MAX];
    const char *given = getenv("GPUMEMTRACE_LIBRARY");
    if (find_library(path, sizeof(path)) != 0) {
        words_add(words,
                  "libgpumemtrace.so is %s%s. Set GPUMEMTRACE_LIBRARY to where it is, or install again.",
                  given && given[0] ? "not where GPUMEMTRACE_LIBRARY says: "
                                    : "not beside this program nor in ../lib",
                  given ? given : "");
        return FINDING_BAD;
    }
    words_add(words, "%s", path);
    if (!strpbrk(path, PRELOAD_SEPARATORS))
        return FINDING_GOOD;
    words_add(words, ": LD_PRELOAD cannot hold a path with spaces or colons; gpumemtrace run makes a link");
    return FINDING_ODD;
}

/* The dynamic linker tells on stderr what it cannot preload, and goes on without. */
enum finding check_preload(struct words *words)
{
    char path[PATH_MAX], name[PATH_MAX], text[1024];
    char *const program[] = {(char *)"/bin/true", NULL};
    if (find_library(path, sizeof(path)) != 0 || preload_name(path, name) != 0)
        return FINDING_NONE;
    int status = doctor_capture(program, "LD_PRELOAD", name, text, sizeof(text));
    preload_name_forget();
    if (status == 0 && text[0] == 0) {
        words_add(words, "it loads into programs of this machine");
        return FINDING_GOOD;
    }
    text[strcspn(text, "\n")] = 0;
    words_add(words, "it does not load: %s", text[0] ? text : "/bin/true fails with it");
    return FINDING_BAD;
}

/* What a program's first call would say; in a process of its own, since a driver may do anything. */
static void ask_driver(void)
{
    int devices = 0, version = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        printf("%s", dlerror());
        _exit(1);
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
    int (*get_version)(int *) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
    int result = init && count && get_version ? init(0) : -1;
    if (result != 0) {
        printf("libcuda.so.1 is there, and cuInit gives %d", result);
        _exit(1);
    }
    get_version(&version);
    count(&devices);
    printf("libcuda.so.1 for CUDA %d.%d, %d device%s", version / 1000, version % 1000 / 10, devices,
           devices == 1 ? "" : "s");
    exit(devices > 0 ? 0 : 1);
}

/* The child's words in `text`; whether it was content. */
static bool driver_works(char *text, size_t bytes)
{
    int pipes[2], status = -1;
    size_t used = 0;
    ssize_t got = 0;
    text[0] = 0;
    if (pipe(pipes) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        setvbuf(stdout, NULL, _IONBF, 0);
        alarm(20); /* a driver that hangs is a finding too */
        ask_driver();
    }
    close(pipes[1]);
    while (used + 1 < bytes && (got = read(pipes[0], text + used, bytes - 1 - used)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    text[used] = 0;
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (used == 0)
        snprintf(text, bytes, "libcuda.so.1 is there, and does not answer");
    return child > 0 && status == 0;
}

enum finding check_driver(struct words *words)
{
    char text[512], folder[PATH_MAX];
    bool works = driver_works(text, sizeof(text));
    words_add(words, "%s", text);
    if (works)
        return FINDING_GOOD;
    words_add(words, ". Programs find no GPU here");
    if (find_simgpu(folder, sizeof(folder)) == 0)
        words_add(words, "; gpumemtrace run --simulate gives them a simulated one");
    return FINDING_ODD;
}

enum finding check_unwinder(struct words *words)
{
    void *unwinder = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    if (!unwinder) {
        words_add(words,
                  "libunwind.so.8 is missing: native stacks with unusual frames will be cut short. Install "
                  "libunwind8 (Debian, Ubuntu) or libunwind (Fedora).");
        return FINDING_ODD;
    }
    dlclose(unwinder);
    words_add(words, "libunwind.so.8 is there");
    return FINDING_GOOD;
}

/* The folder of the files' pattern, as far as it stands before anything is filled in. */
static void output_folder(char folder[PATH_MAX])
{
    const char *pattern = getenv("GPUMEMTRACE_OUTPUT");
    snprintf(folder, PATH_MAX, "%s", pattern && pattern[0] ? pattern : "gpumemtrace.%p");
    folder[strcspn(folder, "%")] = 0;
    char *slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        slash[slash == folder ? 1 : 0] = 0;
}

#define ROOM_WANTED (UINT64_C(1) << 30) /* what one recording may take by default */

enum finding check_output(struct words *words)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    struct statvfs status;
    output_folder(folder);
    snprintf(path, sizeof(path), "%s/.gpumemtrace.XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0) {
        words_add(words, "%s: %s. Name another folder with -o or GPUMEMTRACE_OUTPUT.", folder,
                  strerror(errno));
        return FINDING_BAD;
    }
    unlink(path);
    close(fd);
    words_add(words, "files can be written in %s", strcmp(folder, ".") == 0 ? "this folder" : folder);
    if (statvfs(folder, &status) != 0)
        return FINDING_GOOD;
    uint64_t room = (uint64_t)status.f_bavail * status.f_frsize;
    words_add(words, ", ");
    words_size(words, room);
    words_add(words, " are free");
    if (room >= ROOM_WANTED)
        return FINDING_GOOD;
    words_add(words, ": a recording may take 1 GiB a process; GPUMEMTRACE_MAX_TRACE makes it less");
    return FINDING_ODD;
}

static bool is_on(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] && strcmp(value, "0") != 0;
}

enum finding check_settings(struct words *words)
{
    const char *preload = getenv("LD_PRELOAD");
    if (is_on("GPUMEMTRACE_DISABLE")) {
        words_add(words, "GPUMEMTRACE_DISABLE is set: nothing is recorded. Unset it.");
        return FINDING_BAD;
    }
    if (preload && preload[0]) {
        words_add(words, "LD_PRELOAD has %s already; gpumemtrace run adds to it", preload);
        return FINDING_ODD;
    }
    return FINDING_NONE;
}
