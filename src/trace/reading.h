/* A recording being read: what the reader's files share; nobody else includes this. */
#ifndef TRACE_READING_H
#define TRACE_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "trace/reader.h"

struct reading {
    struct recording *recording;
    const uint8_t *start, *at, *end;
    struct list arguments; /* const char *, of the PROCESS record */
    struct list notes;     /* uint32_t */
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    void (*each_event)(const struct recording *, const struct event *, void *);
    void *arg;
    const char *wrong; /* what is wrong with the record at hand */
};

/* The record at `at`, which is before `end`. False, with the reason in `wrong`, when it makes no sense. */
bool read_record(struct reading *reading);

#endif
