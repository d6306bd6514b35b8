/* The decision which sites grow (growth.h), and at what rate. Nothing is kept between calls. */
#include "ledger/growth.h"

#include "base/sort.h"
#include "ledger/internal.h"

/* Squares, since there is no square root without libm. */
#define SQUARE(x) ((x) * (x))

#define CELLS_MIN      14 /* of a window: in fewer, evenness cannot be seen */
#define STEPS_MIN      5
#define STEPS_FEW      8 /* fewer must be more even than chance makes them: */
#define FEW_STEADINESS 4.25
#define FALLS_MIN      5    /* fewer may be chance */
#define RUN_MIN        0.3  /* of the whole run: what is shorter may be a phase */
#define LULL_MIN       0.15 /* of the site's life: after that, what follows is a beginning of its own */
#define TOOTH_MAX      0.3  /* of the site's life */
#define TURNS_MIN      4    /* times over that a site allocates what it has at most: the program is at work */
#define EXIT_NS        (50 * UINT64_C(1000000)) /* an interpreter takes so long to end */
#define PARTS          8                        /* eighths_steadiness2() */
#define BASE_SPREAD    0.05 /* unevenness that even a perfect staircase gets, from the cells' width */

/* What is asked of a window, by where it starts. */
static const struct demand {
    double start;         /* part of the site's life that is skipped */
    uint32_t steps;       /* at least */
    double steadiness;    /* of eighths of the window, at least */
    double lean;          /* at least … */
    double lean_in_doubt; /* … and at least this when `deviations` are taken off */
    double deviations;
} demands[] = {
    {0.0, STEPS_MIN, 2.7, -0.15, -0.30, 2.0},
    /* Without its beginning a logarithm looks straighter: more is asked. */
    {0.125, 7, 3.8, -0.12, -0.25, 3.5},
    {0.25, 7, 3.8, -0.12, -0.25, 3.5},
    {0.5, 7, 3.8, -0.12, -0.25, 3.5},
};

/* Living bytes, cell by cell. */
struct series {
    uint32_t count;
    double run; /* the whole run's length in cells, of which the site lived the last `count` */
    double floors[HISTORY_CELLS]; /* the least in the cell */
    double kept[HISTORY_CELLS];   /* the least from there to the end */
};

/* A part of a series, from the last cell before its first step to the end, and what was measured there. */
struct window {
    const struct series *series;
    uint32_t from, end; /* cells [from, end) */
    uint32_t steps, first_step, last_step;
    double rise;   /* bytes kept at the end more than at `from` */
    double spread; /* of one step: squared deviation of height and of pause, as parts of the mean */
    double lean;
    double steadiness2; /* squared */
};

/* In a saw, what rose since the last fall may fall yet: it is left out, unless that is a long time. */
static void leave_out_last_tooth(struct series *series)
{
    uint32_t falls = 0, last = 0;
    double fallen = 0, highest = 0;
    for (uint32_t i = 1; i < series->count; i++) {
        double fall = series->floors[i - 1] - series->floors[i];
        highest = series->floors[i] > highest ? series->floors[i] : highest;
        if (fall > 0) {
            falls++;
            fallen += fall;
            last = i;
        }
    }
    if (falls >= FALLS_MIN && fallen >= highest && last + 1 >= (1 - TOOTH_MAX) * series->count)
        series->count = last + 1;
}

static bool read_series(const struct history *history, uint64_t live_bytes, uint64_t end_ns,
                        struct series *series, uint32_t *width_log2)
{
    struct history whole;
    if (end_ns <= history->origin_ns)
        return false;
    history_copy(&whole, history);
    history_note(&whole, end_ns, live_bytes, live_bytes);
    /* The last cell is not over, and an ending program gives things back. */
    series->count = (uint32_t)((end_ns - whole.origin_ns) >> whole.width_log2);
    series->run = (double)end_ns / (double)(UINT64_C(1) << whole.width_log2);
    *width_log2 = whole.width_log2;
    for (uint32_t i = 0; i < series->count; i++)
        series->floors[i] = (double)whole.floors[i];
    leave_out_last_tooth(series);
    for (uint32_t i = series->count; i-- > 0;) {
        bool lower = i + 1 == series->count || series->floors[i] < series->kept[i + 1];
        series->kept[i] = lower ? series->floors[i] : series->kept[i + 1];
    }
    return series->count >= CELLS_MIN;
}

