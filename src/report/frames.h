/*
 * Frames with their names, as a report has them: whose code each is, and what it is called. Part of the model
 * (model.h).
 */
#ifndef REPORT_FRAMES_H
#define REPORT_FRAMES_H

#include "report/report.h"

/* Whose code a frame is, best first: what a reader looks for is their own. */
enum frame_rank {
    RANK_OWN,
    RANK_TYPED, /* their own, but in no file: python -c, exec() */
    RANK_LIBRARY,
    RANK_RUNTIME, /* the interpreter, the frameworks' cores, the CUDA libraries, the system */
};

/* One name for a frame. An inlined native call and the function it is in share a frame, and so an address. */
struct named_frame {
    enum frame_kind kind;
    enum frame_rank rank;
    bool inlined;
    bool ambiguous;       /* another file of the same base name is in this report */
    const char *function; /* NULL: unknown */
    const char *why;      /* it is unknown, in a few words; NULL: no reason is known either */
    const char *file;     /* NULL: unknown */
    const char *module;   /* path; NULL for Python and for code in no file */
    uint64_t offset;
    int line; /* 0: unknown */
};

struct frame_names {
    uint32_t count; /* innermost first; at least 1 for every frame of a listed site */
    uint32_t uses;  /* in listed sites' stacks */
    struct named_frame *names;
};

/* classify.c: whose code this is. `program` is the path of the process's executable, NULL when unknown. */
enum frame_rank rank_python_file(const char *file);
enum frame_rank rank_native(const char *module, const char *function, const char *file, const char *program);
bool is_python_program(const char *path);
/* Whether `file` is in the library folder of the environment that has `program` in its bin folder. */
bool is_of_environment(const char *file, const char *program);
/* What is installed together: "torch" of ".../site-packages/torch/nn/modules/linear.py". Returns its start,
 * or NULL when the file is in no package; *length is its length. */
const char *package_of(const char *file, size_t *length);
const char *base_name(const char *path);

/* short_name.c: a C++ or Rust function in at most `columns` terminal columns where that can be: first without
 * what says nothing (default allocators, the standard library's inner names), then without parameters, then
 * without template arguments, from the inside out. */
#define SHORT_NAME_MAX 512
const char *short_name(const char *function, int columns, char text[SHORT_NAME_MAX]);

/* frame_title.c: what a site is called wherever one line has to do: "train.py:42 in step". Raw text, cut to
 * `bytes`; the function in at most so many columns where that can be. Returns `title`. */
#define TITLE_MAX      320
#define TITLE_FUNCTION 60
struct report;
const char *report_site_title(const struct report *report, uint32_t site, int columns, char *title,
                              size_t bytes);
const char *frame_title(const struct named_frame *frame, int columns, char *title, size_t bytes);
/* What a frame that is not the reader's own folds under: the installed package, the standard library's file,
 * or the native module: "_ctypes" of "_ctypes.cpython-311-x86_64-linux-gnu.so", which the reader knows by the
 * name that they import. Returns `name`. */
#define FOLD_NAME_MAX 64
const char *frame_fold_name(const struct named_frame *frame, char name[FOLD_NAME_MAX]);

#endif
