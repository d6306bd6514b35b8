/* gpumemtrace export: a recording in another tool's format. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "destination.h"
#include "export/export.h"
#include "rendering.h"
#include "symbol_options.h"

enum { OPTION_LAYER = OPTION_LONG_ONLY, OPTION_VALUE };

static const struct option_row options[] = {
    {'f', "format", "FORMAT", "one of the formats above"},
    {'o', "output", "FILE", "write to FILE instead of standard output"},
    {OPTION_VALUE, "value", "VALUE", "what weighs a stack: peak (the default), live, allocated or allocs"},
    {OPTION_LAYER, "layer", "LAYER",
     "driver (the default), or framework: what PyTorch's cache handed out of it"},
    SYMBOL_OPTION_ROWS,
};

struct request {
    const struct export_format *format;
    const char *output;
    enum layer layer;
    enum export_value value;
    struct symbol_options symbols;
};

static const struct export_format *find_format(const struct command *command, const char *name)
{
    const char *names[32];
    for (size_t i = 0; i < export_format_count; i++) {
        names[i] = export_formats[i].name;
        if (strcmp(name, names[i]) == 0)
            return &export_formats[i];
    }
    usage_error(command, "there is no format '%s'%s", name,
                did_you_mean("", name, names, export_format_count));
}

static enum layer find_layer(const struct command *command, const char *name)
{
    for (int i = 0; i < LAYER_COUNT; i++)
        if (strcmp(name, layer_names[i]) == 0)
            return (enum layer)i;
    usage_error(command, "'%s' is no layer: driver or framework", name);
}

static enum export_value find_value(const struct command *command, const char *name)
{
    for (int i = 0; i < EXPORT_VALUE_COUNT; i++)
        if (strcmp(name, export_value_names[i]) == 0)
            return (enum export_value)i;
    usage_error(command, "'%s' is no value: peak, live, allocated or allocs", name);
}

static void read_options(const struct command *command, int argc, char **argv, struct request *request)
{
    const char *value;
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        if (id == 'f')
            request->format = find_format(command, value);
        if (id == 'o')
            request->output = strcmp(value, "-") == 0 ? NULL : value;
        if (id == OPTION_LAYER)
            request->layer = find_layer(command, value);
        if (id == OPTION_VALUE)
            request->value = find_value(command, value);
        symbol_options_take(&request->symbols, command, id, value);
    }
    if (!request->format)
        usage_error(command, "which --format?");
    if (argc - optind != 1)
        usage_error(command, optind == argc ? "which recording?" : "one recording at a time");
    if (request->format->binary && !request->output && isatty(STDOUT_FILENO))
        usage_error(command, "%s is nothing for a terminal: -o FILE, or into a pipe", request->format->name);
}

static int write_export(const struct request *request, const struct export_request *what, uint64_t limit)
{
    struct destination to;
    char error[512];
    if (!destination_open(&to, request->output))
        return STATUS_UNUSABLE;
    output_limit(&to.out, limit);
    bool whole = request->format->write(what, &to.out, error, sizeof(error)) == 0;
    int status = destination_close(&to, whole);
    if (whole || status != STATUS_GOOD)
        return status;
    complain(what->path, "%s", error);
    return STATUS_UNUSABLE;
}

static int export_main(const struct command *command, int argc, char **argv)
{
    struct request request = {.layer = LAYER_DRIVER, .value = EXPORT_PEAK};
    struct rendering rendering;
    char error[512];
    read_options(command, argc, argv, &request);
    const char *path = argv[optind];
    if (rendering_open(&rendering, path, &request.symbols.places, NULL, NULL, error, sizeof(error)) != 0) {
        complain_unreadable(path, error);
        return STATUS_UNUSABLE;
    }
    const struct export_request what = {
        .report = rendering.report, .path = path, .layer = request.layer, .value = request.value};
    int status = write_export(&request, &what, rendering_limit(&rendering));
    rendering_close(&rendering);
    symbol_options_release(&request.symbols);
    return status;
}

const struct command export_command = {
    .name = "export",
    .arguments = "--format FORMAT [OPTION…] RECORDING",
    .summary = "Writes a recording in the format of another tool",
    .details = "FORMAT is one of\n"
               "  folded       folded stacks: flamegraph.pl, inferno and their like\n"
               "  speedscope   https://www.speedscope.app\n"
               "  pprof        go tool pprof, pprof, Pyroscope\n"
               "  perfetto     Chrome's trace format with counters: https://ui.perfetto.dev\n"
               "  torch        a snapshot for https://pytorch.org/memory_viz, of any program\n"
               "  csv          the sites as a table\n"
               "  sqlite       a database of sites, frames, events and phases\n"
               "  openmetrics  for Prometheus: node_exporter's textfile collector\n"
               "A FILE appears under its name when it is whole.",
    .example =
        "  gpumemtrace export --format speedscope -o train.speedscope.json train.gmt\n"
        "  gpumemtrace export --format folded --value live train.gmt | flamegraph.pl >live.svg\n"
        "  gpumemtrace export --format pprof -o train.pb.gz train.gmt && go tool pprof -top train.pb.gz\n"
        "  gpumemtrace export --format sqlite -o train.db train.gmt && sqlite3 train.db 'SELECT title FROM "
        "sites'\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = export_main,
};
