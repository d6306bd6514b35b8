/* The formats: a row and a file each. Only export.c includes the table; the files include it for their
 * prototype.
 */
#ifndef EXPORT_FORMATS_H
#define EXPORT_FORMATS_H

#include "export/export.h"

/* X(name, binary, function) */
#define EXPORT_FORMATS(X)                                                                                    \
    X("folded", false, export_folded)                                                                        \
    X("speedscope", false, export_speedscope)                                                                \
    X("pprof", true, export_pprof)                                                                           \
    X("perfetto", false, export_perfetto)                                                                    \
    X("torch", true, export_torch_snapshot)                                                                  \
    X("csv", false, export_csv)                                                                              \
    X("sqlite", true, export_sqlite)                                                                         \
    X("openmetrics", false, export_openmetrics)

typedef int export_writer(const struct export_request *request, struct output *out, char *error,
                          size_t error_bytes);

#define AS_PROTOTYPE(name, binary, write) export_writer write;
EXPORT_FORMATS(AS_PROTOTYPE)
#undef AS_PROTOTYPE

#endif
