/* What the page's files share; nobody else includes this. */
#ifndef REPORT_PAGE_PAGE_PARTS_H
#define REPORT_PAGE_PAGE_PARTS_H

#include "report/json_emit.h"
#include "report/model.h"
#include "report/page/timeline.h"

#define PAGE_ROWS 100 /* of a list: lines of code, growing sites, what held memory at an out-of-memory */

struct page {
    const struct report *report;
    const struct timeline *timeline;
    uint64_t since_ns;
    struct arena arena;
    struct json json;
    uint32_t group_count;
    const struct ledger_space **groups; /* both layers' spaces; by number in the page */
    bool *chosen;                       /* by site of the report: it is in the page */
    uint32_t left_out;                  /* sites that are not */
    struct page_stacks *stacks;
};

/* page_groups.c: device memory first, the largest peak first; frameworks' right behind what they are inside.
 */
bool page_collect_groups(struct page *page);
/* REPORT_NONE: none. */
uint32_t page_group_of(const struct page *page, enum layer layer, enum space_kind kind, int device);
void page_put_groups(struct page *page);

/* page_stacks.c: which sites the page has, and their stacks as one tree. */
bool page_choose_sites(struct page *page);
void page_put_sites(struct page *page);

/* page_lists.c */
void page_put_leaks(struct page *page);
void page_put_peaks(struct page *page);
void page_put_growth(struct page *page);
void page_put_ooms(struct page *page);
void page_put_phases(struct page *page);
/* The text of the lines of code that the lists name. */
void page_put_sources(struct page *page);
/* Whether one of the lists, or a layout, names the site. Fills `named`, by site. */
void page_mark_listed(const struct page *page, bool *named);

/* page_timeline.c */
void page_put_timeline(struct page *page);

#endif
