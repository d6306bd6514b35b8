/*
 * Catalog, ledger and, where there is a writer, recording, kept in step as the recorder of the traced process
 * keeps them: what is new to the catalog is written, and so is every event that the ledger took.
 */
#ifndef UNIT_BOOKS_H
#define UNIT_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "ledger/ledger.h"
#include "trace/writer.h"

struct books {
    struct arena arena;
    struct catalog *catalog;
    struct ledger *ledger;
    struct trace_writer *writer; /* NULL: none; the caller opens and closes it */
};

void books_open(struct books *books, struct trace_writer *writer);
void books_close(struct books *books);

uint32_t books_text(struct books *books, const char *text);
uint32_t books_string(struct books *books, const char *text, size_t bytes);
uint32_t books_module(struct books *books, const struct module *module);
uint32_t books_frame(struct books *books, const struct frame *frame);
uint32_t books_stack(struct books *books, const uint32_t *frames, uint32_t count);
uint32_t books_site_of(struct books *books, const struct site_key *key);
/* A site of its own for each `number`, with a stack of one Python frame at that line. */
uint32_t books_site(struct books *books, uint32_t number, enum family family, enum space_kind space,
                    int device);
bool books_apply(struct books *books, const struct event *event, struct block *ended);

/* Fails the test unless every answer of one pair is also the other's. */
void assert_catalogs_equal(const struct catalog *left, const struct catalog *right);
void assert_ledgers_equal(const struct catalog *catalog, const struct ledger *left,
                          const struct ledger *right);

#endif
