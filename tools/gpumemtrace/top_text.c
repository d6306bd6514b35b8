/* The rows of top, and the plain output where there is no terminal. */
#include <stdio.h>
#include <string.h>

#include "top.h"

enum {
    COLUMN_PROGRAM = 9,
    COLUMN_MEMORY = 26,
    COLUMN_LIVE = 52,
    COLUMN_PEAK = 64,
    COLUMN_RATE = 76,
    COLUMN_COUNT = 92
};
enum {
    COLUMN_SITE_PEAK = 22,
    COLUMN_SITE_RATE = 34,
    COLUMN_SITE_GROWTH = 50,
    COLUMN_ALLOCS = 66,
    COLUMN_PLACE = 76
};

void top_space_heading(struct words *words)
{
    words_add(words, "    PID");
    words_column(words, COLUMN_PROGRAM);
    words_add(words, "PROGRAM");
    words_column(words, COLUMN_MEMORY);
    words_add(words, "MEMORY");
    words_column(words, COLUMN_LIVE);
    words_add(words, "LIVE");
    words_column(words, COLUMN_PEAK);
    words_add(words, "PEAK");
    words_column(words, COLUMN_RATE);
    words_add(words, "CHANGE");
    words_column(words, COLUMN_COUNT);
    words_add(words, "ALLOCS/S");
}

void top_site_heading(struct words *words)
{
    words_add(words, "    PID");
    words_column(words, COLUMN_PROGRAM);
    words_add(words, " LIVE");
    words_column(words, COLUMN_SITE_PEAK);
    words_add(words, "AT PEAK");
    words_column(words, COLUMN_SITE_RATE);
    words_add(words, "CHANGE");
    words_column(words, COLUMN_SITE_GROWTH);
    words_add(words, "GROWTH");
    words_column(words, COLUMN_ALLOCS);
    words_add(words, "ALLOCS");
    words_column(words, COLUMN_PLACE);
    words_add(words, "PLACE");
}

/* "+1.5 MiB/s", "-": nothing changed */
static void add_rate(struct words *words, double bytes_per_second)
{
    bool falls = bytes_per_second < 0;
    uint64_t bytes = (uint64_t)((falls ? -bytes_per_second : bytes_per_second) + 0.5);
    if (bytes == 0) {
        words_add(words, "-");
        return;
    }
    words_add(words, "%s", falls ? "-" : "+");
    words_size(words, bytes);
    words_add(words, "/s");
}

/* Of an interpreter, its script: all that run on one machine would have one name otherwise. */
static const char *program_of(const struct process_info *process, char text[16])
{
    const char *name = process->exe && process->exe[0] ? base_name(process->exe) : "?";
    bool is_script = strncmp(name, "python", strlen("python")) == 0 && process->argument_count > 1 &&
                     process->arguments[1][0] && process->arguments[1][0] != '-';
    snprintf(text, 16, "%s", is_script ? base_name(process->arguments[1]) : name);
    return text;
}

void top_space_line(struct words *words, const struct live_space *space)
{
    static const char *const ends[] = {
        [PROCESS_EXITED] = " (exited)", [PROCESS_KILLED] = " (killed)", [PROCESS_RUNNING] = ""};
    const struct process_info *process = live_info(space->process);
    char program[16];
    words_add(words, "%7u  ", (unsigned)process->pid);
    words_add(words, "%s", program_of(process, program));
    words_column(words, COLUMN_MEMORY);
    words_space(words, space->space->kind, space->space->device);
    words_add(words, "%s%s", space->space->layer == LAYER_FRAMEWORK ? ", tensors" : "", ends[process->end]);
    words_column(words, COLUMN_LIVE);
    words_size(words, space->space->totals.live_bytes);
    words_column(words, COLUMN_PEAK);
    words_size(words, space->space->totals.peak_bytes);
    words_column(words, COLUMN_RATE);
    add_rate(words, space->bytes_per_second);
    words_column(words, COLUMN_COUNT);
    words_add(words, "%.0f", space->allocs_per_second);
}

void top_site_line(struct words *words, const struct live_site *site)
{
    char title[TITLE_MAX];
    words_add(words, "%7u ", (unsigned)live_info(site->process)->pid);
    words_column(words, COLUMN_PROGRAM + 1);
    words_size(words, site->site->figures.totals.live_bytes);
    words_column(words, COLUMN_SITE_PEAK);
    words_size(words, site->site->figures.bytes_at_peak);
    words_column(words, COLUMN_SITE_RATE);
    add_rate(words, site->bytes_per_second);
    words_column(words, COLUMN_SITE_GROWTH);
    add_rate(words, site->growth);
    words_column(words, COLUMN_ALLOCS);
    words_add(words, "%llu", (unsigned long long)site->site->figures.totals.allocs);
    words_column(words, COLUMN_PLACE);
    words_add(words, "%s",
              report_site_title(live_report(site->process), site->id, TITLE_FUNCTION, title, sizeof(title)));
    if (site->site->layer == LAYER_FRAMEWORK)
        words_add(words, ", tensors");
}

void top_write_text(const struct top *top, struct output *out)
{
    const struct live *live = &top->live;
    struct words words = {0};
    for (size_t i = 0; i < live->process_count; i++) {
        if (!live_problem(live->processes[i]))
            continue;
        words_add(&words, "%s: %s", live_path(live->processes[i]), live_problem(live->processes[i]));
        words_end_line(&words, out);
    }
    top_space_heading(&words);
    words_end_line(&words, out);
    for (size_t i = 0; i < live->space_count; i++) {
        top_space_line(&words, &live->spaces[i]);
        words_end_line(&words, out);
    }
    output_text(out, "\n");
    top_site_heading(&words);
    words_end_line(&words, out);
    for (size_t i = 0; i < live->site_count && (top->lines == 0 || i < top->lines); i++) {
        top_site_line(&words, &live->sites[i]);
        words_end_line(&words, out);
    }
    output_text(out, "\n");
}
