/*
 * The environment variables that the library reads, one row each: what config.c parses and what the manual
 * pages say come from here. A row without a meaning is no business of a person's.
 */
#ifndef PRELOAD_VARIABLES_H
#define PRELOAD_VARIABLES_H

#define OUTPUT_DEFAULT "gpumemtrace.%p"

/* X(name, field: config.c's set_FIELD parses it, what a value must be, default, meaning). What a value must
 * be completes "GPUMEMTRACE_DEPTH=x is not …"; it is empty where any value will do. */
#define CONFIG_VARIABLES(X)                                                                                  \
    X("GPUMEMTRACE_OUTPUT", output, "a file name with %p, %h, %r, %e or %% in it", OUTPUT_DEFAULT,           \
      "Where the files go, without suffix; .gmt, .txt and .json are added. %p is the process id, %h the "    \
      "host, %r the rank in the job (of RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID or PMI_RANK, the first "    \
      "that is a number; 0 without), %e the program, %% a percent sign. The folder must be there "           \
      "(gpumemtrace run makes it).")                                                                         \
    X("GPUMEMTRACE_REPORT", report, "none or a list of text and json", "text,json",                          \
      "Which reports are written at exit: text, json, both with a comma, or none.")                          \
    X("GPUMEMTRACE_STACKS", stacks, "mixed, python, native or none", "mixed",                                \
      "Which frames are recorded: mixed (both), python, native or none.")                                    \
    X("GPUMEMTRACE_DEPTH", depth, "a number from 1 to 1024", "64",                                           \
      "How many frames of each kind are kept of a stack, the innermost.")                                    \
    X("GPUMEMTRACE_MAX_TRACE", max_trace, "a size of at least 2M, such as 512M or 4G", "1G",                 \
      "The largest recording, in bytes or with K, M or G. Beyond it older events are left out; totals, "     \
      "peaks and leaks stay exact.")                                                                         \
    X("GPUMEMTRACE_SUPPRESSIONS", suppressions, "a file's name", "none",                                     \
      "A file of what is kept on purpose, a line leak:PATTERN each, with a reason behind #, as for "         \
      "LeakSanitizer. It is listed apart and never hidden.")                                                 \
    X("GPUMEMTRACE_NVML", nvml, "", "1",                                                                     \
      "0: NVML, the library behind nvidia-smi, is not loaded, and what other processes hold of a GPU is "    \
      "not known.")                                                                                          \
    X("GPUMEMTRACE_QUIET", quiet, "", "0", "1: no line on standard error at exit.")                          \
    X("GPUMEMTRACE_DISABLE", disabled, "", "0", "1: do nothing.")                                            \
    X("GPUMEMTRACE_SESSION", session, "a short name", "none", NULL)

#endif
