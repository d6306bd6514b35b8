/* Fragmentation as JSON (json_fragmentation.h). */
#include "report/json_fragmentation.h"

#include "report/frameworks.h"

static void write_segments(struct json *json, const struct layout *layout)
{
    emit_u64(json, "segment_count", layout->segment_count);
    emit_open(json, "segments", '[');
    for (size_t i = 0; i < layout->listed_count; i++) {
        const struct layout_segment *segment = &layout->segments[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_u64(json, "address", segment->start);
        emit_u64(json, "bytes", segment->bytes);
        emit_u64(json, "allocated_bytes", segment->allocated_bytes);
        emit_u64(json, "releasable_bytes", segment->releasable_bytes);
        emit_u64(json, "stranded_bytes", segment->stranded_bytes);
        emit_u64(json, "largest_free_bytes", segment->largest_free_bytes);
        emit_u64(json, "blocks", segment->blocks);
        emit_string(json, "map", segment->map);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_pinners(struct json *json, const struct report *report, const struct layout *layout)
{
    emit_open(json, "pinners", '[');
    for (size_t i = 0; i < layout->pinner_count; i++)
        if (report->site_of_catalog[layout->pinners[i].site] != REPORT_NONE)
            emit_u64(json, NULL, report->site_of_catalog[layout->pinners[i].site]);
    emit_close(json, ']');
    emit_open(json, "pinned", '[');
    for (size_t i = 0; i < layout->pinner_count; i++) {
        const struct layout_pinner *pinner = &layout->pinners[i];
        uint32_t site = report->site_of_catalog[pinner->site];
        if (site == REPORT_NONE)
            continue;
        emit_open(json, NULL, '{');
        emit_u64(json, "site", site);
        emit_u64(json, "stranded_bytes", pinner->stranded_bytes);
        emit_u64(json, "pieces", pinner->pieces);
        emit_u64(json, "blocks", pinner->blocks);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

static void write_layout(struct json *json, const struct report *report, const struct layout *layout)
{
    uint64_t free_bytes = layout->releasable_bytes + layout->stranded_bytes;
    emit_u64(json, "reserved_bytes", layout->reserved_bytes);
    emit_u64(json, "allocated_bytes", layout->allocated_bytes);
    emit_u64(json, "allocated_blocks", layout->blocks);
    emit_u64(json, "free_bytes", free_bytes);
    emit_u64(json, "releasable_bytes", layout->releasable_bytes);
    emit_u64(json, "stranded_bytes", layout->stranded_bytes);
    emit_u64(json, "largest_free_bytes", layout->largest_free_bytes);
    emit_ratio(json, "external_fragmentation",
               free_bytes > layout->largest_free_bytes ? free_bytes - layout->largest_free_bytes : 0,
               free_bytes);
    emit_u64(json, "outside_bytes", layout->outside_bytes);
    write_segments(json, layout);
    write_pinners(json, report, layout);
}

static void write_name(struct json *json, const struct report *report, uint32_t allocator)
{
    emit_string(json, "name", catalog_string(report->input->catalog, allocator));
}

void json_layouts(struct json *json, const char *key, const struct report *report,
                  const struct layout *layouts, size_t count)
{
    emit_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        emit_open(json, NULL, '{');
        write_name(json, report, layouts[i].allocator);
        write_layout(json, report, &layouts[i]);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

/* Now, with what it was at the device's fullest moment inside. Either may be missing. */
static void write_framework(struct json *json, const struct report *report, const struct layout *now,
                            const struct layout *peak)
{
    static const struct layout nothing;
    const struct layout *known = now ? now : peak ? peak : &nothing;
    emit_break(json);
    emit_open(json, NULL, '{');
    write_name(json, report, known->allocator);
    write_layout(json, report, now ? now : &nothing);
    if (peak) {
        emit_open(json, "at_peak", '{');
        emit_u64(json, "time_ns", peak->time_ns);
        write_layout(json, report, peak);
        emit_close(json, '}');
    } else {
        emit_null(json, "at_peak");
    }
    emit_close(json, '}');
}

static void write_frameworks(struct json *json, const struct report *report, const struct fragmentation *row)
{
    emit_open(json, "frameworks", '[');
    for (size_t i = 0; i < row->layout_count; i++) {
        const struct layout *now = &row->layouts[i];
        write_framework(json, report, now,
                        report_layout_of(row->peak_layouts, row->peak_layout_count, now->allocator));
    }
    for (size_t i = 0; i < row->peak_layout_count; i++) {
        const struct layout *peak = &row->peak_layouts[i];
        if (!report_layout_of(row->layouts, row->layout_count, peak->allocator))
            write_framework(json, report, NULL, peak);
    }
    emit_close(json, ']');
}

static void write_pools(struct json *json, const struct fragmentation *row)
{
    emit_open(json, "pools", '[');
    for (size_t i = 0; i < row->pool_count; i++) {
        const struct pool_sample *pool = row->pools[i];
        emit_open(json, NULL, '{');
        emit_u64(json, "handle", pool->handle);
        emit_u64(json, "reserved_bytes", pool->reserved_bytes);
        emit_u64(json, "used_bytes", pool->used_bytes);
        emit_u64(json, "trimmable_bytes", pool->reserved_bytes - pool->used_bytes);
        emit_u64(json, "kept_bytes", report_pool_keeps(pool));
        emit_u64(json, "release_threshold_bytes", pool->threshold_bytes);
        emit_u64(json, "peak_reserved_bytes", pool->peak_reserved_bytes);
        emit_u64(json, "time_ns", pool->time_ns);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}

void json_fragmentation(struct json *json, const struct report *report)
{
    emit_open(json, "fragmentation", '[');
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        emit_break(json);
        emit_open(json, NULL, '{');
        emit_ordinal(json, "device", row->device);
        emit_u64(json, "granule_bytes", row->granule_bytes);
        emit_u64(json, "live_bytes", row->live_bytes);
        emit_u64(json, "footprint_bytes", row->footprint_bytes);
        emit_u64(json, "waste_bytes", row->waste_bytes);
        write_pools(json, row);
        write_frameworks(json, report, row);
        emit_close(json, '}');
    }
    emit_close(json, ']');
}