/* From the last cell before the first step after `from`. */
static bool open_window(const struct series *series, uint32_t from, struct window *window)
{
    const double *kept = series->kept;
    while (from + 1 < series->count && kept[from + 1] <= kept[from])
        from++;
    *window = (struct window){.series = series, .from = from, .end = series->count, .first_step = from + 1};
    if (window->end - from < CELLS_MIN)
        return false;
    for (uint32_t i = from + 1; i < window->end; i++) {
        if (kept[i] > kept[i - 1]) {
            window->steps++;
            window->last_step = i;
        }
    }
    window->rise = kept[window->end - 1] - kept[from];
    return window->steps >= STEPS_MIN;
}

struct sums {
    double n, sum, squares;
};

static void add(struct sums *sums, double value)
{
    sums->n++;
    sums->sum += value;
    sums->squares += SQUARE(value);
}

/* Squared coefficient of variation. */
static double spread_of(const struct sums *sums)
{
    double mean = sums->sum / sums->n;
    return sums->squares / sums->n / SQUARE(mean) - 1;
}

/* Evenness and lean. A step stands for the time since the one before it; the first one only marks where that
 * begins, since what came before it is not known. */
static void measure_steps(struct window *window)
{
    const double *kept = window->series->kept;
    double tail = window->end - 1 - window->last_step;
    double pause = (double)(window->last_step - window->first_step) / (window->steps - 1);
    bool stopped = tail > 1.5 * pause; /* then the quiet end counts as a pause like the others */
    double begin = window->first_step, span = (stopped ? window->end - 1 : window->last_step) - begin;
    struct sums heights = {0}, pauses = {0};
    double moment = 0, weight = 0;
    uint32_t last = window->first_step;
    for (uint32_t i = last + 1; i < window->end; i++) {
        double height = kept[i] - kept[i - 1];
        if (height <= 0)
            continue;
        add(&heights, height);
        add(&pauses, i - last);
        moment += height * (2 * ((i + last) / 2.0 - begin) / span - 1);
        weight += height;
        last = i;
    }
    if (stopped)
        add(&pauses, tail);
    window->lean = moment / weight;
    window->spread = spread_of(&heights) + spread_of(&pauses) + BASE_SPREAD;
    window->steadiness2 = (window->steps - 1) / window->spread;
}

/* The steadiness, squared, of eighths of the window: slow waves, which single steps do not show. */
static double eighths_steadiness2(const struct window *window)
{
    struct sums slopes = {0};
    uint32_t begin = window->first_step, length = window->end - 1 - begin;
    for (uint32_t k = 0; k < PARTS; k++) {
        uint32_t a = begin + length * k / PARTS, b = begin + length * (k + 1) / PARTS;
        add(&slopes, (window->series->kept[b] - window->series->kept[a]) / (b - a));
    }
    double spread = spread_of(&slopes) * PARTS / (PARTS - 1);
    return PARTS / (spread > 0.001 ? spread : 0.001);
}

/* How the floors, not only what was kept, went through the window. */
struct noise {
    double fallen;   /* all that the floors ever fell, as a part of the rise */
    double sunk;     /* the same for their lowest points alone */
    uint32_t lowest; /* how many such points */
    /* Of a straight line through the floors: how many standard errors its slope is above 0, squared, and how
     * little one cell's distance from it tells of the next one's (Durbin and Watson's figure: 2 for unrelated
     * ones, near 0 for a walk that strays). */
    double slope2, unrelated;
};

