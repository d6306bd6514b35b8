/* gpumemtrace merge: the processes of a job, added up. */
#include "merge.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "destination.h"
#include "gpumemtrace/trace.h"
#include "progress.h"
#include "symbol_options.h"
#include "render_ahead.h"
#include "report_file.h"

#define TOP_DEFAULT 20

enum { OPTION_JSON = OPTION_LONG_ONLY };

static const struct option_row options[] = {
    {OPTION_JSON, "json", NULL,
     "for programs, in the schema gpumemtrace.merge/1: every rank and every place"},
    {'n', "top", "N", "list the N biggest places (20; 0: all)"},
    SYMBOL_OPTION_ROWS,
};

struct files {
    size_t count, room;
    char **paths;
};

static void out_of_memory(void)
{
    complain(NULL, "not enough memory");
    exit(STATUS_UNUSABLE);
}

/* Takes the path. Of a recording with a report beside it the report is taken: it is the shorter way. */
static void add_file(struct files *files, char *path)
{
    char *report = NULL;
    if (path && has_suffix(path, TRACE_SUFFIX))
        report = report_file_beside(path, REPORT_SUFFIX);
    if (report && access(report, R_OK) == 0) {
        free(path);
        path = report;
    } else {
        free(report);
    }
    if (files->count == files->room) {
        size_t room = files->room * 2 + 64;
        char **longer = realloc(files->paths, room * sizeof(*longer));
        if (!longer)
            out_of_memory();
        files->paths = longer;
        files->room = room;
    }
    if (!path)
        out_of_memory();
    files->paths[files->count++] = path;
}

/* The recordings and reports in it. */
static void add_folder(struct files *files, const char *folder)
{
    DIR *open = opendir(folder);
    if (!open) {
        complain(folder, "%s", strerror(errno));
        exit(STATUS_UNUSABLE);
    }
    for (const struct dirent *entry; (entry = readdir(open));) {
        char *path;
        if (!has_suffix(entry->d_name, TRACE_SUFFIX) && !has_suffix(entry->d_name, REPORT_SUFFIX))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            out_of_memory();
        add_file(files, path);
    }
    closedir(open);
}

static int by_path(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* In the order of their names, so that equal folders give equal output; each once. */
static void collect(struct files *files, int count, char **words)
{
    struct stat status;
    for (int i = 0; i < count; i++) {
        if (stat(words[i], &status) == 0 && S_ISDIR(status.st_mode))
            add_folder(files, words[i]);
        else
            add_file(files, strdup(words[i]));
    }
    if (files->count > 0)
        qsort(files->paths, files->count, sizeof(*files->paths), by_path);
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        if (kept > 0 && strcmp(files->paths[kept - 1], files->paths[i]) == 0)
            free(files->paths[i]);
        else
            files->paths[kept++] = files->paths[i];
    }
    files->count = kept;
}

/* Those of the files that are recordings by their names; *count of them. NULL when there is no memory. */
static const char **recordings(const struct files *files, size_t *count)
{
    const char **found = calloc(files->count + 1, sizeof(*found));
    *count = 0;
    for (size_t i = 0; found && i < files->count; i++)
        if (has_suffix(files->paths[i], TRACE_SUFFIX))
            found[(*count)++] = files->paths[i];
    return found;
}

static int load(struct saved_report *report, struct render_ahead *ahead, const char *path,
                const struct symbol_places *places, char *error, size_t error_bytes)
{
    return ahead && has_suffix(path, TRACE_SUFFIX)
               ? render_ahead_take(ahead, report, error, error_bytes)
               : saved_report_load(report, path, places, error, error_bytes);
}

static void read_all(struct merge *merge, const struct files *files, const struct symbol_places *places)
{
    struct progress progress;
    char error[512];
    size_t recording_count;
    const char **paths = recordings(files, &recording_count);
    struct render_ahead *ahead = paths ? render_ahead_start(paths, recording_count, places) : NULL;
    progress_begin(&progress, "merging", files->count, "files");
    for (size_t i = 0; i < files->count; i++) {
        struct saved_report report;
        progress_tell(&progress, i);
        if (load(&report, ahead, files->paths[i], places, error, sizeof(error)) != 0) {
            progress_end(&progress);
            complain_unreadable(files->paths[i], error);
            merge->unusable++;
            continue;
        }
        job_add(&merge->job, &report);
        saved_report_release(&report);
    }
    progress_end(&progress);
    render_ahead_stop(ahead);
    free(paths);
}

static int write_merge(const struct merge *merge, bool json)
{
    struct output out;
    output_init(&out, STDOUT_FILENO);
    if (json)
        merge_write_json(merge, &out);
    else
        merge_write_text(merge, &out);
    int status = finish_printing(&out);
    return merge->unusable > 0 ? STATUS_UNUSABLE : status;
}

static int merge_main(const struct command *command, int argc, char **argv)
{
    struct merge merge = {.top = TOP_DEFAULT};
    struct symbol_options symbols = {0};
    struct files files = {0};
    bool json = false;
    const char *value;
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        json |= id == OPTION_JSON;
        if (id == 'n')
            merge.top = option_number(command, "--top", value);
        symbol_options_take(&symbols, command, id, value);
    }
    if (optind == argc)
        usage_error(command, "which recordings?");
    collect(&files, argc - optind, argv + optind);
    read_all(&merge, &files, &symbols.places);
    int status = STATUS_UNUSABLE;
    if (merge.job.process_count == 0 && merge.unusable == 0)
        complain(argv[optind], "there is no recording in it");
    else if (merge.job.process_count > 0 && job_finish(&merge.job) != 0)
        complain(NULL, "not enough memory");
    else if (merge.job.process_count > 0)
        status = write_merge(&merge, json);
    job_release(&merge.job);
    for (size_t i = 0; i < files.count; i++)
        free(files.paths[i]);
    free(files.paths);
    symbol_options_release(&symbols);
    return status;
}

const struct command merge_command = {
    .name = "merge",
    .arguments = "[OPTION…] FILE|FOLDER…",
    .summary = "Adds up the ranks and children of a job, and names the rank that is unlike the others",
    .details =
        "Each is a recording (.gmt), a report (.json) or a folder of them. Processes of one rank (as "
        "torchrun,\n"
        "mpirun, Slurm and PMI number them) are added up. Devices are not told apart. Up to four recordings\n"
        "are read at a time. A file that cannot be read is named and left out; the status is 2 then.",
    .example =
        "  gpumemtrace run -o out/%h.%p -- torchrun --nproc-per-node 8 train.py && gpumemtrace merge out\n"
        "  srun gpumemtrace run -q -o out/%r.%p -- python3 train.py; gpumemtrace merge --json out "
        ">job.json\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = merge_main,
};
