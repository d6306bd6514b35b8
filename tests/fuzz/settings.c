/*
 * The environment that the library reads. The bytes are values of its variables, each ended by a NUL, in the
 * order below. Whatever they are, the settings are within bounds, the complaints are lines, and the file's
 * stem is either refused or a text that fits.
 */
#include "preload/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "target.h"

static const char *const variables[] = {"GPUMEMTRACE_OUTPUT",
                                        "GPUMEMTRACE_MAX_TRACE",
                                        "GPUMEMTRACE_DEPTH",
                                        "GPUMEMTRACE_REPORT",
                                        "GPUMEMTRACE_STACKS",
                                        "GPUMEMTRACE_SUPPRESSIONS",
                                        "RANK",
                                        "GPUMEMTRACE_SESSION"};

/* The size that a text of digits and a unit means, by another way than config_parse_size(). */
static void require_size(const char *text, bool understood, uint64_t bytes)
{
    char shown[SIZE_TEXT_MAX];
    unsigned __int128 value = 0;
    size_t digits = strspn(text, "0123456789");
    const char *units = "KMGT", *unit = strchr(units, text[digits] & ~0x20);
    if (understood) {
        require(digits > 0);
        for (size_t i = 0; i < digits; i++) {
            value = value * 10 + (unsigned)(text[i] - '0');
            require(value <= UINT64_MAX);
        }
        if (text[digits] != '\0')
            value <<= 10 * (unit - units + 1);
        require(value == bytes);
    } else {
        require(digits == 0 || digits > 7 || text[digits] != '\0');
    }
    require(strlen(size_text(shown, bytes)) < sizeof shown);
}

static void expand(const struct config *config, size_t bytes)
{
    char *stem = malloc(bytes);
    require(stem);
    if (config_expand(config, "host", "/usr/bin/program", stem, bytes))
        require(strlen(stem) > 0 && strlen(stem) < bytes);
    free(stem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct config config;
    char *text = malloc(size + 1), *at = text;
    uint64_t bytes = 0;
    require(text);
    memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (at < text + size) {
            setenv(variables[i], at, 1);
            bool understood = config_parse_size(at, &bytes);
            require_size(at, understood, bytes);
            at += strlen(at) + 1;
        } else {
            unsetenv(variables[i]);
        }
    }
    config_read(&config);
    require(config.depth >= 1 && config.depth <= CAPTURE_DEPTH_MAX);
    require(config.max_trace_bytes >= 1 << 20);
    require(config.output[0] == '/' || config.output[0] != '\0');
    size_t complaints = strlen(config.complaints);
    require(complaints == 0 || config.complaints[complaints - 1] == '\n');
    expand(&config, 1);
    expand(&config, 64);
    expand(&config, CONFIG_PATH_MAX);
    free(text);
    return 0;
}
