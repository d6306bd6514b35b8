/*
 * What each fuzz target is: one function that takes any bytes (libFuzzer's interface), drives one reader of
 * ours with them, and stops the process where an answer is wrong. No target keeps anything between two calls
 * but what makes it faster.
 */
#ifndef FUZZ_TARGET_H
#define FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with these bytes, and the path that opens it, which is good until fuzz_file_close(). */
struct fuzz_file {
    int fd;
    char path[32];
};
struct fuzz_file fuzz_file(const void *data, size_t size);
void fuzz_file_close(struct fuzz_file *file);

/* A recording: the bytes are a whole file when they begin like one. Otherwise they are its records, and get a
 * good header, so that the fuzzer need not find that out. */
struct fuzz_file fuzz_recording(const uint8_t *data, size_t size);

/* What was written to a file of ours, with a NUL behind it; free() it. */
char *fuzz_contents(int fd, size_t *size);

/* Nothing in `size` bytes of text, which a NUL follows, may control a terminal. */
void fuzz_require_harmless(const char *text, size_t size);

/* Stops the process unless it holds, also where assert() is compiled out. */
#define require(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fuzz_fail(#condition, __FILE__, __LINE__);                                                       \
    } while (0)
void fuzz_fail(const char *condition, const char *file, int line) __attribute__((noreturn));

#endif
