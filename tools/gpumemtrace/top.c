/* gpumemtrace top: what running processes hold, from the recordings that they write. */
#include "top.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "destination.h"
#include "export/openmetrics.h"

#define LINES_DEFAULT    20
#define INTERVAL_DEFAULT UINT64_C(1000000000)

enum { OPTION_ONCE = OPTION_LONG_ONLY, OPTION_JSON, OPTION_OPENMETRICS, OPTION_SORT };

static const struct option_row options[] = {
    {OPTION_ONCE, "once", NULL, "print one look, over one interval, and end"},
    {OPTION_JSON, "json", NULL, "a line for each look, in the schema gpumemtrace.top/1"},
    {OPTION_OPENMETRICS, "openmetrics", NULL, "one look for Prometheus, as 'gpumemtrace export' writes it"},
    {'d', "interval", "SECONDS", "time between two looks (1)"},
    {OPTION_SORT, "sort", "KEY", "live (the default), peak, rate, growth or allocs"},
    {'n', "top", "N", "list the N first places (20; 0: all), where it is no terminal"},
};

struct request {
    bool once, json, openmetrics;
    struct top top;
};

static enum live_order find_order(const struct command *command, const char *name)
{
    for (int i = 0; i < LIVE_ORDER_COUNT; i++)
        if (strcmp(name, live_order_names[i]) == 0)
            return (enum live_order)i;
    usage_error(command, "there is no order '%s'%s", name,
                did_you_mean("", name, live_order_names, LIVE_ORDER_COUNT));
}

static uint64_t read_interval(const struct command *command, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);
    if (value[0] == 0 || *end || !(seconds >= 0.01 && seconds <= 86400))
        usage_error(command, "option '--interval' needs seconds, from 0.01 on, not '%s'", value);
    return (uint64_t)(seconds * 1e9);
}

static void read_options(const struct command *command, int argc, char **argv, struct request *request)
{
    const char *value;
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        request->once |= id == OPTION_ONCE;
        request->json |= id == OPTION_JSON;
        request->openmetrics |= id == OPTION_OPENMETRICS;
        if (id == 'd')
            request->top.interval_ns = read_interval(command, value);
        if (id == 'n')
            request->top.lines = option_number(command, "--top", value);
        if (id == OPTION_SORT)
            request->top.live.order = find_order(command, value);
    }
}

/* A number is a process, unless a file has that name. */
static int add_word(struct live *live, const char *word)
{
    char error[512], *end;
    unsigned long pid = strtoul(word, &end, 10);
    bool is_pid =
        word[0] >= '1' && word[0] <= '9' && *end == 0 && pid <= UINT32_MAX && access(word, F_OK) != 0;
    if ((is_pid ? live_add_pid(live, (uint32_t)pid, error, sizeof(error))
                : live_add_file(live, word, error, sizeof(error))) == 0)
        return 0;
    complain_unreadable(word, error);
    return -1;
}

static void wait_interval(const struct top *top)
{
    struct timespec time = {(time_t)(top->interval_ns / 1000000000), (long)(top->interval_ns % 1000000000)};
    nanosleep(&time, NULL);
}

static bool look(struct top *top)
{
    if (live_look(&top->live))
        return true;
    complain(NULL, "not enough memory");
    return false;
}

/* Those that cannot be read are said. */
static int judge(const struct live *live)
{
    int status = STATUS_GOOD;
    for (size_t i = 0; i < live->process_count; i++) {
        if (!live_problem(live->processes[i]))
            continue;
        complain(live_path(live->processes[i]), "%s", live_problem(live->processes[i]));
        status = STATUS_UNUSABLE;
    }
    return status;
}

static bool any_readable(const struct live *live)
{
    for (size_t i = 0; i < live->process_count; i++)
        if (!live_problem(live->processes[i]))
            return true;
    return live->process_count == 0;
}

/* What is there now: rates are Prometheus' own affair. */
static int print_metrics(const struct live *live)
{
    struct output out;
    size_t count = 0;
    struct openmetrics_recording *recordings = calloc(live->process_count + 1, sizeof(*recordings));
    for (size_t i = 0; recordings && i < live->process_count; i++)
        if (!live_problem(live->processes[i]))
            recordings[count++] = (struct openmetrics_recording){live_report(live->processes[i]),
                                                                 live_path(live->processes[i])};
    output_init(&out, STDOUT_FILENO);
    bool done = recordings && openmetrics_write(recordings, count, &out);
    free(recordings);
    if (!done)
        complain(NULL, "not enough memory");
    int status = done ? finish_printing(&out) : STATUS_UNUSABLE;
    return status == STATUS_GOOD ? judge(live) : status;
}

static int print_looks(struct request *request)
{
    struct top *top = &request->top;
    struct output out;
    for (bool more = true; more;) {
        bool running = live_any_running(&top->live) || top->live.finds;
        if (running)
            wait_interval(top);
        if (running && !look(top))
            return STATUS_UNUSABLE;
        output_init(&out, STDOUT_FILENO);
        if (request->json)
            top_write_json(top, &out);
        else
            top_write_text(top, &out);
        if (finish_printing(&out) != STATUS_GOOD)
            return STATUS_UNUSABLE;
        more = !request->once && (live_any_running(&top->live) || top->live.finds);
    }
    return judge(&top->live);
}

/* A recording that cannot be read keeps none of the others from being shown; the status tells of it. */
static int show(struct request *request)
{
    struct live *live = &request->top.live;
    if (!look(&request->top))
        return STATUS_UNUSABLE;
    if (!any_readable(live))
        return judge(live);
    if (request->openmetrics)
        return print_metrics(live);
    bool on_terminal = !request->once && !request->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    return on_terminal ? top_run_screen(&request->top) : print_looks(request);
}

static int top_main(const struct command *command, int argc, char **argv)
{
    struct request request = {.top = {.lines = LINES_DEFAULT, .interval_ns = INTERVAL_DEFAULT}};
    struct live *live = &request.top.live;
    int unusable = 0;
    read_options(command, argc, argv, &request);
    for (int i = optind; i < argc; i++)
        unusable += add_word(live, argv[i]) != 0;
    if (optind == argc)
        live_add_all(live);
    bool any = optind == argc || unusable < argc - optind;
    int status = any ? show(&request) : STATUS_UNUSABLE;
    live_release(live);
    return unusable ? STATUS_UNUSABLE : status;
}

const struct command top_command = {
    .name = "top",
    .arguments = "[OPTION…] [PID|RECORDING…]",
    .summary = "Shows what running processes hold, live, and where it changes",
    .details = "Without arguments, all processes on this machine that are being recorded and whose "
               "recordings can be\n"
               "read. It reads what they write: they are not stopped, signalled or attached to. Keys sort "
               "and scroll;\n"
               "where the output is no terminal, a table is printed at each interval until the processes "
               "have ended.",
    .example = "  gpumemtrace top\n"
               "  gpumemtrace top 4711\n"
               "  gpumemtrace top --sort growth gpumemtrace.4711.gmt\n"
               "  gpumemtrace top --openmetrics >gpu.new && mv gpu.new gpu.prom  # for node_exporter\n"
               "  gpumemtrace top --once --json | jq '.processes[].spaces[].live_bytes'\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = top_main,
};
