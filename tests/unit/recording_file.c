/* Recordings made by hand (recording_file.h). Numbers are encoded here anew, from LEB128's definition. */
#include "recording_file.h"

#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "trace/liveness.h"
#include "unit.h"

struct process_info own_process(void)
{
    static char boot_id[40];
    read_boot_id(boot_id, sizeof boot_id);
    return (struct process_info){.pid = (uint32_t)getpid(),
                                 .ppid = (uint32_t)getppid(),
                                 .host = "host",
                                 .exe = "/usr/bin/python3",
                                 .rank = -1,
                                 .start_realtime_ns = UINT64_C(1700000000000000000),
                                 .start_monotonic_ns = UINT64_C(123456789),
                                 .process_start_ticks = process_start_ticks((uint32_t)getpid()),
                                 .boot_id = boot_id,
                                 .session = "session"};
}

void raw_begin(struct raw_file *file)
{
    memset(file->bytes, 0, TRACE_HEADER_SIZE);
    memcpy(file->header.magic, "GPUMTRC", 8);
    file->header.version = 1;
    file->header.header_size = 4096;
    file->header.state = TRACE_EXITED;
    file->header.pid = 4711;
    file->header.ppid = 4710;
    file->header.start_realtime_ns = UINT64_C(1700000000000000000);
    file->header.start_monotonic_ns = 5;
    file->header.end_ns = 9000;
    memcpy(file->header.boot_id, "no boot of this machine", 24);
    memcpy(file->header.session, "s1", 3);
    file->used = 4096;
}

void raw_byte(struct raw_file *file, uint8_t byte)
{
    assert_true(file->used < sizeof file->bytes);
    file->bytes[file->used++] = byte;
}

void raw_number(struct raw_file *file, uint64_t number)
{
    for (; number > 127; number /= 128)
        raw_byte(file, (uint8_t)(128 + number % 128));
    raw_byte(file, (uint8_t)number);
}

/* Zigzag: 0, -1, 1, -2, 2 … are 0, 1, 2, 3, 4 … */
void raw_signed(struct raw_file *file, int64_t number)
{
    raw_number(file, number >= 0 ? (uint64_t)number * 2 : (uint64_t)(-(number + 1)) * 2 + 1);
}

void raw_string(struct raw_file *file, const char *text)
{
    raw_byte(file, TRACE_STRING);
    raw_number(file, strlen(text));
    for (; *text != '\0'; text++)
        raw_byte(file, (uint8_t)*text);
}

void raw_write(struct raw_file *file, const char *path)
{
    file->header.committed = file->used;
    scratch_write(path, file->bytes, file->used);
}

static void raw_event(struct raw_file *file, uint8_t tag, int64_t time_step)
{
    raw_byte(file, tag);
    raw_signed(file, time_step);
}

static void raw_key(struct raw_file *file, enum key_space space, int64_t step)
{
    raw_number(file, space);
    raw_signed(file, step);
}

