/* The training run of report_samples.h. */
#include "report_samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "unit.h"

#define STEPS 60

/* What a symbol source with debug information would say. */
static size_t name_extension(void *source, const struct module *module, uint64_t offset,
                             struct native_name *names, size_t max)
{
    (void)source;
    if (!strstr(module->path, "libext") || max < 2)
        return 0;
    if (offset == 0x1200) {
        names[0] = (struct native_name){"Arena<float>::grow(unsigned long)", "/home/me/ext/arena.h", 41};
        names[1] = (struct native_name){"alloc_workspace<float, std::allocator<float> >(unsigned long)",
                                        "/home/me/ext/ext.cpp", 88};
        return 2;
    }
    names[0] = (struct native_name){"py_workspace", "/home/me/ext/ext.cpp", 120};
    return 1;
}

static const struct symbol_source extension_symbols = {.resolve = name_extension};

/* The script, so that lines of it can be shown: line n reads "n". */
static void write_script(struct training *training)
{
    snprintf(training->script, sizeof training->script, "%s", scratch_path("train.py"));
    FILE *file = fopen(training->script, "w");
    assert_non_null(file);
    for (int line = 1; line <= 60; line++) {
        if (line == 28)
            fprintf(file, "        return cu.alloc(3 * cu.MiB)\n");
        else
            fprintf(file, "# line %d\n", line);
    }
    fclose(file);
    /* Older than the run, so that its lines are those that ran. */
    struct timespec old[2] = {{.tv_sec = 1600000000}, {.tv_sec = 1600000000}};
    assert_int_equal(utimensat(AT_FDCWD, training->script, old, 0), 0);
}

static void add_sites(struct training *training)
{
    struct books *books = &training->books;
    const char *script = training->script;
    uint32_t ctypes =
        books_module(books, "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so");
    uint32_t ffi = books_module(books, "/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2");
    uint32_t extension = books_module(books, "/home/me/ext/libext.so");
    uint32_t runtime = books_module(books, "/usr/local/cuda/lib64/libcudart.so.12");
    uint32_t through[] = {
        books_native(books, ffi, 0x7052),
        books_native(books, ctypes, 0x9210),
        books_native(books, ctypes, 0x8800),
        books_python(books, "call", "/home/me/cu.py", 18),
        books_python(books, "alloc", "/home/me/cu.py", 33),
    };
    uint32_t module = books_python(books, "<module>", script, 58);
    uint32_t frames[10];
    memcpy(frames, through, sizeof through);

    frames[5] = books_python(books, "Server.load", script, 24);
    frames[6] = module;
    training->weights = books_plain(books, frames, 7);
    frames[5] = books_python(books, "Server.register_workspace", script, 28);
    frames[6] = books_python(books, "Server.step", script, 33);
    frames[7] = module;
    training->kept = books_plain(books, frames, 8);
    frames[5] = books_python(books, "forward", script, 41);
    training->activations = books_plain(books, frames, 8);
    frames[5] = books_python(books, "next_batch", script, 52);
    training->failing = books_plain(books, frames, 8);

    uint32_t pinned[] = {through[0],
                         through[1],
                         through[2],
                         through[3],
                         books_python(books, "pinned", "/home/me/cu.py", 60),
                         books_python(books, "stage", script, 12),
                         module};
    training->staging = books_site(books, "cuMemHostAlloc", FAMILY_PINNED, SPACE_PINNED, -1, pinned, 7);
    uint32_t native[] = {books_native(books, runtime, 0x4411),
                         books_native(books, extension, 0x1200),
                         books_native(books, extension, 0x2000),
                         books_python(books, "Function.apply",
                                      "/usr/lib/python3/dist-packages/torch/autograd/function.py", 574),
                         books_python(books, "attention", script, 47),
                         module};
    training->workspace = books_site(books, "cudaMalloc", FAMILY_PLAIN, SPACE_DEVICE, 0, native, 6);
}

static void run(struct training *training)
{
    struct books *books = &training->books;
    uint64_t base = UINT64_C(0x7f0000000000), kept = base + 4 * GIB, other = base + 8 * GIB;
    books_alloc(books, training->staging, base + 64 * GIB, 64 * MIB, 90 * MS);
    for (uint64_t i = 0; i < 24; i++)
        books_alloc(books, training->weights, base + i * 64 * MIB, 48 * MIB, 100 * MS + i * MS);
    for (uint64_t i = 0; i < 5; i++)
        books_alloc(books, training->workspace, other + i * 4 * MIB, 300 * KIB + i * KIB, 200 * MS);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint64_t now = 500 * MS + step * 980 * MS;
        books_alloc(books, training->activations, other + GIB, 500 * MIB, now);
        books_alloc(books, training->kept, kept + step * 4 * MIB, 3 * MIB, now + 10 * MS);
        books_free(books, training->activations, other + GIB, now + 900 * MS);
    }
    books_event(books, (struct event){.type = EVENT_OOM,
                                      .site = training->failing,
                                      .time_ns = 59400 * MS,
                                      .size = 7 * GIB,
                                      .error = 2,
                                      .free_bytes = UINT64_C(6350) * MIB,
                                      .total_bytes = 8 * GIB});
    books_event(books, (struct event){.type = EVENT_MEMORY,
                                      .device = 0,
                                      .time_ns = 59900 * MS,
                                      .free_bytes = UINT64_C(6350) * MIB,
                                      .total_bytes = 8 * GIB});
}

void training_open(struct training *training)
{
    books_open(&training->books);
    training->books.process.duration_ns = 60 * SEC;
    training->books.input.symbols = &extension_symbols;
    training->books.input.report_path = "gpumemtrace.4711.txt";
    write_script(training);
    add_sites(training);
    run(training);
}

void training_close(struct training *training)
{
    unlink(training->script);
    books_close(&training->books);
}
