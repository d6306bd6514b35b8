/*
 * What the user asked for, from the environment (read once at the start, with secure_getenv). A value that
 * cannot be understood is replaced by its default and named in `complaints`, which is printed when recording
 * begins: a process that never allocates CUDA memory stays silent.
 */
#ifndef PRELOAD_CONFIG_H
#define PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"

#define CONFIG_PATH_MAX 4096

struct config {
    bool disabled, quiet;
    bool nvml; /* may be loaded */
    bool report_text, report_json;
    enum capture_mode stacks;
    uint32_t depth;
    uint64_t max_trace_bytes;
    char session[40];
    char rank[16];                      /* digits; empty: none */
    char output[CONFIG_PATH_MAX];       /* the pattern of the files' stem, absolute; empty: it did not fit */
    char suppressions[CONFIG_PATH_MAX]; /* absolute; empty: none */
    char complaints[1024];              /* whole lines, each with its newline */
};

void config_read(struct config *config);

/* Expands the pattern of `config` for the calling process: %p pid, %h host, %r rank, %e program, %% percent.
 * False when it does not fit. */
bool config_expand(const struct config *config, const char *host, const char *exe, char *stem, size_t bytes);

/* "64K", "512M", "1G", "1073741824": binary units. False when it is not such a size or does not fit. */
bool config_parse_size(const char *text, uint64_t *bytes);

#endif
