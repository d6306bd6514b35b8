/*
 * The HTML report: one file that needs nothing else, made of the page's own sources (page.html, *.css, *.js
 * in this folder and d3, put together when this is built) and the report as JSON between them. What a
 * recording says is data in it, never markup or script.
 *
 * For the command-line tool; the library never writes it.
 */
#ifndef REPORT_PAGE_PAGE_H
#define REPORT_PAGE_PAGE_H

#include "base/output.h"
#include "report/page/timeline.h"
#include "report/report.h"

/* `since_ns`: what happened before that is not in the recording; 0: all is. False when memory ran out;
 * nothing was written then. */
bool page_write(const struct report *report, const struct timeline *timeline, uint64_t since_ns,
                struct output *out);

#endif
