/* Opening what a recording names: regular files only, without waiting, and not outside the given root. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "scratch.h"

/* The first byte of what is opened; 0: nothing is, with errno. */
static char first_byte(const char *root, const char *path)
{
    char byte = 0;
    int fd = regular_file_open(root, path);
    if (fd < 0)
        return 0;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, 0), 1);
    close(fd);
    return byte;
}

static void write_byte(const char *name, char byte)
{
    scratch_write(scratch_path(name), &byte, 1);
}

static void make_link(const char *to, const char *name)
{
    assert_int_equal(symlink(to, scratch_path(name)), 0);
}

static void test_regular_files_are_opened_through_links_too(void **state)
{
    (void)state;
    write_byte("plain", 'p');
    make_link("plain", "link");
    assert_int_equal(first_byte(NULL, scratch_path("plain")), 'p');
    assert_int_equal(first_byte(NULL, scratch_path("link")), 'p');
    assert_int_equal(first_byte(NULL, scratch_path("missing")), 0);
    assert_int_equal(errno, ENOENT);
}

static void test_devices_sockets_folders_and_relative_paths_are_refused(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", scratch_path("socket"));
    assert_int_equal(bind(made, (struct sockaddr *)&address, sizeof address), 0);
    make_link("/dev/zero", "device");
    const char *paths[] = {scratch_path("fifo"),
                           scratch_path("socket"),
                           scratch_path("device"),
                           scratch_folder(),
                           "/dev/zero",
                           "/dev/null",
                           "relative",
                           ""};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_int_equal(regular_file_open(NULL, paths[i]), -1);
        assert_int_equal(errno, EINVAL);
    }
    close(made);
}

static void test_root_is_the_end_of_every_path(void **state)
{
    (void)state;
    const char *root = scratch_path("root");
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(mkdir(scratch_path("root/lib"), 0700), 0);
    write_byte("root/lib/inside", 'i');
    write_byte("outside", 'o');
    make_link("/lib/inside", "root/absolute");
    make_link("../../../../lib/inside", "root/lib/upward");
    make_link(scratch_path("outside"), "root/leads_out");
    assert_int_equal(first_byte(root, "/lib/inside"), 'i');
    assert_int_equal(first_byte(root, "/absolute"), 'i');
    assert_int_equal(first_byte(root, "/lib/upward"), 'i');
    assert_int_equal(first_byte(root, "/lib/../lib/inside"), 'i');
    assert_int_equal(first_byte(root, "/leads_out"), 0);
    assert_int_equal(first_byte(root, "/../outside"), 0);
    assert_int_equal(first_byte(root, "/lib"), 0);
    assert_int_equal(first_byte(scratch_path("missing"), "/lib/inside"), 0);
    assert_int_equal(first_byte(scratch_path("outside"), "/lib/inside"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular_files_are_opened_through_links_too),
        cmocka_unit_test(test_devices_sockets_folders_and_relative_paths_are_refused),
        cmocka_unit_test(test_root_is_the_end_of_every_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
