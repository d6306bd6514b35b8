/* Reading a recording, naming its frames and building the report; see rendering.h. */
#include "rendering.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "progress.h"

/* So many modules are named one by one; a recording from another machine may miss all of its files. */
#define PROBLEMS_NAMED 3
#define NOTES_ADDED    (PROBLEMS_NAMED + 3)

#define LIMIT_BYTES    (UINT64_C(1) << 30)
#define LIMIT_PER_BYTE 1024

static void add(struct rendering *rendering, const char **notes, const char *note)
{
    if (note)
        notes[rendering->input.note_count++] = note;
}

/* Where the recording seems to come from another machine or a container, and nobody said where its files are.
 */
static const char *hint(struct rendering *rendering, const struct symbol_places *places)
{
    static const char text[] = "These files may be those of another machine or container (%s): --sysroot or "
                               "--debug-dir can say where they are here.";
    const char *host = rendering->recording.process.host;
    char here[HOST_NAME_MAX + 1] = "", whole[sizeof(text) + HOST_NAME_MAX];
    bool is_told = places && (places->sysroot || places->debug_dir_count > 0);
    gethostname(here, sizeof(here) - 1);
    if (is_told || !host || !host[0] || strcmp(host, here) == 0)
        return NULL;
    snprintf(whole, sizeof(whole), text, host);
    return arena_copy(&rendering->arena, whole, strlen(whole));
}

/* Adds sentences on the modules whose functions cannot be named. */
static void add_problems(struct rendering *rendering, const struct symbol_places *places, const char **notes)
{
    const struct catalog *catalog = rendering->recording.catalog;
    size_t count = 0;
    char more[64];
    for (uint32_t i = 0; i < catalog_module_count(catalog); i++) {
        const struct module *module = catalog_module(catalog, i);
        const char *problem =
            module->path[0] == '/' ? dwarf_source_problem(rendering->symbols, module) : NULL;
        if (problem && count++ < PROBLEMS_NAMED)
            add(rendering, notes, problem);
    }
    if (count > PROBLEMS_NAMED) {
        snprintf(more, sizeof(more), "%zu more files are in the same state.", count - PROBLEMS_NAMED);
        add(rendering, notes, arena_copy(&rendering->arena, more, strlen(more)));
    }
    if (count > 0)
        add(rendering, notes, hint(rendering, places));
    add(rendering, notes, dwarf_source_trouble(rendering->symbols));
}

static bool collect_notes(struct rendering *rendering, const struct symbol_places *places)
{
    const struct recording *recording = &rendering->recording;
    size_t room = (size_t)recording->note_count + NOTES_ADDED;
    const char **notes = arena_alloc(&rendering->arena, room * sizeof(*notes));
    if (!notes)
        return false;
    for (uint32_t i = 0; i < recording->note_count; i++)
        add(rendering, notes, catalog_string(recording->catalog, recording->notes[i]));
    add_problems(rendering, places, notes);
    rendering->input.notes = notes;
    return true;
}

static void complain_of_suppressions(void *arg, const char *sentence)
{
    (void)arg;
    complain(NULL, "%s", sentence);
}

/* They are as little needed as the variable is: a report without them is better than none. */
static void read_suppressions(struct rendering *rendering, const char *path)
{
    if (!path)
        path = getenv("GPUMEMTRACE_SUPPRESSIONS");
    if (!path || !path[0])
        return;
    char *whole = realpath(path, NULL);
    suppressions_read(&rendering->suppressions, whole ? whole : path, &rendering->arena,
                      complain_of_suppressions, NULL);
    free(whole);
}

/* Looked at once in so many events. */
#define PROGRESS_EVENTS 65536

/* What sees the events: the timeline, where one is wanted, and the line on the terminal. */
struct watching {
    struct progress progress;
    uint64_t events;
    struct timeline *timeline;
};

static void watch_event(const struct recording *recording, const struct event *event, void *arg)
{
    struct watching *watching = arg;
    if (event && ++watching->events % PROGRESS_EVENTS == 0)
        progress_tell(&watching->progress, watching->events);
    if (watching->timeline)
        timeline_see(recording, event, watching->timeline);
}

static int read_and_watch(struct recording *recording, struct timeline *timeline, const char *path,
                          char *error, size_t error_bytes)
{
    struct watching watching = {.timeline = timeline};
    char what[256];
    snprintf(what, sizeof(what), "reading %s", path);
    progress_begin(&watching.progress, what, 0, "events");
    bool is_wanted = timeline || watching.progress.is_terminal;
    int result =
        recording_read(recording, path, is_wanted ? watch_event : NULL, &watching, error, error_bytes);
    progress_end(&watching.progress);
    return result;
}

static int open_with(struct rendering *rendering, struct timeline *timeline, const char *path,
                     const struct symbol_places *places, const char *suppressions, const char *report_path,
                     char *error, size_t error_bytes)
{
    struct recording *recording = &rendering->recording;
    memset(rendering, 0, sizeof(*rendering));
    rendering->timeline = timeline;
    if (read_and_watch(recording, timeline, path, error, error_bytes) != 0) {
        timeline_destroy(timeline);
        return -1;
    }
    if (timeline)
        timeline_finish(timeline, recording);
    rendering->symbols = dwarf_source_create(places);
    read_suppressions(rendering, suppressions);
    if (rendering->symbols) {
        rendering->input = (struct report_input){
            .catalog = recording->catalog,
            .ledger = recording->ledger,
            .process = &recording->process,
            .symbols = rendering->symbols,
            .dropped_events = recording->file_dropped_events,
            .bound_bytes = recording->bound_bytes,
            .source_root = places ? places->sysroot : NULL,
            .suppressions = &rendering->suppressions,
            .report_path = report_path,
        };
        if (collect_notes(rendering, places))
            rendering->report = report_build(&rendering->input, &rendering->arena);
    }
    if (rendering->report)
        return 0;
    snprintf(error, error_bytes, "not enough memory");
    rendering_close(rendering);
    return -1;
}

int rendering_open(struct rendering *rendering, const char *path, const struct symbol_places *places,
                   const char *suppressions, const char *report_path, char *error, size_t error_bytes)
{
    return open_with(rendering, NULL, path, places, suppressions, report_path, error, error_bytes);
}

int rendering_open_for_page(struct rendering *rendering, const char *path, const struct symbol_places *places,
                            const char *suppressions, const char *report_path, char *error,
                            size_t error_bytes)
{
    struct timeline *timeline = timeline_create();
    if (timeline)
        return open_with(rendering, timeline, path, places, suppressions, report_path, error, error_bytes);
    snprintf(error, error_bytes, "not enough memory");
    return -1;
}

uint64_t rendering_limit(const struct rendering *rendering)
{
    return LIMIT_BYTES + LIMIT_PER_BYTE * rendering->recording.file_bytes;
}

void rendering_close(struct rendering *rendering)
{
    arena_release(&rendering->arena);
    dwarf_source_destroy(rendering->symbols);
    recording_release(&rendering->recording);
    timeline_destroy(rendering->timeline);
    memset(rendering, 0, sizeof(*rendering));
}
