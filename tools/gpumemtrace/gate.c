/* Reading and deciding one condition; see gate.h. */
#include "gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "diff_words.h"
#include "report/words.h"

static const char *const metric_names[GATE_METRIC_COUNT] = {"peak", "leak", "growth"};

#define FORM "a condition is [WHERE:]peak, leak or growth, then > and a limit, as in peak>+5%% or leak>0"

static bool is_word(const char *start, size_t bytes, const char *word)
{
    return strlen(word) == bytes && memcmp(start, word, bytes) == 0;
}

static bool read_metric(struct gate *gate, const char *start, size_t bytes)
{
    for (int i = 0; i < GATE_METRIC_COUNT; i++) {
        if (is_word(start, bytes, metric_names[i])) {
            gate->metric = (enum gate_metric)i;
            return true;
        }
    }
    return false;
}

/* "device", "device:1", "site:train.py:80" */
static bool read_where(struct gate *gate, const char *start, size_t bytes)
{
    static const char site[] = "site:";
    if (bytes > strlen(site) && memcmp(start, site, strlen(site)) == 0) {
        gate->site = start + strlen(site);
        gate->site_bytes = bytes - strlen(site);
        return true;
    }
    const char *colon = memchr(start, ':', bytes);
    size_t name_bytes = colon ? (size_t)(colon - start) : bytes;
    for (int kind = 0; kind < SPACE_COUNT && !gate->space; kind++)
        if (is_word(start, name_bytes, space_infos[kind].name))
            gate->space = space_infos[kind].name;
    if (!colon || !gate->space)
        return gate->space != NULL;
    char *end;
    unsigned long device = strtoul(colon + 1, &end, 10);
    gate->device = (int)device;
    return colon[1] >= '0' && colon[1] <= '9' && end == start + bytes && device < INT16_MAX;
}

static bool read_limit(struct gate *gate, const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    gate->relative = text[0] == '+';
    text += gate->relative;
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
        return false; /* strtod() takes signs, spaces, "inf" */
    gate->amount = strtod(text, &end);
    gate->percent = *end == '%';
    if (gate->percent)
        return gate->relative && end[1] == 0 && isfinite(gate->amount);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        gate->amount *= (double)(UINT64_C(1) << 10 * (unit - units + 1));
        end += 1 + (end[1] == 'i' ? 1 : 0);
    }
    end += *end == 'B';
    return *end == 0 && isfinite(gate->amount);
}

int gate_read(struct gate *gate, const char *text, char *error, size_t error_bytes)
{
    *gate = (struct gate){.text = text, .device = -1};
    const char *above = strrchr(text, '>');
    const char *metric = text;
    for (const char *at = text; above && at < above; at++)
        if (*at == ':')
            metric = at + 1;
    if (!above || !read_metric(gate, metric, (size_t)(above - metric)))
        snprintf(error, error_bytes, "'%s' is no condition: " FORM, text);
    else if (metric > text && !read_where(gate, text, (size_t)(metric - 1 - text)))
        snprintf(error, error_bytes,
                 "'%s': before %s stands a space of memory (device, device:0, pinned, …) or site:PATTERN",
                 text, metric_names[gate->metric]);
    else if (!read_limit(gate, above + 1))
        snprintf(error, error_bytes, "'%s': a limit is a size as 8G or 0, or an increase as +64M or +5%%",
                 text);
    else
        return 0;
    return -1;
}

/* Pattern anywhere in the text; '*' stands for any characters. */
static bool is_in(const char *pattern, size_t bytes, const char *text)
{
    const char *star = memchr(pattern, '*', bytes);
    size_t head = star ? (size_t)(star - pattern) : bytes;
    const char *found = memmem(text, strlen(text), pattern, head);
    return found && (!star || is_in(star + 1, bytes - head - 1, found + head));
}

static bool is_meant(const struct gate *gate, const struct compared *row)
{
    if (gate->space &&
        (strcmp(gate->space, row->space) != 0 || (gate->device >= 0 && gate->device != row->device)))
        return false;
    if (!gate->site)
        return true;
    return row->site && row->site->title && is_in(gate->site, gate->site_bytes, row->site->title);
}

static uint64_t figure(const struct gate *gate, const struct saved_figures *figures)
{
    return gate->metric == GATE_PEAK   ? figures->peak_bytes
           : gate->metric == GATE_LEAK ? figures->leaked_bytes
                                       : figures->growth_per_second;
}