static void measure_falls(const struct window *window, struct noise *noise)
{
    const double *floors = window->series->floors;
    double lowest = 0;
    for (uint32_t i = window->from; i < window->end; i++) {
        bool fell = i > window->from && floors[i] < floors[i - 1];
        if (fell)
            noise->fallen += (floors[i - 1] - floors[i]) / window->rise;
        if (i > window->from && !fell)
            continue;
        uint32_t next = i + 1;
        while (next < window->end && floors[next] == floors[i])
            next++;
        if (next < window->end && floors[next] < floors[i])
            continue;
        if (noise->lowest++ > 0 && floors[i] < lowest)
            noise->sunk += (lowest - floors[i]) / window->rise;
        lowest = floors[i];
    }
}

static void measure_line(const struct window *window, struct noise *noise)
{
    const double *floors = window->series->floors;
    double n = window->end - window->from, middle = (n - 1) / 2, mean = 0, xx = 0, xy = 0;
    for (uint32_t i = window->from; i < window->end; i++)
        mean += floors[i] / n;
    for (uint32_t i = window->from; i < window->end; i++) {
        xx += SQUARE(i - window->from - middle);
        xy += (i - window->from - middle) * (floors[i] - mean);
    }
    double slope = xy / xx, squares = 0, jumps = 0, before = 0;
    for (uint32_t i = window->from; i < window->end; i++) {
        double distance = floors[i] - mean - slope * (i - window->from - middle);
        squares += SQUARE(distance);
        jumps += i > window->from ? SQUARE(distance - before) : 0;
        before = distance;
    }
    if (slope <= 0 || squares <= 0)
        return;
    noise->slope2 = SQUARE(slope) * xx * (n - 2) / squares;
    noise->unrelated = jumps / squares;
}

static bool is_beyond_chance(const struct window *window, double eighths2)
{
    double least2 = window->steadiness2 < eighths2 ? window->steadiness2 : eighths2;
    struct noise noise = {0};
    measure_falls(window, &noise);
    if (noise.fallen <= 0.02 || least2 >= SQUARE(7))
        return true;
    if (noise.lowest < FALLS_MIN)
        return false;
    bool is_sawtooth = noise.fallen >= 0.5 && noise.sunk <= 0.02 && noise.lowest > FALLS_MIN;
    /* Few teeth make uneven eighths. */
    if (is_sawtooth && (window->steps < 2 * PARTS ? window->steadiness2 : least2) >= SQUARE(5))
        return true;
    measure_line(window, &noise);
    return noise.sunk <= 0.05 && noise.unrelated >= 0.6 &&
           noise.slope2 * SQUARE(noise.unrelated) >= SQUARE(30);
}

/* Kept bytes a cell between two cells. */
static double rate(const struct series *series, uint32_t from, uint32_t to)
{
    return from < to ? (series->kept[to] - series->kept[from]) / (to - from) : 0;
}

/* Whether what was left out really is another thing than what follows. `skipped` cells were. */
static bool is_apart(const struct window *window, uint32_t skipped, const struct demand *demand)
{
    const struct series *series = window->series;
    double after = rate(series, window->from, window->end - 1);
    if (demand->start == 0)
        return true;
    if (demand->start < 0.5) {
        /* A warm-up ended before, or is much faster; a rate that falls off and off is a logarithm's. */
        double before = rate(series, skipped / 2, skipped);
        return window->steadiness2 >= SQUARE(14) || before <= 2 * after || before >= 8 * after;
    }
    /* Growth that begins late is slower before. */
    return after >= 1.2 * rate(series, series->count / 4, window->from);
}

/* One long tooth of a saw: what rose before was given back. */
static bool is_last_tooth(const struct window *window)
{
    const struct series *series = window->series;
    double highest = 0;
    for (uint32_t i = 0; i < window->from; i++)
        highest = series->floors[i] > highest ? series->floors[i] : highest;
    return window->from > series->count / 4 && highest - series->floors[window->from] > 0.25 * window->rise;
}

static bool is_steady(const struct window *window, const struct demand *demand, double eighths2)
{
    double wanted = window->steps < STEPS_FEW ? FEW_STEADINESS : demand->steadiness;
    return eighths2 >= SQUARE(wanted);
}

/* The lean of steps at random has a standard deviation of 1/√(3 × steps), and less when they are even. */
static bool is_level_rate(const struct window *window, const struct demand *demand)
{
    double above = window->lean - demand->lean_in_doubt;
    return window->lean >= demand->lean && window->lean <= 0.5 && above > 0 &&
           SQUARE(above) * 3 * window->steadiness2 >= SQUARE(demand->deviations);
}

