/* The checks of doctor that look at a program; see doctor.h. */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "capture/python_layout.h"
#include "doctor.h"
#include "install_paths.h"
#include "preload_name.h"
#include "program_file.h"
#include "report/frames.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

static struct program_file program;
static bool has_rights; /* more than the user who starts it */

void program_find(char *const argv[])
{
    program_file_find(argv[0], &program);
}

enum finding check_program(struct words *words)
{
    if (!program.path[0]) {
        words_add(words, "%s: %s", program.name,
                  program.script[0] ? "its interpreter is not found"
                                    : "not found. Give its path, or set PATH.");
        return FINDING_BAD;
    }
    words_add(words, "%s", program.script[0] ? program.script : program.path);
    if (program.script[0])
        words_add(words, ", a script for %s", program.path);
    if (!program.is_elf) {
        words_add(words, ": neither a script nor a program of Linux");
        return FINDING_BAD;
    }
    return FINDING_GOOD;
}

/* Programs that start another one, where our environment does not follow. X(name, how) */
#define WRAPPERS(X)                                                                                          \
    X("sudo", "clears the environment")                                                                      \
    X("su", "clears the environment")                                                                        \
    X("doas", "clears the environment")                                                                      \
    X("pkexec", "clears the environment")                                                                    \
    X("docker", "starts the program in a container")                                                         \
    X("podman", "starts the program in a container")                                                         \
    X("nerdctl", "starts the program in a container")                                                        \
    X("apptainer", "starts the program in a container")                                                      \
    X("singularity", "starts the program in a container")                                                    \
    X("kubectl", "starts the program elsewhere")                                                             \
    X("ssh", "starts the program on another machine")                                                        \
    X("sbatch", "starts the program on another machine")

enum finding check_wrapper(struct words *words)
{
#define AS_ROW(name, how) {name, how},
    static const char *const wrappers[][2] = {WRAPPERS(AS_ROW)};
#undef AS_ROW
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++) {
        if (strcmp(base_name(program.name), wrappers[i][0]) != 0)
            continue;
        words_add(words, "%s %s. Put gpumemtrace run behind it: %s … gpumemtrace run -- PROGRAM",
                  wrappers[i][0], wrappers[i][1], wrappers[i][0]);
        return FINDING_BAD;
    }
    return FINDING_NONE;
}

/* The dynamic linker takes no LD_PRELOAD from the user for a program that has more rights than they have. */
enum finding check_rights(struct words *words)
{
    struct stat status;
    char capability[64];
    if (!program.is_elf || stat(program.path, &status) != 0)
        return FINDING_NONE;
    bool has_bits = status.st_mode & (S_ISUID | S_ISGID);
    bool has_capability = getxattr(program.path, "security.capability", capability, sizeof(capability)) > 0;
    has_rights = has_bits || has_capability;
    if (!has_rights)
        return FINDING_NONE;
    words_add(words, "%s %s: LD_PRELOAD is ignored. Use a copy without.", program.path,
              has_bits ? "is setuid or setgid" : "has file capabilities");
    return FINDING_BAD;
}

enum finding check_linking(struct words *words)
{
    if (!program.is_elf)
        return FINDING_NONE;
    if (program.machine != MACHINE) {
        words_add(words, "it is for another kind of processor than this library. Use one built for it.");
        return FINDING_BAD;
    }
    if (!program.is_dynamic) {
        words_add(words, "it is static: there is no dynamic linker that could load the library. Link it "
                         "dynamically (at least with libc).");
        return FINDING_BAD;
    }
    if (program_is_of_musl(&program)) {
        words_add(words, "it uses musl (%s), and this library glibc. Use a build for glibc.",
                  program.interpreter);
        return FINDING_BAD;
    }
    words_add(words, "dynamic, by %s", program.interpreter);
    return FINDING_GOOD;
}

/* The dynamic linker lists what it would load and ends, when it is asked to; the program does not begin. */
enum finding check_reach(struct words *words)
{
    char library[PATH_MAX], name[PATH_MAX], text[65536];
    if (!program.is_elf || !program.is_dynamic || has_rights || program.machine != MACHINE ||
        program_is_of_musl(&program) || find_library(library, sizeof(library)) != 0 ||
        preload_name(library, name) != 0)
        return FINDING_NONE;
    char *const linker[] = {program.interpreter, (char *)"--list", program.path, NULL};
    int status = doctor_capture(linker, "LD_PRELOAD", name, text, sizeof(text));
    preload_name_forget();
    if (strstr(text, name)) {
        words_add(words, "LD_PRELOAD reaches it");
        if (!program.script[0] || !strstr(base_name(program.path), "sh"))
            return FINDING_GOOD;
        words_add(words, ", and what it starts, unless the script clears the environment");
        return FINDING_ODD;
    }
    text[strcspn(text, "\n")] = 0;
    words_add(words, "the dynamic linker does not load the library into it: %s",
              status == -1 ? "it could not be asked" : text);
    return status == -1 ? FINDING_ODD : FINDING_BAD;
}

static bool is_known_minor(int minor)
{
#define AS_CASE(known, ...)                                                                                  \
    case known:                                                                                              \
        return true;
    switch (minor) {
        PYTHON_LAYOUTS(AS_CASE)
    default:
        return false;
    }
#undef AS_CASE
}

enum finding check_python(struct words *words)
{
    static char question[] =
        "import platform, sys; print(platform.python_implementation(), *sys.version_info[:3], end='')";
    char *const asking[] = {program.path, (char *)"-I", (char *)"-c", question, NULL};
    char text[512], name[32];
    int major, minor, micro;
    if (!program.is_elf || strncmp(base_name(program.path), "python", 6) != 0)
        return FINDING_NONE;
    if (doctor_capture(asking, NULL, NULL, text, sizeof(text)) != 0 ||
        sscanf(text, "%31s %d %d %d", name, &major, &minor, &micro) != 4) {
        words_add(words, "%s does not tell its version", program.path);
        return FINDING_ODD;
    }
    words_add(words, "%s %d.%d.%d", name, major, minor, micro);
    if (strcmp(name, "CPython") == 0 && major == 3 && is_known_minor(minor)) {
        words_add(words, ": its stacks can be read");
        return FINDING_GOOD;
    }
    words_add(words, ": its Python stacks cannot be read, only native ones");
    return FINDING_ODD;
}
