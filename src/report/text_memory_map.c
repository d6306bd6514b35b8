/*
 * Who has the memory of each device, in the text report: why nvidia-smi shows more than the program
 * allocated, and more than torch.cuda counts. A line on the first screen where that is much, all of it in the
 * details.
 */
#include "report/text.h"

#define MATTERS_PART 20  /* of the device, used beyond what is tracked */
#define NAMED_PART   100 /* of what is used: less is not named on the first screen */

enum { LABEL = 2, BYTES = 20, WORDS = 32 };

/* A part of what is used. */
struct part {
    const char *label; /* in the details */
    const char *words; /* on the first screen, behind its bytes */
    bool known;
    uint64_t bytes;
    char remark[160];
};

enum {
    PART_TRACKED,
    PART_CONTEXTS,
    PART_CODE,
    PART_POOLS,
    PART_GRAPHS,
    PART_ROUNDING,
    PART_OTHERS,
    PART_REST
};
#define PARTS_MAX (PART_REST + 1)

static uint64_t used_of(const struct memory_sample *sample)
{
    return sample->total_bytes > sample->free_bytes ? sample->total_bytes - sample->free_bytes : 0;
}

static void remark(struct part *part, const struct words *words)
{
    size_t bytes = words->used < sizeof part->remark - 1 ? words->used : sizeof part->remark - 1;
    for (size_t i = 0; i < bytes; i++)
        part->remark[i] = words->text[i];
    part->remark[bytes] = '\0';
}

static void remark_held(struct part *part, const struct held *held, const char *singular)
{
    struct words words = {0};
    words_count(&words, held->count, singular);
    if (held->basis == BASIS_UNKNOWN)
        words_add(&words, "; what %s took could not be measured", held->count == 1 ? "it" : "they");
    else if (held->basis == BASIS_PART)
        words_add(&words, "; not all could be measured: at least this");
    else if (held->basis == BASIS_PROCESS)
        words_add(&words, ", measured in what NVML says of this process");
    else
        words_add(&words, ", measured in what is free on the device");
    remark(part, &words);
}

static void remark_frameworks(struct part *part, const struct report *report, int device)
{
    struct words words = {0};
    words_add(&words, "recorded here");
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        for (size_t k = 0; row->device == device && k < row->layout_count; k++) {
            words_add(&words, "; %s: ", report_allocator(report, row->layouts[k].allocator).name);
            words_size(&words, row->layouts[k].reserved_bytes);
            words_add(&words, " reserved, ");
            words_size(&words, row->layouts[k].allocated_bytes);
            words_add(&words, " allocated");
        }
    }
    remark(part, &words);
}

static void remark_rest(struct part *part, const struct report *report, const struct device_memory *row)
{
    struct words words = {0};
    uint64_t managed = 0;
    if (row->others_known)
        words_add(&words, "loaded when kernels run, libraries, the driver itself");
    else
        words_add(&words, "other processes, kernels loaded as they run, libraries, the driver");
    for (size_t i = 0; i < report->space_count; i++)
        if (report->spaces[i]->kind == SPACE_MANAGED)
            managed += report->spaces[i]->totals.live_bytes;
    if (managed && row->untracked_bytes) {
        words_add(&words, "; of ");
        words_size(&words, managed);
        words_add(&words, " managed memory, what lies there now");
    }
    remark(part, &words);
}