/* What one condition is decided on: one space, or a sum of places. */
struct measured {
    const struct compared *space; /* NULL: a sum */
    const char *layer;            /* of the places in the sum */
    uint64_t after, low, high;
    size_t rows, runs;
};

/* Which runs before a condition is held against. What they spread over for being of different length is no
 * tolerance: where they are, only those as long as the run after count, or the highest where there is none.
 */
struct baselines {
    bool counts[BASELINES_MAX];
    size_t left_out;
    bool no_spread;
};

#define LENGTH_TOLERANCE 0.01

static struct baselines find_baselines(const struct gate *gate, const struct comparison *comparison)
{
    struct baselines baselines = {0};
    bool differ = false;
    size_t as_long = 0, count = comparison->before_count;
    for (size_t run = 0; run < count; run++) {
        double ratio = comparison->lengths[run].ratio, first = comparison->lengths[0].ratio;
        differ |= fabs(ratio - first) > LENGTH_TOLERANCE * first;
        baselines.counts[run] = fabs(ratio - 1) <= LENGTH_TOLERANCE;
        as_long += baselines.counts[run];
    }
    if (differ && as_long > 0 && gate->metric != GATE_GROWTH) {
        baselines.left_out = count - as_long;
        return baselines;
    }
    memset(baselines.counts, true, count);
    baselines.no_spread = differ && gate->metric != GATE_GROWTH;
    return baselines;
}

