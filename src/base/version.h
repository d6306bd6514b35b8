/* The one place that names the version: reports, --version, pkg-config and the changelog follow it. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define GPUMEMTRACE_VERSION "0.1.0"

#endif