/* Of the last sample, whose moment is the end where the row is current. */
static void list_parts(const struct report *report, const struct device_memory *row,
                       struct part parts[PARTS_MAX])
{
    const struct device_figures *figures = row->figures;
    const struct memory_sample *sample = row->sample;
    bool now = row->is_current;
    uint64_t rest = now ? row->untracked_bytes : report_rest_of(sample);
    const struct part all[PARTS_MAX] = {
        [PART_TRACKED] = {"allocations", "tracked", true, sample->tracked_bytes, ""},
        [PART_CONTEXTS] = {"contexts", "CUDA contexts", row->context_known,
                           now ? row->context_bytes : sample->context_bytes, ""},
        [PART_CODE] = {"kernels", "kernels", row->code_known, now ? row->code_bytes : sample->code_bytes, ""},
        [PART_POOLS] = {"memory pools", "unused in pools", true,
                        now ? row->pool_unused_bytes : sample->pool_unused_bytes,
                        "reserved, and in no block"},
        [PART_GRAPHS] = {"graphs", "kept for graphs", true, now ? row->graph_bytes : sample->graph_bytes,
                         "reserved for the memory of graphs"},
        [PART_ROUNDING] = {"rounding", "rounding", now, row->rounding_bytes,
                           "to granules of 2 MiB, by small and odd sizes"},
        [PART_OTHERS] = {"other processes", "other processes", row->others_known, row->others_bytes,
                         "by NVML"},
        [PART_REST] = {"not known", "not known", true, rest, ""},
    };
    for (int i = 0; i < PARTS_MAX; i++)
        parts[i] = all[i];
    remark_frameworks(&parts[PART_TRACKED], report, figures->device);
    remark_held(&parts[PART_CONTEXTS], &figures->contexts, "context");
    remark_held(&parts[PART_CODE], &figures->code, "module");
    remark_rest(&parts[PART_REST], report, row);
}

/* ---- the first screen ---- */

static bool matters(const struct device_memory *row)
{
    uint64_t total = row->sample->total_bytes;
    return row->is_current && used_of(row->sample) - row->tracked_bytes > total / MATTERS_PART;
}

/* "Device 0: 4.8 GiB of 8.0 GiB used: 3.0 GiB tracked, 1.2 GiB other processes", the largest parts as far as
 * they fit. */
static void say_memory(struct words *words, const struct report *report, const struct device_memory *row,
                       int width)
{
    struct part parts[PARTS_MAX];
    bool named[PARTS_MAX] = {false};
    list_parts(report, row, parts);
    words_add(words, "Device %d: ", row->figures->device);
    words_size(words, used_of(row->sample));
    words_add(words, " of ");
    words_size(words, row->sample->total_bytes);
    words_add(words, " used");
    for (int count = 0; count < PARTS_MAX; count++) {
        int largest = -1;
        for (int i = 0; i < PARTS_MAX; i++)
            if (!named[i] && parts[i].known && parts[i].bytes > used_of(row->sample) / NAMED_PART &&
                (largest < 0 || parts[i].bytes > parts[largest].bytes))
                largest = i;
        if (largest < 0)
            break;
        named[largest] = true;
        struct words before = *words;
        words_add(words, "%s", count == 0 ? ": " : ", ");
        words_size(words, parts[largest].bytes);
        words_add(words, " %s", parts[largest].words);
        if (words_columns(words) > width) {
            *words = before;
            break;
        }
    }
}

void text_memory(struct text *text, const struct device_memory *row, int column)
{
    struct words words = {0};
    if (!matters(row))
        return;
    say_memory(&words, text->report, row, TEXT_WIDTH - column);
    text_wrap(text, "The driver", column, words.text);
}

int text_memory_lines(const struct report *report, const struct device_memory *row, int column)
{
    struct words words = {0};
    if (!matters(row))
        return 0;
    say_memory(&words, report, row, TEXT_WIDTH - column);
    return text_wrapped_lines(column, words.text);
}

/* ---- the details ---- */

static void say_part(struct text *text, const struct part *part)
{
    struct words words = {0}, remark = {0};
    words_column(&words, LABEL);
    words_add(&words, "%s", part->label);
    words_column(&words, BYTES);
    if (part->known)
        words_size(&words, part->bytes);
    else
        words_add(&words, "unknown");
    words_add(&remark, "%s", part->remark);
    if (remark.used == 0) {
        text_line(text, &words);
        return;
    }
    text_wrap(text, words.text, WORDS, part->remark);
}

static const char *when_of(const struct text *text, const struct device_memory *row, struct words *words)
{
    if (row->is_current)
        return text_when(text->report);
    words_add(words, "at ");
    words_time(words, row->sample->time_ns);
    words_add(words, ", when the driver was last asked");
    return words->text;
}

