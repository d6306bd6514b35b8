/* Reading a recording, naming its frames and building the report; see rendering.h. */
#include "rendering.h"

#include <stdio.h>
#include <string.h>

#include "symbols/symbols.h"

/* So many modules are named one by one; a recording from another machine may miss all of its files. */
#define PROBLEMS_NAMED 3

/* Adds sentences on the modules whose functions cannot be named; returns the new count. */
static size_t add_problems(struct rendering *rendering, const char **notes, size_t count)
{
    const struct catalog *catalog = rendering->recording.catalog;
    size_t more = 0, first = count;
    for (uint32_t i = 0; i < catalog_module_count(catalog); i++) {
        const struct module *module = catalog_module(catalog, i);
        const char *problem =
            module->path[0] == '/' ? dwarf_source_problem(rendering->symbols, module) : NULL;
        if (problem && count - first < PROBLEMS_NAMED)
            notes[count++] = problem;
        else if (problem)
            more++;
    }
    char *text = more > 0 ? arena_alloc(&rendering->arena, 128) : NULL;
    if (text) {
        snprintf(text, 128, "%zu more files are in the same state", more);
        notes[count++] = text;
    }
    return count;
}

static const char **collect_notes(struct rendering *rendering, size_t *count)
{
    const struct recording *recording = &rendering->recording;
    size_t room = recording->note_count + PROBLEMS_NAMED + 1;
    const char **notes = arena_alloc(&rendering->arena, room * sizeof(*notes));
    *count = 0;
    if (!notes)
        return NULL;
    for (uint32_t i = 0; i < recording->note_count; i++)
        notes[(*count)++] = catalog_string(recording->catalog, recording->notes[i]);
    *count = add_problems(rendering, notes, *count);
    return notes;
}

int rendering_open(struct rendering *rendering, const char *path, const char *report_path, char *error,
                   size_t error_bytes)
{
    struct recording *recording = &rendering->recording;
    memset(rendering, 0, sizeof(*rendering));
    if (recording_read(recording, path, NULL, NULL, error, error_bytes) != 0)
        return -1;
    rendering->symbols = dwarf_source_create(NULL);
    if (rendering->symbols) {
        struct report_input *input = &rendering->input;
        *input = (struct report_input){
            .catalog = recording->catalog,
            .ledger = recording->ledger,
            .process = &recording->process,
            .symbols = rendering->symbols,
            .dropped_events = recording->file_dropped_events,
            .report_path = report_path,
        };
        input->notes = collect_notes(rendering, &input->note_count);
        rendering->report = report_build(input, &rendering->arena);
    }
    if (rendering->report)
        return 0;
    snprintf(error, error_bytes, "not enough memory");
    rendering_close(rendering);
    return -1;
}

void rendering_close(struct rendering *rendering)
{
    arena_release(&rendering->arena);
    dwarf_source_destroy(rendering->symbols);
    recording_release(&rendering->recording);
    memset(rendering, 0, sizeof(*rendering));
}