static void raw_definitions(struct raw_file *file)
{
    static const char *const strings[] = {"/bin/train", "host", "3",          "--fast", "/lib/a.so",
                                          "step",       "a.py", "cuMemAlloc", "a note"};
    for (size_t i = 0; i < COUNT_OF(strings); i++)
        raw_string(file, strings[i]);
    raw_byte(file, TRACE_PROCESS);
    raw_number(file, 4);
    for (uint64_t i = 0; i < 4; i++)
        raw_number(file, i);
    raw_byte(file, TRACE_MODULE); /* path, bias, start, length, size, mtime, build-id */
    raw_number(file, 4);
    raw_number(file, UINT64_C(0x7f0000000000));
    raw_number(file, UINT64_C(0x7f0000001000));
    raw_number(file, 0x5000);
    raw_number(file, 99999);
    raw_number(file, UINT64_C(1700000000123456789));
    raw_number(file, 3);
    for (uint8_t i = 1; i <= 3; i++)
        raw_byte(file, i);
    raw_byte(file, TRACE_NATIVE); /* frame 0, in the module */
    raw_number(file, 1);
    raw_number(file, 0x1234);
    raw_byte(file, TRACE_NATIVE); /* frame 1, in none */
    raw_number(file, 0);
    raw_number(file, UINT64_C(0xffffffffff600000));
    raw_byte(file, TRACE_PYTHON); /* frame 2 */
    raw_number(file, 5);
    raw_number(file, 6);
    raw_number(file, 300);
    raw_byte(file, TRACE_STACK); /* frames 1, 0, 2 */
    raw_number(file, 3);
    raw_signed(file, 1);
    raw_signed(file, -1);
    raw_signed(file, 2);
    raw_byte(file, TRACE_SITE); /* site 0: with the stack, on device 0 */
    raw_number(file, 1);
    raw_number(file, 7);
    raw_number(file, FAMILY_PLAIN);
    raw_number(file, SPACE_DEVICE);
    raw_number(file, 1);
    raw_byte(file, TRACE_SITE); /* site 1: without, on none */
    raw_number(file, 0);
    raw_number(file, 7);
    raw_number(file, FAMILY_PINNED);
    raw_number(file, SPACE_PINNED);
    raw_number(file, 0);
    raw_byte(file, TRACE_NOTE);
    raw_number(file, 8);
}

void raw_example(struct raw_file *file)
{
    raw_definitions(file);
    raw_event(file, 16, 1000); /* ALLOC: site, key, size, context */
    raw_number(file, 0);
    raw_key(file, KEY_ADDRESS, INT64_C(0x7f1234560000));
    raw_number(file, 1 << 20);
    raw_number(file, 1);
    raw_event(file, 16, 1000);
    raw_number(file, 1);
    raw_key(file, KEY_HANDLE, 77);
    raw_number(file, 4096);
    raw_number(file, 0);
    raw_event(file, 19, -500); /* RETAIN: key; it took its time before the event above */
    raw_key(file, KEY_ADDRESS, 0);
    raw_event(file, 17, 600); /* FREE: key */
    raw_key(file, KEY_ADDRESS, 0);
    raw_event(file, 17, 100);
    raw_key(file, KEY_HANDLE, 0);
    raw_event(file, 18, 100); /* UNFREE: site, key, size, context, born */
    raw_number(file, 1);
    raw_key(file, KEY_HANDLE, 0);
    raw_number(file, 4096);
    raw_number(file, 0);
    raw_number(file, 2000);
    raw_event(file, 21, 100); /* FAILED: site, size, error */
    raw_number(file, 0);
    raw_number(file, 10);
    raw_number(file, 1);
    raw_event(file, 22, 100); /* OOM: site, size, error, free, total */
    raw_number(file, 0);
    raw_number(file, UINT64_C(1) << 40);
    raw_number(file, 2);
    raw_number(file, 7);
    raw_number(file, 8);
    raw_event(file, 23, 100); /* FOREIGN_FREE: key, below the address before */
    raw_key(file, KEY_ADDRESS, -0x10000);
    raw_event(file, 24, 100); /* MEMORY: free, total, device */
    raw_number(file, 70);
    raw_number(file, 80);
    raw_number(file, 0);
    raw_event(file, 20, 100); /* TEARDOWN: context */
    raw_number(file, 1);
}

void read_good(struct recording *recording, const char *path)
{
    char error[256] = "";
    if (recording_read(recording, path, NULL, NULL, error, sizeof error) != 0)
        fail_msg("%s: %s", path, error);
}

void assert_refused(const char *path, const char *sentence)
{
    struct recording recording;
    char error[256] = "";
    assert_int_equal(recording_read(&recording, path, NULL, NULL, error, sizeof error), -1);
    if (strstr(error, sentence) == NULL)
        fail_msg("'%s' does not say '%s'", error, sentence);
    assert_null(strchr(error, '\n'));
}
