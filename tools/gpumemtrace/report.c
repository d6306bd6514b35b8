/* gpumemtrace report: renders a recording as text, JSON or an HTML page. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "destination.h"
#include "rendering.h"
#include "symbol_options.h"

enum {
    OPTION_JSON = OPTION_LONG_ONLY,
    OPTION_TEXT,
    OPTION_HTML,
    OPTION_FULL,
    OPTION_NATIVE,
    OPTION_SUPPRESSIONS
};

static const struct option_row options[] = {
    {OPTION_TEXT, "text", NULL, "for people: what leaked, the peak, fragmentation (this is the default)"},
    {OPTION_JSON, "json", NULL, "for programs: everything, in the schema gpumemtrace.report/1"},
    {OPTION_HTML, "html", NULL, "for a browser: a page with pictures to click, in one file"},
    {OPTION_FULL, "full", NULL, "every site and every frame, nothing shortened"},
    {OPTION_NATIVE, "native", NULL, "all native frames, those of libraries and the interpreter too"},
    {OPTION_SUPPRESSIONS, "suppressions", "FILE",
     "leave out of the leaks what lines leak:PATTERN in FILE mean"},
    {'o', "output", "FILE", "write to FILE instead of standard output"},
    SYMBOL_OPTION_ROWS,
};

enum form { FORM_TEXT, FORM_JSON, FORM_HTML };

struct request {
    enum form form;
    struct report_text_options text;
    struct symbol_options symbols;
    const char *output, *suppressions;
};

/* False: there is no memory. */
static bool write_form(const struct rendering *rendering, const struct request *request, struct output *out)
{
    switch (request->form) {
    case FORM_TEXT:
        report_write_text(rendering->report, &request->text, out);
        break;
    case FORM_JSON:
        report_write_json(rendering->report, out);
        break;
    case FORM_HTML:
        return page_write(rendering->report, rendering->timeline, rendering->recording.events_since_ns, out);
    }
    return true;
}

static int write_report(const struct rendering *rendering, const struct request *request)
{
    struct destination to;
    if (!destination_open(&to, request->output))
        return STATUS_UNUSABLE;
    output_limit(&to.out, rendering_limit(rendering));
    bool whole = write_form(rendering, request, &to.out);
    int status = destination_close(&to, whole);
    if (whole || status != STATUS_GOOD)
        return status;
    complain(NULL, "not enough memory");
    return STATUS_UNUSABLE;
}

static int report_main(const struct command *command, int argc, char **argv)
{
    static const struct {
        int option;
        enum form form;
    } forms[] = {{OPTION_TEXT, FORM_TEXT}, {OPTION_JSON, FORM_JSON}, {OPTION_HTML, FORM_HTML}};
    struct request request = {0};
    struct rendering rendering;
    const char *value;
    char error[512];
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
            if (id == forms[i].option)
                request.form = forms[i].form;
        request.text.full |= id == OPTION_FULL;
        request.text.native |= id == OPTION_NATIVE;
        if (id == 'o')
            request.output = value;
        if (id == OPTION_SUPPRESSIONS && access(value, R_OK) != 0) {
            complain(value, "%s", strerror(errno));
            return STATUS_UNUSABLE;
        }
        if (id == OPTION_SUPPRESSIONS)
            request.suppressions = value;
        symbol_options_take(&request.symbols, command, id, value);
    }
    if (argc - optind != 1)
        usage_error(command, optind == argc ? "which recording?" : "one recording at a time");
    const char *path = argv[optind];
    int (*open_it)(struct rendering *, const char *, const struct symbol_places *, const char *, const char *,
                   char *, size_t) = request.form == FORM_HTML ? rendering_open_for_page : rendering_open;
    if (open_it(&rendering, path, &request.symbols.places, request.suppressions, path, error,
                sizeof(error)) != 0) {
        complain_unreadable(path, error);
        return STATUS_UNUSABLE;
    }
    int status = write_report(&rendering, &request);
    rendering_close(&rendering);
    symbol_options_release(&request.symbols);
    return status;
}

const struct command report_command = {
    .name = "report",
    .arguments = "[OPTION…] RECORDING",
    .summary = "Renders a recording (.gmt), also one of a process that was killed or still runs",
    .details =
        "Native frames get their function, file and line from debug information, inlined calls included;\n"
        "separate debug files are found in the usual folders and, where DEBUGINFOD_URLS is set, by "
        "debuginfod.\n"
        "A recording made in a container or on another machine resolves with --sysroot (a copy of its "
        "files)\n"
        "or --debug-dir (a .build-id folder, or any folder of debug files and libraries). A file counts "
        "only\n"
        "if its build-id, or else its size and time, is the recorded one.\n"
        "Suppressions are those of LeakSanitizer, a line each: leak:PATTERN, and after # why.\n"
        "Without --suppressions the file is taken that GPUMEMTRACE_SUPPRESSIONS names.",
    .example = "  gpumemtrace report gpumemtrace.4711.gmt\n"
               "  gpumemtrace report --json -o run.json gpumemtrace.4711.gmt\n"
               "  gpumemtrace report --html -o run.html gpumemtrace.4711.gmt\n"
               "  gpumemtrace report --sysroot container/rootfs train.gmt\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = report_main,
};
