/* What outputs ask about memory pools. */
#ifndef REPORT_FRAMEWORKS_H
#define REPORT_FRAMEWORKS_H

#include "report/model.h"

/* The unused bytes that a pool keeps when the program waits for the device; the rest goes back to it. */
uint64_t report_pool_keeps(const struct pool_sample *pool);

#endif