static uint64_t whole_bytes(double bytes)
{
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

/* Stops at the largest number, which nothing is over. */
static uint64_t sum(uint64_t left, uint64_t right)
{
    return left <= UINT64_MAX - right ? left + right : UINT64_MAX;
}

static uint64_t allowed(const struct gate *gate, const struct measured *measured)
{
    if (!gate->relative)
        return whole_bytes(gate->amount);
    double more = gate->percent ? (double)measured->high * gate->amount / 100 : gate->amount;
    return sum(sum(measured->high, measured->high - measured->low), whole_bytes(more));
}

static bool is_over(const struct gate *gate, const struct measured *measured)
{
    return measured->after > allowed(gate, measured);
}

static void take_before(struct measured *measured, const struct baselines *baselines, size_t run,
                        uint64_t value)
{
    if (!baselines->counts[run])
        return;
    if (measured->runs == 0 || value > measured->high)
        measured->high = value;
    if (measured->runs == 0 || value < measured->low)
        measured->low = value;
    if (baselines->no_spread)
        measured->low = measured->high;
    measured->runs++;
}

/* Framework blocks lie inside the driver's: where places are summed, they would count twice, so that only one
 * layer is. */
static bool counts(const struct gate *gate, const struct compared *row, const char *layer)
{
    return strcmp(row->layer, layer) == 0 && is_meant(gate, row);
}

static struct measured sum_places(const struct gate *gate, const struct comparison *comparison,
                                  const struct baselines *baselines, const char *layer)
{
    struct measured measured = {.layer = layer};
    for (size_t run = 0; run < comparison->before_count; run++) {
        uint64_t before = 0;
        for (size_t i = 0; i < comparison->place_count; i++)
            if (counts(gate, &comparison->places[i], layer))
                before = sum(before, figure(gate, &comparison->places[i].each[run]));
        take_before(&measured, baselines, run, before);
    }
    for (size_t i = 0; i < comparison->place_count; i++) {
        if (!counts(gate, &comparison->places[i], layer))
            continue;
        measured.after = sum(measured.after, figure(gate, &comparison->places[i].after));
        measured.rows++;
    }
    return measured;
}

/* How far it is over its limit: below 0 where it is not. */
static double excess(const struct gate *gate, const struct measured *measured)
{
    return (double)measured->after - (double)allowed(gate, measured);
}

/* Of a site both layers are asked, since it may have memory of the driver's and of a framework's: the one
 * further over its limit decides. */
static struct measured worse_layer(const struct gate *gate, const struct comparison *comparison,
                                   const struct baselines *baselines)
{
    struct measured driver = sum_places(gate, comparison, baselines, layer_names[LAYER_DRIVER]);
    struct measured framework = sum_places(gate, comparison, baselines, layer_names[LAYER_FRAMEWORK]);
    if (framework.rows == 0)
        return driver;
    if (driver.rows == 0)
        return framework;
    return excess(gate, &framework) > excess(gate, &driver) ? framework : driver;
}

/* The space that is furthest over its limit, or nearest to it. */
static struct measured worst_space(const struct gate *gate, const struct comparison *comparison,
                                   const struct baselines *baselines)
{
    struct measured worst = {0};
    double worst_by = 0;
    for (size_t i = 0; i < comparison->space_count; i++) {
        const struct compared *row = &comparison->spaces[i];
        if (!is_meant(gate, row))
            continue;
        struct measured measured = {.space = row, .after = row->after.peak_bytes, .rows = 1};
        for (size_t run = 0; run < comparison->before_count; run++)
            take_before(&measured, baselines, run, row->each[run].peak_bytes);
        double by = excess(gate, &measured);
        if (!worst.space || by > worst_by) {
            worst = measured;
            worst_by = by;
        }
    }
    return worst;
}

/* The place that has most to do with it: that rose most, or holds most. */
static const struct compared *culprit(const struct gate *gate, const struct comparison *comparison,
                                      const struct measured *measured, uint64_t *share)
{
    const struct compared *found = NULL;
    *share = 0;
    for (size_t i = 0; i < comparison->place_count; i++) {
        const struct compared *row = &comparison->places[i];
        uint64_t before = gate->relative ? figure(gate, &row->before) : 0, after = figure(gate, &row->after);
        if (!is_meant(gate, row) || (gate->site && strcmp(row->layer, measured->layer) != 0))
            continue;
        if (measured->space &&
            (strcmp(row->space, measured->space->space) != 0 || row->device != measured->space->device))
            continue;
        if (after > before && after - before > *share) {
            *share = after - before;
            found = row;
        }
    }
    return found;
}

static void add_size(struct words *words, const struct gate *gate, uint64_t bytes)
{
    words_size(words, bytes);
    if (gate->metric == GATE_GROWTH)
        words_add(words, "/s");
}

static void add_subject(struct words *words, const struct gate *gate, const struct measured *measured)
{
    if (measured->space) {
        diff_add_space(words, measured->space->space, measured->space->device);
        words_add(words, ": ");
    }
    if (gate->relative) {
        add_size(words, gate, measured->high);
        words_add(words, " → ");
    }
    add_size(words, gate, measured->after);
    if (gate->relative && measured->high > 0 && measured->after > measured->high) {
        words_add(words, " (+");
        words_share(words, measured->after - measured->high, measured->high);
        words_add(words, ")");
    }
    if (gate->relative && measured->high > measured->low) {
        words_add(words, ", the runs before spread over ");
        add_size(words, gate, measured->high - measured->low);
    }
}

static void add_baselines(struct words *words, const struct baselines *baselines)
{
    if (baselines->left_out > 0) {
        words_add(words, ", without ");
        words_count(words, baselines->left_out, "run");
        words_add(words, " before of another length");
    } else if (baselines->no_spread) {
        words_add(words, ", the runs before are of different length: their spread is not tolerated");
    }
}

void gate_check(const struct gate *gate, const struct comparison *comparison, struct gate_result *result)
{
    struct words words = {0};
    struct measured measured;
    const struct baselines baselines = find_baselines(gate, comparison);
    if (gate->site)
        measured = worse_layer(gate, comparison, &baselines);
    else if (gate->metric == GATE_PEAK)
        measured = worst_space(gate, comparison, &baselines);
    else
        measured = sum_places(gate, comparison, &baselines, layer_names[LAYER_DRIVER]);
    result->failed = is_over(gate, &measured);
    if (measured.rows == 0)
        words_add(&words, "nothing of that in either run");
    else
        add_subject(&words, gate, &measured);
    if (gate->relative && measured.rows > 0)
        add_baselines(&words, &baselines);
    uint64_t share;
    const struct compared *place = result->failed ? culprit(gate, comparison, &measured, &share) : NULL;
    if (place) {
        words_add(&words, "; most at %s: %s", place->site->title ? place->site->title : place->site->api,
                  gate->relative ? "+" : "");
        add_size(&words, gate, share);
    }
    words_cut(&words, sizeof(result->why));
    strcpy(result->why, words.text);
}
