/* Recordings made up by hand that several tests of reports look at. */
#ifndef TESTS_REPORT_SAMPLES_H
#define TESTS_REPORT_SAMPLES_H

#include "report_books.h"

/*
 * A minute of training in which every step keeps 3 MiB at train.py:28 of a class Server, through a helper
 * cu.py that everything allocates with; weights and optimizer state; activations that are freed; pinned
 * staging; a C++ extension with a workspace; and, at the end, a request that does not fit.
 */
struct training {
    struct books books;
    uint32_t weights, kept, activations, staging, workspace, failing;
    char script[96];
};

void training_open(struct training *training);
void training_close(struct training *training);

#endif
