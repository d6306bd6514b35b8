/* What came of a run; see run_outcome.h. */
#include "run_outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "catalog/catalog.h"
#include "command.h"
#include "diff_words.h"
#include "report_file.h"

/* One line of code: sites with one title, together. */
struct line {
    const char *title;
    struct saved_figures figures;
};

static int by_title(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return strcmp(a->title, b->title);
}

static bool is_device(const struct saved_space *space)
{
    return strcmp(space->space, space_infos[SPACE_DEVICE].name) == 0;
}

/* The fullest device; any other memory only where no device was used. */
static const struct saved_space *main_space(const struct saved_report *report)
{
    const struct saved_space *found = NULL;
    for (size_t i = 0; i < report->space_count; i++) {
        const struct saved_space *space = &report->spaces[i];
        if (!found || is_device(space) > is_device(found) ||
            (is_device(space) == is_device(found) && space->figures.peak_bytes > found->figures.peak_bytes))
            found = space;
    }
    return found;
}

/* All lines of one layer; at the peak they have what they held of the main space. NULL when there is no
 * memory. */
static struct line *sum_lines(const struct saved_report *report, const char *layer, size_t *count)
{
    struct line *lines = calloc(report->site_count + 1, sizeof(*lines));
    const struct saved_space *space = main_space(report);
    size_t used = 0;
    *count = 0;
    for (size_t i = 0; lines && i < report->site_count; i++) {
        const struct saved_site *site = &report->sites[i];
        if (strcmp(site->layer, layer) != 0)
            continue;
        struct line *line = &lines[used++];
        *line = (struct line){site->title ? site->title : site->api, site->figures};
        if (!space || site->device != space->device || strcmp(site->space, space->space) != 0)
            line->figures.peak_bytes = 0;
        if (line->figures.leaked_bytes == 0) /* none left, or suppressed */
            line->figures.live_blocks = 0;
    }
    if (used > 0)
        qsort(lines, used, sizeof(*lines), by_title);
    for (size_t i = 0; i < used; i++) {
        struct line *last = *count > 0 ? &lines[*count - 1] : NULL;
        if (!last || strcmp(last->title, lines[i].title) != 0) {
            lines[(*count)++] = lines[i];
            continue;
        }
        last->figures.leaked_bytes += lines[i].figures.leaked_bytes;
        last->figures.live_blocks += lines[i].figures.live_blocks;
        last->figures.peak_bytes += lines[i].figures.peak_bytes;
        last->figures.growth_per_second += lines[i].figures.growth_per_second;
        last->figures.adding_bytes += lines[i].figures.adding_bytes;
    }
    return lines;
}

static const struct line *most(const struct line *lines, size_t count,
                               uint64_t (*of)(const struct saved_figures *))
{
    const struct line *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (of(&lines[i].figures) > (found ? of(&found->figures) : 0))
            found = &lines[i];
    return found;
}

static uint64_t growth_of(const struct saved_figures *figures)
{
    return figures->growth_per_second;
}

static uint64_t adding_of(const struct saved_figures *figures)
{
    return figures->adding_bytes;
}

static uint64_t leak_of(const struct saved_figures *figures)
{
    return figures->leaked_bytes;
}

static uint64_t peak_of(const struct saved_figures *figures)
{
    return figures->peak_bytes;
}

/* "train.py:80 in train: 60.0 MiB in 60 blocks, growing by 178.8 MiB/s"; false when that layer says nothing.
 */
static bool look_at_layer(struct words *words, const struct saved_report *report, const char *layer)
{
    size_t count;
    struct line *lines = sum_lines(report, layer, &count);
    uint64_t (*const first_of[])(const struct saved_figures *) = {growth_of, adding_of, leak_of, peak_of};
    const struct line *line = NULL;
    for (size_t i = 0; i < sizeof(first_of) / sizeof(*first_of) && !line; i++)
        line = most(lines, count, first_of[i]);
    if (line)
        words_add(words, "look first at %s: ", line->title);
    if (line && line->figures.growth_per_second > 0) {
        words_add(words, "growing by ");
        words_size(words, line->figures.growth_per_second);
        words_add(words, "/s, ");
    }
    if (line && line->figures.leaked_bytes > 0) {
        words_size(words, line->figures.leaked_bytes);
        words_add(words, " in ");
        words_count(words, line->figures.live_blocks, "block");
        words_add(words, " still allocated");
    } else if (line) {
        words_size(words, line->figures.peak_bytes);
        words_add(words, " at the peak");
    }
    free(lines);
    return line != NULL;
}

/* What a framework's allocator handed out says more than what that took from the driver. */
static void look(struct words *words, const struct saved_report *report)
{
    if (report->verdict)
        words_add(words, "%s", report->verdict);
    else if (!look_at_layer(words, report, layer_names[LAYER_FRAMEWORK]))
        look_at_layer(words, report, layer_names[LAYER_DRIVER]);
}

