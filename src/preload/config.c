/* Reads GPUMEMTRACE_* (config.h), by the rows of variables.h. Every parser says yes or no and leaves the
 * default on no. */
#include "preload/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/variables.h"

#define MAX_TRACE_DEFAULT ((uint64_t)1 << 30)
#define MAX_TRACE_MIN     ((uint64_t)2 << 20)
/* Bytes of a value that a complaint shows: so many that a complaint about each variable fits. */
#define COMPLAINT_VALUE_MAX 48
#define RANK_DIGITS_MAX     9 /* an int holds them */

static void __attribute__((format(printf, 2, 3))) complain(struct config *config, const char *format, ...)
{
    size_t used = strlen(config->complaints);
    va_list values;
    va_start(values, format);
    int wrote = vsnprintf(config->complaints + used, sizeof config->complaints - used, format, values);
    va_end(values);
    if (wrote < 0 || (size_t)wrote >= sizeof config->complaints - used)
        config->complaints[used] = '\0'; /* a line that does not fit is left out whole */
}

bool config_parse_size(const char *text, uint64_t *bytes)
{
    static const struct {
        char letter;
        unsigned shift;
    } units[] = {{'\0', 0}, {'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}};
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
            return false;
    }
    if (at == text)
        return false;
    char letter = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    const char *rest = letter == '\0' ? at : at + 1;
    if (letter != '\0' && (strcmp(rest, "iB") == 0 || strcmp(rest, "B") == 0))
        rest = "";
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].letter != letter || *rest != '\0' || value > UINT64_MAX >> units[i].shift)
            continue;
        *bytes = value << units[i].shift;
        return true;
    }
    return false;
}

/* Set, not empty and not "0". */
static bool read_flag(const char *text)
{
    return *text != '\0' && strcmp(text, "0") != 0;
}

static bool set_disabled(struct config *config, const char *text)
{
    config->disabled = read_flag(text);
    return true;
}

static bool set_quiet(struct config *config, const char *text)
{
    config->quiet = read_flag(text);
    return true;
}

static bool set_nvml(struct config *config, const char *text)
{
    config->nvml = read_flag(text);
    return true;
}

static bool set_report(struct config *config, const char *text)
{
    bool is_text = false, is_json = false, is_none = strcmp(text, "none") == 0;
    while (!is_none) {
        size_t length = strcspn(text, ",");
        if (length == 4 && strncmp(text, "text", 4) == 0)
            is_text = true;
        else if (length == 4 && strncmp(text, "json", 4) == 0)
            is_json = true;
        else
            return false;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    config->report_text = is_text;
    config->report_json = is_json;
    return true;
}

static bool set_stacks(struct config *config, const char *text)
{
    static const struct {
        const char *name;
        enum capture_mode mode;
    } modes[] = {{"mixed", CAPTURE_MIXED},
                 {"python", CAPTURE_PYTHON},
                 {"native", CAPTURE_NATIVE},
                 {"none", CAPTURE_NONE}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(text, modes[i].name) != 0)
            continue;
        config->stacks = modes[i].mode;
        return true;
    }
    return false;
}

static bool set_depth(struct config *config, const char *text)
{
    uint64_t depth;
    if (!config_parse_size(text, &depth) || depth < 1 || depth > CAPTURE_DEPTH_MAX)
        return false;
    config->depth = (uint32_t)depth;
    return true;
}

static bool set_max_trace(struct config *config, const char *text)
{
    uint64_t bytes;
    if (!config_parse_size(text, &bytes) || bytes < MAX_TRACE_MIN)
        return false;
    config->max_trace_bytes = bytes;
    return true;
}

static bool set_session(struct config *config, const char *text)
{
    if (strlen(text) >= sizeof config->session)
        return false;
    strcpy(config->session, text);
    return true;
}

/* The folder that a relative path starts from, to be followed by a slash: "" for "/", as for an absolute
 * path. */
