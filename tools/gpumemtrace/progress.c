/* The line that says how far the work is; see progress.h. */
#include "progress.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"

#define SECOND   UINT64_C(1000000000)
#define PATIENCE (2 * SECOND)
#define BETWEEN  (SECOND / 5)

static bool is_silent;

void progress_never(void)
{
    is_silent = true;
}

void progress_begin(struct progress *progress, const char *what, uint64_t total, const char *unit)
{
    *progress = (struct progress){
        .what = what, .unit = unit, .total = total, .is_terminal = !is_silent && isatty(STDERR_FILENO)};
    if (progress->is_terminal)
        progress->begun_ns = clock_monotonic_ns();
}

#define CLEAR_LINE "\r\x1b[K"

void progress_tell(struct progress *progress, uint64_t done)
{
    if (!progress->is_terminal)
        return;
    uint64_t now = clock_monotonic_ns();
    if (now - progress->begun_ns < PATIENCE || now - progress->shown_ns < BETWEEN)
        return;
    struct output out;
    output_init(&out, STDERR_FILENO);
    output_text(&out, CLEAR_LINE);
    output_safe(&out, progress->what);
    if (progress->total > 0)
        output_format(&out, ": %llu of %llu %s", (unsigned long long)done,
                      (unsigned long long)progress->total, progress->unit);
    else
        output_format(&out, ": %llu %s", (unsigned long long)done, progress->unit);
    output_flush(&out);
    progress->shown_ns = now;
}

void progress_end(struct progress *progress)
{
    struct output out;
    if (progress->shown_ns == 0)
        return;
    output_init(&out, STDERR_FILENO);
    output_text(&out, CLEAR_LINE);
    output_flush(&out);
    progress->shown_ns = 0;
}
