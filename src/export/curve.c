/* Live bytes over time; see curve.h. */
#include "export/curve.h"

/* So many events are kept as they are; beyond, so many stretches of time. */
#define EXACT_EVENTS 100000
#define STRETCHES    20000

void curve_begin(struct curve *curve, struct arena *arena, uint64_t events, uint64_t duration_ns)
{
    *curve = (struct curve){.width_ns = events > EXACT_EVENTS ? duration_ns / STRETCHES + 1 : 0};
    list_init(&curve->points, arena, sizeof(struct curve_point));
}

static void keep(struct curve *curve, struct curve_point point)
{
    const struct curve_point *before =
        curve->points.count > 0 ? list_at(&curve->points, curve->points.count - 1) : NULL;
    if (before && before->value == point.value)
        return;
    struct curve_point *added = list_reach(&curve->points, curve->points.count);
    curve->failed |= !added;
    if (added)
        *added = point;
}

static void flush(struct curve *curve)
{
    bool low_first = curve->lowest.time_ns < curve->highest.time_ns;
    if (!curve->any)
        return;
    keep(curve, low_first ? curve->lowest : curve->highest);
    keep(curve, low_first ? curve->highest : curve->lowest);
    keep(curve, curve->last);
    curve->any = false;
}

void curve_add(struct curve *curve, uint64_t time_ns, uint64_t value)
{
    struct curve_point point = {time_ns, value};
    if (curve->width_ns == 0) {
        keep(curve, point);
        return;
    }
    if (curve->last.value == value && (curve->any || curve->points.count > 0))
        return;
    if (curve->any && time_ns / curve->width_ns != curve->stretch)
        flush(curve);
    if (!curve->any)
        curve->lowest = curve->highest = point;
    curve->any = true;
    curve->stretch = time_ns / curve->width_ns;
    curve->last = point;
    if (value < curve->lowest.value)
        curve->lowest = point;
    if (value > curve->highest.value)
        curve->highest = point;
}

void curve_end(struct curve *curve)
{
    flush(curve);
}