static bool judge_window(const struct series *series, const struct demand *demand, struct window *window)
{
    uint32_t skipped = (uint32_t)(demand->start * series->count);
    if (!open_window(series, skipped, window) || window->steps < demand->steps)
        return false;
    uint32_t length = window->end - 1 - window->from;
    if (length < RUN_MIN * series->run)
        return false;
    if (window->from - skipped >= LULL_MIN * series->count)
        demand = &demands[0];
    measure_steps(window);
    double eighths2 = eighths_steadiness2(window);
    return is_steady(window, demand, eighths2) && is_level_rate(window, demand) &&
           is_apart(window, skipped, demand) && !is_last_tooth(window) && is_beyond_chance(window, eighths2);
}

static int compare_doubles(const void *left, const void *right, const void *context)
{
    (void)context;
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Theil and Sen's slope, bytes a cell: the middle one of those between any two cells a third of the window or
 * more apart. A few odd steps do not move it. */
static double middle_slope(const struct window *window)
{
    enum { PAIRS = HISTORY_CELLS * HISTORY_CELLS / 4 };
    double *slopes = pages_alloc(PAIRS * sizeof *slopes), middle;
    size_t count = 0;
    uint32_t apart = (window->end - window->from) / 3;
    for (uint32_t a = window->from; a + apart < window->end; a++)
        for (uint32_t b = a + apart; slopes && b < window->end && count < PAIRS; b++)
            slopes[count++] = rate(window->series, a, b);
    if (count > 0 && sort_items(slopes, count, sizeof *slopes, compare_doubles, NULL))
        middle = (slopes[count / 2] + slopes[(count - 1) / 2]) / 2;
    else
        middle = rate(window->series, window->from, window->end - 1);
    pages_free(slopes, PAIRS * sizeof *slopes);
    return middle;
}

static double confidence_of(const struct window *window)
{
    double s2 = window->steadiness2, n = window->steps;
    return s2 / (s2 + 10) * n / (n + 1) * (window->lean < 0 ? 1 + window->lean : 1);
}

bool growth_judge(const struct history *history, uint64_t live_bytes, uint64_t end_ns, struct growth *growth)
{
    struct series series;
    struct window window;
    uint32_t width_log2;
    if (!read_series(history, live_bytes, end_ns, &series, &width_log2))
        return false;
    for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
        if (!judge_window(&series, &demands[i], &window))
            continue;
        *growth = (struct growth){
            .bytes_per_second = middle_slope(&window) * 1e9 / (double)(UINT64_C(1) << width_log2),
            .confidence = confidence_of(&window),
            .since_ns = history->origin_ns + ((uint64_t)window.from << width_log2),
            .until_ns = history->origin_ns + ((uint64_t)(window.end - 1) << width_log2),
            .risen_bytes = (uint64_t)window.rise,
            .rises = window.steps,
        };
        return true;
    }
    return false;
}

bool ledger_growth(const struct ledger *ledger, uint32_t id, uint64_t end_ns, struct growth *growth)
{
    const struct site_record *site = list_at(&ledger->sites, id);
    return site != NULL && site->history != NULL &&
           growth_judge(site->history, site->totals.live_bytes, end_ns, growth);
}

uint64_t growth_end(const struct ledger *ledger, uint64_t duration_ns)
{
    uint64_t last = 0;
    bool takes_turns = false;
    for (uint32_t i = 0; i < ledger->sites.count; i++) {
        const struct site_record *site = list_at(&ledger->sites, i);
        last = site->last_time_ns > last ? site->last_time_ns : last;
        if (site->totals.peak_bytes > 0 &&
            site->totals.allocated_bytes / site->totals.peak_bytes >= TURNS_MIN)
            takes_turns = true;
    }
    uint64_t quiet = duration_ns > last ? duration_ns - last : 0;
    return quiet <= duration_ns / 3 || (takes_turns && quiet <= EXIT_NS) ? last : duration_ns;
}
