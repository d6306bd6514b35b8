/* Files and child processes of tests (scratch.h). */
#include "scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

static char folder[256];
static pid_t owner;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void remove_folder(void)
{
    if (owner == getpid())
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_folder(void)
{
    if (folder[0] == '\0') {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/gpumemtrace-unit-XXXXXX", parent == NULL ? "/tmp" : parent);
        assert_non_null(mkdtemp(folder));
        owner = getpid();
        atexit(remove_folder);
    }
    return folder;
}

const char *scratch_path(const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % COUNT_OF(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder(), name);
    return path;
}

void scratch_write(const char *path, const void *bytes, size_t count)
{
    /* Cut to size afterwards: ext4 takes what was emptied first for a file being replaced, and flushes it. */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    assert_int_equal(ftruncate(fd, (off_t)count), 0);
    close(fd);
}

size_t scratch_read(const char *path, void *bytes, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t count = read(fd, bytes, max);
    assert_true(count >= 0 && (size_t)count < max);
    close(fd);
    return (size_t)count;
}

int in_child(void (*child)(void *), void *arg)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* A failed assertion jumps back into cmocka, which would go on with the other tests. */
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        child(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}
