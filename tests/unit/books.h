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

struct trace_books {
    struct arena arena;
    struct catalog *catalog;
    struct ledger *ledger;
    struct trace_writer *writer; /* NULL: none; the caller opens and closes it */
};

void trace_books_open(struct trace_books *books, struct trace_writer *writer);
void trace_books_close(struct trace_books *books);

uint32_t trace_books_text(struct trace_books *books, const char *text);
uint32_t trace_books_string(struct trace_books *books, const char *text, size_t bytes);
uint32_t trace_books_module(struct trace_books *books, const struct module *module);
uint32_t trace_books_frame(struct trace_books *books, const struct frame *frame);
uint32_t trace_books_stack(struct trace_books *books, const uint32_t *frames, uint32_t count);
uint32_t trace_books_site_of(struct trace_books *books, const struct site_key *key);
/* A site of its own for each `number`, with a stack of one Python frame at that line. */
uint32_t trace_books_site(struct trace_books *books, uint32_t number, enum family family,
                          enum space_kind space, int device);
bool trace_books_apply(struct trace_books *books, const struct event *event, struct block *ended);

/* A trace_put_everything of the books that `arg` points to. */
void trace_books_put_everything(struct trace_writer *writer, void *arg);

/* Fails the test unless all that is known of a device is the same. */
void assert_figures_equal(const struct device_figures *left, const struct device_figures *right);
/* Fails the test unless every answer of one pair is also the other's. */
void assert_catalogs_equal(const struct catalog *left, const struct catalog *right);
void assert_ledgers_equal(const struct catalog *catalog, const struct ledger *left,
                          const struct ledger *right);
/* … and unless both will go on alike, whatever comes: all that either would put into a checkpoint. */
void assert_states_equal(const struct ledger *left, const struct ledger *right);

#endif