/* nvidia-smi counts all of a process; torch.cuda what its own allocator took from the driver. */
static void say_why(struct text *text, const struct device_memory *row, const struct part *parts)
{
    struct words words = {0};
    bool has_framework = false;
    uint64_t own = 0;
    for (int i = 0; i < PART_OTHERS; i++)
        own += parts[i].known ? parts[i].bytes : 0;
    for (size_t i = 0; i < text->report->fragmentation_count; i++)
        has_framework |= text->report->fragmentation[i].device == row->figures->device &&
                         text->report->fragmentation[i].layout_count > 0;
    words_add(&words, "nvidia-smi shows ");
    if (row->figures->own_bytes) {
        words_size(&words, row->figures->own_bytes);
        words_add(&words, " for this process");
    } else {
        words_add(&words, row->context_known ? "about " : "at least ");
        words_size(&words, own);
        words_add(&words, " for this process");
    }
    words_add(&words, ", and ");
    words_size(&words, used_of(row->sample));
    words_add(&words, " in use on the device, by all processes and the driver.");
    if (has_framework)
        words_add(&words, " torch.cuda.memory_reserved() counts PyTorch's segments alone, and "
                          "memory_allocated() the tensors in them: contexts, kernels and what libraries "
                          "allocate are in neither.");
    text_wrap(text, "", LABEL, words.text);
}

static void say_start(struct text *text, const struct device_memory *row)
{
    const struct memory_sample *start = &row->figures->last[SAMPLE_START];
    struct words words = {0};
    if (start->total_bytes == 0 || used_of(start) == 0)
        return;
    words_add(&words, "Before this program had anything there, ");
    words_size(&words, used_of(start));
    words_add(&words, " were in use.");
    text_wrap(text, "", LABEL, words.text);
}

/* At its fullest as far as the driver was asked then. */
static void say_peak(struct text *text, const struct device_memory *row)
{
    const struct memory_sample *peak = &row->figures->fullest;
    struct words words = {0};
    if (peak->total_bytes == 0 || peak->tracked_bytes <= row->sample->tracked_bytes)
        return;
    words_add(&words, "Near its peak, at ");
    words_time(&words, peak->time_ns);
    words_add(&words, ", ");
    words_size(&words, used_of(peak));
    words_add(&words, " were in use: ");
    words_size(&words, peak->tracked_bytes);
    words_add(&words, " of allocations, and ");
    words_size(&words, used_of(peak) > peak->tracked_bytes ? used_of(peak) - peak->tracked_bytes : 0);
    words_add(&words, " more.");
    text_wrap(text, "", LABEL, words.text);
}

static void say_device(struct text *text, const struct device_memory *row)
{
    struct words words = {0}, when = {0};
    struct part parts[PARTS_MAX];
    list_parts(text->report, row, parts);
    text_line(text, &words);
    words_add(&words, "Who has the memory of device %d %s", row->figures->device, when_of(text, row, &when));
    text_line(text, &words);
    say_part(text, &(struct part){"total", "", true, row->sample->total_bytes, "as the driver says"});
    say_part(text, &(struct part){"free", "", true, row->sample->free_bytes, ""});
    for (int i = 0; i < PARTS_MAX; i++)
        if (parts[i].bytes || i == PART_TRACKED ||
            (!parts[i].known && i == PART_CONTEXTS && row->figures->contexts.count))
            say_part(text, &parts[i]);
    if (row->was_cut)
        text_wrap(text, "", LABEL,
                  "What was measured came to more than was in use, since others took and gave back memory "
                  "meanwhile: the parts are cut to fit.");
    say_why(text, row, parts);
    say_start(text, row);
    say_peak(text, row);
}

void text_memory_map(struct text *text)
{
    for (size_t i = 0; i < text->report->memory_count; i++) {
        const struct memory_sample *sample = text->report->memory[i].sample;
        if (sample->total_bytes && sample->reason != SAMPLE_START)
            say_device(text, &text->report->memory[i]);
    }
}
