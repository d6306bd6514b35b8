/* Below the first screen: each site with its figures and its stack. */
#include "base/sort.h"
#include "report/text.h"

enum { SITES_SHOWN = 20, LABEL = 2, VALUE = 20 };

static uint64_t weight(const struct report_site *site)
{
    uint64_t live = site->owned ? site->figures.totals.live_bytes : 0;
    return live > site->figures.bytes_at_peak ? live : site->figures.bytes_at_peak;
}

static int compare_sites(const void *left, const void *right, const void *context)
{
    const struct report *report = context;
    uint32_t i = *(const uint32_t *)left, k = *(const uint32_t *)right;
    const struct report_site *a = &report->sites[i], *b = &report->sites[k];
    uint64_t of_a[] = {a->figures.totals.live_bytes, weight(a), a->figures.totals.allocated_bytes};
    uint64_t of_b[] = {b->figures.totals.live_bytes, weight(b), b->figures.totals.allocated_bytes};
    for (size_t n = 0; n < sizeof of_a / sizeof of_a[0]; n++)
        if (of_a[n] != of_b[n])
            return of_a[n] > of_b[n] ? -1 : 1;
    return (i > k) - (i < k);
}

static void say_live(struct text *text, const struct report_site *site)
{
    const struct totals *totals = &site->figures.totals;
    struct words words = {0};
    words_add(&words, "%*sstill allocated", LABEL, "");
    words_column(&words, VALUE);
    if (totals->live_blocks == 0) {
        words_add(&words, "nothing");
    } else {
        words_size(&words, totals->live_bytes);
        words_add(&words, " in ");
        words_blocks(&words, totals->live_blocks, totals->live_bytes, &site->living);
        words_add(&words, totals->live_blocks == 1 ? ", since " : ", allocated from ");
        words_time(&words, site->living.oldest_ns);
        if (totals->live_blocks > 1) {
            words_add(&words, " to ");
            words_time(&words, site->living.newest_ns);
        }
    }
    text_line(text, &words);
}

static void say_history(struct text *text, const struct report_site *site)
{
    const struct totals *totals = &site->figures.totals;
    struct words words = {0};
    words_add(&words, "%*sat the peak", LABEL, "");
    words_column(&words, VALUE);
    words_size(&words, site->figures.bytes_at_peak);
    words_add(&words, " in ");
    words_count(&words, site->figures.blocks_at_peak, "block");
    words_add(&words, "; its own highest ");
    words_size(&words, totals->peak_bytes);
    words_add(&words, " at ");
    words_time(&words, totals->peak_time_ns);
    text_line(text, &words);

    words_add(&words, "%*sover the run", LABEL, "");
    words_column(&words, VALUE);
    words_count(&words, totals->allocs, "allocation");
    words_add(&words, " of ");
    words_size(&words, totals->allocated_bytes);
    words_add(&words, " in all, %llu freed", (unsigned long long)totals->frees);
    if (totals->teardown_frees)
        words_add(&words, ", %llu ended with their context", (unsigned long long)totals->teardown_frees);
    if (site->figures.failed)
        words_add(&words, ", %llu failed", (unsigned long long)site->figures.failed);
    text_line(text, &words);
}

static void say_site(struct text *text, uint32_t index)
{
    const struct report_site *site = &text->report->sites[index];
    struct words words = {0};
    text_line(text, &words);
    words_add(&words, "Site %u: ", index);
    text_title(text, &words, index);
    text_line(text, &words);
    words_add(&words, "%*sasked for by", LABEL, "");
    words_column(&words, VALUE);
    words_add(&words, "%s (%s), ", site->api ? site->api : "?", family_infos[site->key->family].name);
    words_space(&words, site->key->space, site->key->device);
    if (site->layer != LAYER_DRIVER)
        words_add(&words, ", inside the framework's own blocks");
    if (!site->owned)
        words_add(&words, ", owned elsewhere and in no total");
    text_line(text, &words);
    say_live(text, site);
    say_history(text, site);
    words_add(&words, site->stack ? "%*smost recent call last" : "%*sno stack was recorded", LABEL, "");
    text_line(text, &words);
    text_stack(text, site);
}

void text_sites(struct text *text)
{
    const struct report *report = text->report;
    size_t bytes = (report->site_count + 1) * sizeof(uint32_t), count = 0;
    uint32_t *order = pages_alloc(bytes);
    struct words words = {0};
    if (!order)
        return;
    for (uint32_t i = 0; i < report->site_count; i++)
        if (report->sites[i].figures.totals.allocated_bytes)
            order[count++] = i;
    sort_items(order, count, sizeof *order, compare_sites, report);
    size_t shown = text->options.full || count < SITES_SHOWN ? count : SITES_SHOWN;
    text_line(text, &words);
    if (shown < count)
        words_add(&words, "The first %llu of %llu sites in detail", (unsigned long long)shown,
                  (unsigned long long)count);
    else if (count)
        words_add(&words, "Every site in detail");
    if (count)
        text_line(text, &words);
    for (size_t i = 0; i < shown && !text->out->error; i++)
        say_site(text, order[i]);
    pages_free(order, bytes);
}
