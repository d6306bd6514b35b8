/* What would be started when a program is named; see program_file.h. */
#include "program_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/frames.h"

#define SCRIPT_DEPTH 4 /* scripts whose interpreters are scripts */

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

/* NULL when it is no regular file, too: a FIFO would be waited for, and a device started. */
static FILE *open_regular(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* "#!/usr/bin/env -S python3 -u" gives python3. False when the file is no script. */
static bool read_script(const char *path, char interpreter[PATH_MAX])
{
    char line[512] = "", *save = NULL;
    FILE *file = open_regular(path);
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

static void read_elf(const char *path, struct program_file *program)
{
    Elf64_Ehdr header;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    program->is_elf = fd >= 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                      memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    program->machine = program->is_elf && header.e_ident[EI_CLASS] == ELFCLASS64 ? header.e_machine : EM_NONE;
    for (unsigned i = 0; program->machine != EM_NONE && i < header.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(header.e_phoff + (uint64_t)i * header.e_phentsize);
        if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part) || part.p_type != PT_INTERP)
            continue;
        size_t bytes = part.p_filesz < PATH_MAX - 1 ? part.p_filesz : PATH_MAX - 1;
        ssize_t got = pread(fd, program->interpreter, bytes, (off_t)part.p_offset);
        program->interpreter[got > 0 ? got : 0] = 0;
        program->is_dynamic = got > 0;
    }
    if (fd >= 0)
        close(fd);
}

void program_file_find(const char *name, struct program_file *program)
{
    char interpreter[PATH_MAX];
    *program = (struct program_file){.name = name};
    if (!find_in_path(name, program->path)) {
        program->path[0] = 0;
        return;
    }
    for (int depth = 0; depth < SCRIPT_DEPTH && read_script(program->path, interpreter); depth++) {
        if (depth == 0)
            strcpy(program->script, program->path);
        if (!find_in_path(interpreter, program->path)) {
            program->path[0] = 0;
            return;
        }
    }
    read_elf(program->path, program);
}

bool program_is_of_musl(const struct program_file *program)
{
    return program->is_dynamic && strstr(program->interpreter, "ld-musl");
}