static void figures(struct words *words, const struct saved_report *report, const struct saved_space *space)
{
    uint64_t bytes = 0, blocks = 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct saved_figures *site = &report->sites[i].figures;
        bytes += site->leaked_bytes;
        blocks += site->leaked_bytes ? site->live_blocks : 0;
    }
    if (report->oom_count > 0)
        words_add(words, "out of memory, ");
    if (report->oom_count > 1) {
        words->used -= strlen(", ");
        words_add(words, " %zu times, ", report->oom_count);
    }
    words_add(words, "peak ");
    words_size(words, space->figures.peak_bytes);
    words_add(words, is_device(space) ? " on " : " of ");
    diff_add_space(words, space->space, space->device);
    words_add(words, ", ");
    if (blocks == 0) {
        words_add(words, "nothing");
    } else {
        words_size(words, bytes);
        words_add(words, " in ");
        words_count(words, blocks, "block");
    }
    words_add(words, " still allocated %s",
              strcmp(report->end, "exited") == 0   ? "at exit"
              : strcmp(report->end, "killed") == 0 ? "when it was killed"
                                                   : "(it still runs)");
}

/* The path as it can be typed where the run began. */
static const char *from_folder(const struct run_outcome *outcome, const char *path)
{
    size_t folder = outcome->folder ? strlen(outcome->folder) : 0;
    bool inside = folder > 0 && strncmp(path, outcome->folder, folder) == 0 && path[folder] == '/';
    return path + (inside ? folder + 1 : 0);
}

static void speak_of(struct run_outcome *outcome, const struct saved_report *report,
                     const struct saved_space *space, const char *recording)
{
    outcome->peak_bytes = space->figures.peak_bytes;
    outcome->figures = outcome->look = outcome->path = (struct words){0};
    figures(&outcome->figures, report, space);
    look(&outcome->look, report);
    words_add(&outcome->path, "%s", from_folder(outcome, recording));
}

/* The report is the one that the library wrote, where it did: the recording may be long. */
static int load(struct saved_report *report, const char *recording, char *error, size_t error_bytes)
{
    char *json = report_file_beside(recording, REPORT_SUFFIX);
    int result = -1;
    if (json && access(json, R_OK) == 0)
        result = saved_report_load(report, json, NULL, error, error_bytes);
    free(json);
    return result == 0 ? 0 : saved_report_load(report, recording, NULL, error, error_bytes);
}

/* The baselines are read anew for each process, since a comparison gives both its reports common names. */
static void check(struct run_outcome *outcome, struct saved_report *report, const char *recording)
{
    struct saved_report *before = calloc(outcome->baseline_count + 1, sizeof(*before));
    struct comparison comparison;
    size_t loaded = 0;
    char error[512] = "not enough memory";
    const char *subject = NULL;
    while (before && loaded < outcome->baseline_count) {
        subject = outcome->baselines[loaded];
        if (saved_report_load(&before[loaded], subject, NULL, error, sizeof(error)) != 0)
            break;
        loaded++;
    }
    if (!before || loaded < outcome->baseline_count ||
        comparison_make(&comparison, before, loaded, report, 0) != 0) {
        if (outcome->unusable++ == 0)
            complain(subject, "%s", error);
    } else {
        if (gates_check(&outcome->gates, &comparison) > 0 && outcome->failed++ == 0)
            gates_complain(&outcome->gates, recording);
        comparison_release(&comparison);
    }
    while (loaded > 0)
        saved_report_release(&before[--loaded]);
    free(before);
}

void run_outcome_take(const char *recording, void *arg)
{
    struct run_outcome *outcome = arg;
    struct saved_report report;
    char error[512];
    if (load(&report, recording, error, sizeof(error)) != 0) {
        complain(recording, "%s", error);
        outcome->unusable++;
        return;
    }
    const struct saved_space *space = main_space(&report);
    if (space && (outcome->figures.used == 0 || space->figures.peak_bytes > outcome->peak_bytes))
        speak_of(outcome, &report, space, recording);
    outcome->processes++;
    if (outcome->gates.count > 0)
        check(outcome, &report, recording);
    saved_report_release(&report);
}

static void say_line(struct output *out, const struct words *words)
{
    output_text(out, "gpumemtrace: ");
    output_safe(out, words->text);
    output_text(out, "\n");
}

void run_outcome_say(const struct run_outcome *outcome)
{
    struct output out;
    struct words first = {0}, last = {0};
    if (outcome->figures.used == 0)
        return;
    if (outcome->processes > 1)
        words_add(&first, "of %zu processes the one with the highest peak: ", outcome->processes);
    words_add(&first, "%s", outcome->figures.text);
    words_add(&last, "more: gpumemtrace report %s", outcome->path.text);
    if (outcome->processes > 1 && outcome->names)
        words_add(&last, "; all: gpumemtrace merge %s", from_folder(outcome, outcome->names));
    output_init(&out, STDERR_FILENO);
    say_line(&out, &first);
    if (outcome->look.used > 0)
        say_line(&out, &outcome->look);
    say_line(&out, &last);
    output_flush(&out);
}

int run_outcome_status(const struct run_outcome *outcome)
{
    if (outcome->gates.count == 0)
        return STATUS_GOOD;
    if (outcome->processes == 0)
        complain("--fail-on", "no process recorded any CUDA memory, so there is nothing to decide on");
    if (outcome->processes == 0 || outcome->unusable > 0)
        return STATUS_UNUSABLE;
    if (outcome->failed > 1)
        complain("--fail-on", "so do %zu more of %zu processes", outcome->failed - 1, outcome->processes);
    return outcome->failed > 0 ? STATUS_GATE_FAILED : STATUS_GOOD;
}
