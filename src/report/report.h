/*
 * Reports: a model is computed once from a catalog and a ledger (report_build), one file per section, and
 * then written by one file per output (text.c, json.c). Both the library at exit and the command-line tool
 * use it; so nothing in here calls malloc, CUDA, or anything outside src/base, src/catalog and src/ledger.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/output.h"
#include "catalog/catalog.h"
#include "ledger/ledger.h"
#include "report/suppressions.h"
#include "trace/process_info.h"

/* Names for a native frame. The library reads dynamic symbol tables, the command-line tool DWARF. */
struct native_name {
    const char *function; /* demangled; NULL: unknown */
    const char *file;     /* NULL: unknown */
    int line;             /* 0: unknown */
};

struct symbol_source {
    /* Fills up to `max` names for one return address: inlined calls innermost first, then the function
     * itself. Returns how many; 0: nothing is known. Strings live as long as the source. */
    size_t (*resolve)(void *source, const struct module *module, uint64_t offset, struct native_name *names,
                      size_t max);
    /* In a few words, why functions of the module have no name: "has changed since the recording". NULL:
     * unknown. May be NULL itself. */
    const char *(*why)(void *source, const struct module *module);
    void *source;
};

struct report_input {
    const struct catalog *catalog;
    const struct ledger *ledger;
    const struct process_info *process;
    const struct symbol_source *symbols; /* NULL: native frames stay module+offset */
    uint64_t dropped_events;             /* of the process or the file, beyond the ledger's own */
    uint64_t bound_bytes; /* not 0: to stay under so many, older events were left out of the recording */
    size_t note_count;
    const char *const *notes;
    const struct suppressions *suppressions; /* the reader's; NULL: only those that are built in */
    const char *source_root; /* a folder in the place of "/", to read lines of code from; NULL: "/" itself */
    const char *report_path; /* where the reader finds more, for the text report; NULL: say nothing */
};

struct report; /* the model; internals in report/model.h */

/* NULL when memory ran out. Everything is allocated from `arena`; the input must outlive it. */
struct report *report_build(const struct report_input *input, struct arena *arena);

struct report_text_options {
    bool full;   /* every frame, every site */
    bool native; /* all native frames */
};

void report_write_text(const struct report *report, const struct report_text_options *options,
                       struct output *out);
void report_write_json(const struct report *report, struct output *out);
/* One line for stderr at exit: peak, what is still live, where the report is. */
void report_write_summary(const struct report *report, struct output *out);

#endif
