/* A checkpoint of the traced process's books (checkpoint.h), written in the middle of an event that found the
 * recording full. */
#include "preload/checkpoint.h"

#include <string.h>

#include "preload/state.h"

void preload_checkpoint(struct trace_writer *writer, void *unused)
{
    (void)unused;
    /* They are in the catalog from when they were first put; if not, they get there before it is put. */
    uint32_t notes[NOTES_MAX], count = preload.note_count;
    for (uint32_t i = 0; i < count; i++)
        notes[i] = catalog_add_string(preload.catalog, preload.notes[i], strlen(preload.notes[i]), NULL);
    trace_put_catalog(writer, preload.catalog);
    if (preload.process_strings != NULL)
        trace_put_process(writer, preload.process_strings, preload.process_string_count);
    for (uint32_t i = 0; i < count; i++) {
        if (notes[i] != CATALOG_NONE)
            trace_put_note(writer, notes[i]);
    }
    ledger_save(preload.ledger, trace_put_state, writer);
}
