/*
 * Writes Python's pickle, protocol 4, of lists, dictionaries, texts and whole numbers: what PyTorch's memory
 * page understands. A list or a dictionary is opened, filled with values (in a dictionary: key, value, …) and
 * closed.
 */
#ifndef EXPORT_PICKLE_H
#define EXPORT_PICKLE_H

#include <stdint.h>

#include "base/output.h"

#define PICKLE_DEPTH_MAX 16

struct pickle {
    struct output *out;
    uint32_t memo; /* so many values were marked for use again */
    int depth;
    struct {
        char kind;
        unsigned items; /* since the last batch */
    } levels[PICKLE_DEPTH_MAX];
};

void pickle_begin(struct pickle *pickle, struct output *out);
void pickle_end(struct pickle *pickle);
void pickle_open_list(struct pickle *pickle);
void pickle_open_dict(struct pickle *pickle);
void pickle_close(struct pickle *pickle);
void pickle_int(struct pickle *pickle, int64_t value);
/* As export_text() has it. */
void pickle_text(struct pickle *pickle, const char *text);
/* Right after a value was written: marks it. Returns its number. */
uint32_t pickle_keep(struct pickle *pickle);
/* A value that was marked, once more: the same object. */
void pickle_again(struct pickle *pickle, uint32_t number);

#endif
