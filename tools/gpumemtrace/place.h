/*
 * What makes two sites of two runs the same place: the functions on the way there, with their files and
 * modules, as a person would tell them. Not line numbers and addresses, which move with every edit; not
 * folders, which differ between checkouts; not the interpreter, PyTorch and the C library, whose insides
 * differ between versions.
 */
#ifndef GPUMEMTRACE_PLACE_H
#define GPUMEMTRACE_PLACE_H

#include <stdbool.h>

#include "saved_report.h"

/* What all reports that are compared can tell; what only some of them know cannot be asked for. */
struct place_rules {
    bool qualified;  /* Python functions with their classes (from 3.11 on) */
    bool inlined;    /* inlined calls (from debug information) */
    bool any_device; /* not a matter of knowledge: places are the same on all devices */
};

/* What one report can tell, and what two sets of rules have in common. */
struct place_rules place_rules(const struct saved_report *report);
struct place_rules place_rules_common(struct place_rules one, struct place_rules other);

/* One name for each function, where one of two reports of the same build knows better: a symbol table may
 * lack static functions, or have another of a function's names. Changes function names in `after` and
 * `before`. */
void place_unify_names(struct saved_report *before, struct saved_report *after);

/* The site's place as text: equal texts are the same place. NULL when there is no memory; free() it. */
char *place_key(const struct saved_report *report, const struct saved_site *site,
                const struct place_rules *rules);

#endif
