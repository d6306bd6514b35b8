/* The checks of doctor that look at a program; see doctor.h. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "capture/python_layout.h"
#include "doctor.h"
#include "install_paths.h"
#include "report/frames.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

#define SCRIPT_DEPTH 4 /* scripts whose interpreters are scripts */

/* What would be started: a file of machine code, and the scripts on the way to it. */
static struct {
    const char *name;      /* as it was given */
    char path[PATH_MAX];   /* "": not found */
    char script[PATH_MAX]; /* "": it is no script */
    bool is_elf, is_dynamic, has_rights;
    Elf64_Half machine;
    char interpreter[PATH_MAX]; /* of the machine code: the dynamic linker */
} program;

/* In PATH, as a shell does it. */
static bool find_in_path(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(path, PATH_MAX, "%s", name);
        return access(path, F_OK) == 0;
    }
    for (const char *at = folders ? folders : "/usr/bin:/bin"; *at;) {
        int length = (int)strcspn(at, ":");
        snprintf(path, PATH_MAX, "%.*s/%s", length ? length : 1, length ? at : ".", name);
        struct stat status;
        if (access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode))
            return true;
        at += length + (at[length] ? 1 : 0);
    }
    return false;
}

/* "#!/usr/bin/env -S python3 -u" gives python3. False when the file is no script. */
static bool read_script(const char *path, char interpreter[PATH_MAX])
{
    char line[512] = "", *save = NULL;
    FILE *file = fopen(path, "re");
    bool is_script = file && fgets(line, sizeof(line), file) && strncmp(line, "#!", 2) == 0;
    if (file)
        fclose(file);
    char *word = is_script ? strtok_r(line + 2, " \t\r\n", &save) : NULL;
    if (word && strcmp(base_name(word), "env") == 0) {
        do
            word = strtok_r(NULL, " \t\r\n", &save);
        while (word && (word[0] == '-' || strchr(word, '=')));
    }
    snprintf(interpreter, PATH_MAX, "%s", word ? word : "");
    return is_script;
}

static void read_elf(const char *path)
{
    Elf64_Ehdr header;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    program.is_elf = fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                     memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    program.machine = program.is_elf && header.e_ident[EI_CLASS] == ELFCLASS64 ? header.e_machine : EM_NONE;
    for (unsigned i = 0; program.machine != EM_NONE && i < header.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize);
        if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part) || part.p_type != PT_INTERP)
            continue;
        size_t bytes = part.p_filesz < PATH_MAX - 1 ? part.p_filesz : PATH_MAX - 1;
        ssize_t got = pread(fd, program.interpreter, bytes, (off_t)part.p_offset);
        program.interpreter[got > 0 ? got : 0] = 0;
        program.is_dynamic = got > 0;
    }
    if (fd >= 0)
        close(fd);
}

void program_find(char *const argv[])
{
    char interpreter[PATH_MAX];
    program.name = argv[0];
    if (!find_in_path(argv[0], program.path)) {
        program.path[0] = 0;
        return;
    }
    for (int depth = 0; depth < SCRIPT_DEPTH && read_script(program.path, interpreter); depth++) {
        if (depth == 0)
            strcpy(program.script, program.path);
        if (!find_in_path(interpreter, program.path)) {
            program.path[0] = 0;
            return;
        }
    }
    read_elf(program.path);
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
    program.has_rights = has_bits || has_capability;
    if (!program.has_rights)
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
    if (strstr(program.interpreter, "ld-musl")) {
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
    char library[PATH_MAX], text[65536];
    if (!program.is_elf || !program.is_dynamic || program.has_rights || program.machine != MACHINE ||
        strstr(program.interpreter, "ld-musl") || find_library(library, sizeof(library)) != 0)
        return FINDING_NONE;
    char *const linker[] = {program.interpreter, (char *)"--list", program.path, NULL};
    int status = doctor_capture(linker, "LD_PRELOAD", library, text, sizeof(text));
    if (strstr(text, library)) {
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
