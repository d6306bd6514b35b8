/* Recordings for tests: who wrote them, records made by hand as gpumemtrace/trace.h describes them, and what
 * the reader must say of them. */
#ifndef UNIT_RECORDING_FILE_H
#define UNIT_RECORDING_FILE_H

#include "gpumemtrace/trace.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* This process, as the library would describe it. */
struct process_info own_process(void);

/* A whole file being made by hand: the header, then whatever records are put. */
struct raw_file {
    union {
        struct trace_header header;
        uint8_t bytes[TRACE_HEADER_SIZE + 65536];
    };
    size_t used;
};

/* A good header of a process that exited, and no record. */
void raw_begin(struct raw_file *file);
void raw_byte(struct raw_file *file, uint8_t byte);
void raw_number(struct raw_file *file, uint64_t number);
void raw_signed(struct raw_file *file, int64_t number);
void raw_string(struct raw_file *file, const char *text);
/* Writes the file with all that was put as committed. */
void raw_write(struct raw_file *file, const char *path);

/* A few records of every kind, put as the format's description says. */
void raw_example(struct raw_file *file);

/* Reads a file that must be good. */
void read_good(struct recording *recording, const char *path);
/* Reads a file that must be refused with a sentence that has `sentence` in it. */
void assert_refused(const char *path, const char *sentence);

#endif
