/* The formats: a row and a file each. Only export.c includes the table; the files include it for their
 * prototype.
 */
#ifndef EXPORT_FORMATS_H
#define EXPORT_FORMATS_H

#include "export/export.h"

/* X(name, for the help, binary, function) */
#define EXPORT_FORMATS(X)                                                                                    \
    X("folded", "folded stacks: flamegraph.pl, inferno and their like", false, export_folded)                \
    X("speedscope", "https://www.speedscope.app", false, export_speedscope)                                  \
    X("pprof", "go tool pprof, pprof, Pyroscope", true, export_pprof)                                        \
    X("perfetto", "Chrome's trace format with counters: https://ui.perfetto.dev", false, export_perfetto)    \
    X("torch", "a snapshot for https://pytorch.org/memory_viz, of any program", true, export_torch_snapshot) \
    X("csv", "the sites as a table", false, export_csv)                                                      \
    X("sqlite", "a database of sites, frames, events and phases", true, export_sqlite)                       \
    X("openmetrics", "for Prometheus: node_exporter's textfile collector", false, export_openmetrics)

typedef int export_writer(const struct export_request *request, struct output *out, char *error,
                          size_t error_bytes);

#define AS_PROTOTYPE(name, summary, binary, write) export_writer write;
EXPORT_FORMATS(AS_PROTOTYPE)
#undef AS_PROTOTYPE

#endif
