/* Live bytes over time; see timeline.h. */
#include "export/timeline.h"

/* So many events are kept as they are; beyond, so many stretches of time. */
#define EXACT_EVENTS 100000
#define STRETCHES    20000

void timeline_begin(struct timeline *timeline, struct arena *arena, uint64_t events, uint64_t duration_ns)
{
    *timeline = (struct timeline){.width_ns = events > EXACT_EVENTS ? duration_ns / STRETCHES + 1 : 0};
    list_init(&timeline->points, arena, sizeof(struct timeline_point));
}

static void keep(struct timeline *timeline, struct timeline_point point)
{
    const struct timeline_point *before =
        timeline->points.count > 0 ? list_at(&timeline->points, timeline->points.count - 1) : NULL;
    if (before && before->value == point.value)
        return;
    struct timeline_point *added = list_reach(&timeline->points, timeline->points.count);
    timeline->failed |= !added;
    if (added)
        *added = point;
}

static void flush(struct timeline *timeline)
{
    bool low_first = timeline->lowest.time_ns < timeline->highest.time_ns;
    if (!timeline->any)
        return;
    keep(timeline, low_first ? timeline->lowest : timeline->highest);
    keep(timeline, low_first ? timeline->highest : timeline->lowest);
    keep(timeline, timeline->last);
    timeline->any = false;
}

void timeline_add(struct timeline *timeline, uint64_t time_ns, uint64_t value)
{
    struct timeline_point point = {time_ns, value};
    if (timeline->width_ns == 0) {
        keep(timeline, point);
        return;
    }
    if (timeline->last.value == value && (timeline->any || timeline->points.count > 0))
        return;
    if (timeline->any && time_ns / timeline->width_ns != timeline->stretch)
        flush(timeline);
    if (!timeline->any)
        timeline->lowest = timeline->highest = point;
    timeline->any = true;
    timeline->stretch = time_ns / timeline->width_ns;
    timeline->last = point;
    if (value < timeline->lowest.value)
        timeline->lowest = point;
    if (value > timeline->highest.value)
        timeline->highest = point;
}

void timeline_end(struct timeline *timeline)
{
    flush(timeline);
}
