/* The page: its own parts, and the report as JSON between them (page.h). */
#include "report/page/page.h"

#include "base/version.h"
#include "report/json_fragmentation.h"
#include "report/json_parts.h"
#include "report/page/page_parts.h"

/* Put together when this is built (assemble.sh, embedded.S). */
extern const char page_before_data[], page_after_data[];
extern const uint32_t page_before_data_bytes, page_after_data_bytes;

static void put_report(struct page *page)
{
    static void (*const from_report[])(struct json *, const struct report *) = {
        json_process, json_counters, json_fragmentation, json_memory_map, json_notes};
    static void (*const parts[])(struct page *) = {page_put_groups, page_put_sites,   page_put_leaks,
                                                   page_put_peaks,  page_put_growth,  page_put_ooms,
                                                   page_put_phases, page_put_sources, page_put_timeline};
    struct json *json = &page->json;
    emit_open(json, NULL, '{');
    emit_string(json, "schema", "gpumemtrace.page/1");
    emit_string(json, "version", GPUMEMTRACE_VERSION);
    for (size_t i = 0; i < sizeof(from_report) / sizeof(from_report[0]); i++) {
        emit_break(json);
        from_report[i](json, page->report);
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        emit_break(json);
        parts[i](page);
    }
    emit_close(json, '}');
}

bool page_write(const struct report *report, const struct timeline *timeline, uint64_t since_ns,
                struct output *out)
{
    struct page page = {
        .report = report, .timeline = timeline, .since_ns = since_ns, .json = {.out = out, .in_html = true}};
    bool ready = page_collect_groups(&page) && page_choose_sites(&page);
    if (ready) {
        output_bytes(out, page_before_data, page_before_data_bytes);
        put_report(&page);
        output_bytes(out, page_after_data, page_after_data_bytes);
    }
    arena_release(&page.arena);
    return ready;
}