static bool folder_of(const char *path, char folder[CONFIG_PATH_MAX])
{
    folder[0] = '\0';
    bool is_known = *path == '/' || getcwd(folder, CONFIG_PATH_MAX) != NULL;
    if (!is_known || strcmp(folder, "/") == 0)
        folder[0] = '\0';
    return is_known;
}

/* Read at exit, when the program may have gone to another folder. */
static bool set_suppressions(struct config *config, const char *text)
{
    char folder[CONFIG_PATH_MAX];
    if (*text == '\0')
        return true;
    if (!folder_of(text, folder))
        return false;
    int wrote = snprintf(config->suppressions, sizeof config->suppressions, "%s%s%s", folder,
                         *text == '/' ? "" : "/", text);
    if (wrote >= 0 && (size_t)wrote < sizeof config->suppressions)
        return true;
    config->suppressions[0] = '\0';
    return false;
}

static bool set_output(struct config *config, const char *text)
{
    char folder[CONFIG_PATH_MAX];
    if (*text == '\0' || text[strlen(text) - 1] == '/')
        return false;
    for (const char *at = strchr(text, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] == '\0' || strchr("phre%", at[1]) == NULL)
            return false;
    }
    /* A folder that is gone, or has no name that fits: opening the file will tell. */
    bool is_gone = !folder_of(text, folder);
    /* The folder is no pattern: its own % signs are doubled. */
    size_t used = 0;
    for (const char *at = folder; *at != '\0' && used + 2 < sizeof config->output; at++) {
        if (*at == '%')
            config->output[used++] = '%';
        config->output[used++] = *at;
    }
    int wrote = snprintf(config->output + used, sizeof config->output - used, "%s%s",
                         *text == '/' || is_gone ? "" : "/", text);
    if (wrote < 0 || (size_t)wrote >= sizeof config->output - used) {
        config->output[0] = '\0';
        return false;
    }
    return true;
}

static const struct {
    const char *name;
    bool (*set)(struct config *, const char *);
    const char *wanted, *otherwise;
} variables[] = {
#define AS_ROW(name, field, wanted, otherwise, meaning) {name, set_##field, wanted, otherwise},
    CONFIG_VARIABLES(AS_ROW)
#undef AS_ROW
};

static void read_rank(struct config *config)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = secure_getenv(names[i]);
        if (text == NULL || *text == '\0' || strlen(text) > RANK_DIGITS_MAX ||
            text[strspn(text, "0123456789")] != '\0')
            continue;
        strcpy(config->rank, text);
        return;
    }
}

void config_read(struct config *config)
{
    *config = (struct config){.nvml = true,
                              .report_text = true,
                              .report_json = true,
                              .stacks = CAPTURE_MIXED,
                              .depth = CAPTURE_DEPTH_DEFAULT,
                              .max_trace_bytes = MAX_TRACE_DEFAULT};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = secure_getenv(variables[i].name);
        if (text == NULL || variables[i].set(config, text))
            continue;
        complain(config, "gpumemtrace: %s=%.*s%s is not %s; using %s\n", variables[i].name,
                 COMPLAINT_VALUE_MAX, text, strlen(text) > COMPLAINT_VALUE_MAX ? "..." : "",
                 variables[i].wanted, variables[i].otherwise);
    }
    if (config->output[0] == '\0')
        set_output(config, OUTPUT_DEFAULT);
    read_rank(config);
}

bool config_expand(const struct config *config, const char *host, const char *exe, char *stem, size_t bytes)
{
    const char *slash = strrchr(exe, '/');
    char pid[16];
    size_t used = 0;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    for (const char *at = config->output; *at != '\0'; at++) {
        char one[2] = {*at, '\0'};
        const char *text = one;
        if (*at == '%') {
            at++;
            text = *at == 'p'   ? pid
                   : *at == 'h' ? host
                   : *at == 'e' ? (slash == NULL ? exe : slash + 1)
                   : *at == 'r' ? (config->rank[0] == '\0' ? "0" : config->rank)
                                : "%";
        }
        size_t length = strlen(text);
        if (used + length + 1 > bytes)
            return false;
        memcpy(stem + used, text, length);
        used += length;
    }
    stem[used] = '\0';
    return used > 0;
}
