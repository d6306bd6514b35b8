/* Books as the recorder keeps them (books.h), and the comparison of two of them. */
#include "books.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

void trace_books_open(struct trace_books *books, struct trace_writer *writer)
{
    memset(books, 0, sizeof *books);
    books->catalog = catalog_create(&books->arena);
    assert_non_null(books->catalog);
    books->ledger = ledger_create(&books->arena, books->catalog);
    assert_non_null(books->ledger);
    books->writer = writer;
}

void trace_books_close(struct trace_books *books)
{
    ledger_destroy(books->ledger);
    catalog_destroy(books->catalog);
    arena_release(&books->arena);
}

uint32_t trace_books_string(struct trace_books *books, const char *text, size_t bytes)
{
    bool is_new;
    uint32_t id = catalog_add_string(books->catalog, text, bytes, &is_new);
    if (is_new && books->writer != NULL)
        trace_put_string(books->writer, text, bytes);
    return id;
}

uint32_t trace_books_text(struct trace_books *books, const char *text)
{
    return trace_books_string(books, text, strlen(text));
}

uint32_t trace_books_module(struct trace_books *books, const struct module *module)
{
    bool is_new;
    uint32_t path = trace_books_text(books, module->path);
    uint32_t id = catalog_add_module(books->catalog, module, &is_new);
    if (is_new && books->writer != NULL)
        trace_put_module(books->writer, module, path);
    return id;
}

uint32_t trace_books_frame(struct trace_books *books, const struct frame *frame)
{
    bool is_new;
    uint32_t id = catalog_add_frame(books->catalog, frame, &is_new);
    if (is_new && books->writer != NULL)
        trace_put_frame(books->writer, frame);
    return id;
}

uint32_t trace_books_stack(struct trace_books *books, const uint32_t *frames, uint32_t count)
{
    bool is_new;
    uint32_t id = catalog_add_stack(books->catalog, frames, count, &is_new);
    if (is_new && books->writer != NULL)
        trace_put_stack(books->writer, frames, count);
    return id;
}

uint32_t trace_books_site_of(struct trace_books *books, const struct site_key *key)
{
    bool is_new;
    uint32_t id = catalog_add_site(books->catalog, key, &is_new);
    if (is_new && books->writer != NULL)
        trace_put_site(books->writer, key);
    return id;
}

uint32_t trace_books_site(struct trace_books *books, uint32_t number, enum family family,
                          enum space_kind space, int device)
{
    struct frame frame = {.kind = FRAME_PYTHON,
                          .function = trace_books_text(books, "train"),
                          .file = trace_books_text(books, "train.py"),
                          .line = (int32_t)number + 1};
    uint32_t id = trace_books_frame(books, &frame);
    struct site_key key = {.stack = trace_books_stack(books, &id, 1),
                           .api = trace_books_text(books, "cuMemAlloc"),
                           .family = (uint8_t)family,
                           .space = (uint8_t)space,
                           .device = (int16_t)device};
    return trace_books_site_of(books, &key);
}

bool trace_books_apply(struct trace_books *books, const struct event *event, struct block *ended)
{
    bool applied = ledger_apply(books->ledger, event, ended);
    if (applied && books->writer != NULL)
        trace_put_event(books->writer, event);
    return applied;
}

static void assert_modules_equal(const struct module *left, const struct module *right)
{
    assert_string_equal(left->path, right->path);
    assert_int_equal(left->bias, right->bias);
    assert_int_equal(left->start, right->start);
    assert_int_equal(left->end, right->end);
    assert_int_equal(left->file_size, right->file_size);
    assert_int_equal(left->file_mtime_ns, right->file_mtime_ns);
    assert_int_equal(left->build_id_bytes, right->build_id_bytes);
    assert_memory_equal(left->build_id, right->build_id, left->build_id_bytes);
}

static void assert_frames_equal(const struct frame *left, const struct frame *right)
{
    assert_int_equal(left->kind, right->kind);
    assert_int_equal(left->module, right->module);
    assert_int_equal(left->offset, right->offset);
    assert_int_equal(left->function, right->function);
    assert_int_equal(left->file, right->file);
    assert_int_equal(left->line, right->line);
}

void assert_catalogs_equal(const struct catalog *left, const struct catalog *right)
{
    assert_int_equal(catalog_string_count(left), catalog_string_count(right));
    assert_int_equal(catalog_module_count(left), catalog_module_count(right));
    assert_int_equal(catalog_frame_count(left), catalog_frame_count(right));
    assert_int_equal(catalog_stack_count(left), catalog_stack_count(right));
    assert_int_equal(catalog_site_count(left), catalog_site_count(right));
    for (uint32_t i = 0; i < catalog_string_count(left); i++)
        assert_string_equal(catalog_string(left, i), catalog_string(right, i));
    for (uint32_t i = 0; i < catalog_module_count(left); i++)
        assert_modules_equal(catalog_module(left, i), catalog_module(right, i));
    for (uint32_t i = 0; i < catalog_frame_count(left); i++)
        assert_frames_equal(catalog_frame(left, i), catalog_frame(right, i));
    for (uint32_t i = 0; i < catalog_stack_count(left); i++) {
        const struct stack *one = catalog_stack(left, i), *other = catalog_stack(right, i);
        assert_int_equal(one->count, other->count);
        if (one->count > 0)
            assert_memory_equal(one->frames, other->frames, one->count * sizeof *one->frames);
    }
    for (uint32_t i = 0; i < catalog_site_count(left); i++)
        assert_memory_equal(catalog_site(left, i), catalog_site(right, i), sizeof(struct site_key));
}

struct block_list {
    const struct block *blocks[65536];
    size_t count;
};

static bool collect(const struct block *block, void *arg)
{
    struct block_list *list = arg;
    assert_true(list->count < COUNT_OF(list->blocks));
    list->blocks[list->count++] = block;
    return true;
}

static void assert_blocks_equal(const struct ledger *left, const struct ledger *right)
{
    static struct block_list lists[2];
    lists[0].count = lists[1].count = 0;
    ledger_each_block(left, collect, &lists[0]);
    ledger_each_block(right, collect, &lists[1]);
    assert_int_equal(lists[0].count, lists[1].count);
    for (size_t i = 0; i < lists[0].count; i++) {
        const struct block *one = lists[0].blocks[i], *other = lists[1].blocks[i];
        assert_int_equal(one->key, other->key);
        assert_int_equal(one->size, other->size);
        assert_int_equal(one->born_ns, other->born_ns);
        assert_int_equal(one->site, other->site);
        assert_int_equal(one->context, other->context);
        assert_int_equal(one->references, other->references);
    }
}

static void assert_ooms_equal(const struct oom *left, const struct oom *right)
{
    assert_int_equal(left->time_ns, right->time_ns);
    assert_int_equal(left->site, right->site);
    assert_int_equal(left->error, right->error);
    assert_int_equal(left->requested_bytes, right->requested_bytes);
    assert_int_equal(left->free_bytes, right->free_bytes);
    assert_int_equal(left->total_bytes, right->total_bytes);
    assert_int_equal(left->live_bytes, right->live_bytes);
    assert_int_equal(left->share_count, right->share_count);
    for (uint32_t i = 0; i < left->share_count; i++) {
        assert_int_equal(left->shares[i].site, right->shares[i].site);
        assert_int_equal(left->shares[i].bytes, right->shares[i].bytes);
        assert_int_equal(left->shares[i].blocks, right->shares[i].blocks);
    }
}

/* Structs of 64-bit numbers alone have no padding, so their bytes can be compared. */
_Static_assert(sizeof(struct ledger_counters) == 8 * sizeof(uint64_t), "no padding");
_Static_assert(sizeof(struct totals) == 8 * sizeof(uint64_t), "no padding");
_Static_assert(sizeof(struct site_totals) == 15 * sizeof(uint64_t), "no padding");

static void assert_layouts_equal(const struct layout *left, const struct layout *right, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct layout *one = &left[i], *other = &right[i];
        assert_memory_equal(one, other, offsetof(struct layout, segments));
        assert_memory_equal(one->segments, other->segments, one->listed_count * sizeof *one->segments);
        assert_int_equal(one->pinner_count, other->pinner_count);
        assert_memory_equal(one->pinners, other->pinners, one->pinner_count * sizeof *one->pinners);
    }
}

static void assert_moments_equal(const struct ledger *left, const struct ledger *right, int device,
                                 enum layout_moment moment)
{
    static const struct layout_limits limits = {.segments = 100, .pinners = 100};
    struct arena arena = {0};
    const struct layout *one, *other;
    size_t count, other_count;
    assert_true(ledger_layouts(left, device, moment, &limits, &arena, &one, &count));
    assert_true(ledger_layouts(right, device, moment, &limits, &arena, &other, &other_count));
    assert_int_equal(count, other_count);
    assert_layouts_equal(one, other, count);
    arena_release(&arena);
}

static void assert_phases_equal(const struct ledger *left, const struct ledger *right)
{
    assert_int_equal(ledger_phase_count(left), ledger_phase_count(right));
    for (size_t i = 0; i < ledger_phase_count(left); i++) {
        struct program_phase one = ledger_phase(left, i), other = ledger_phase(right, i);
        assert_int_equal(one.name, other.name);
        assert_int_equal(one.parent, other.parent);
        assert_int_equal(one.ranges, other.ranges);
        assert_int_equal(one.open, other.open);
        assert_int_equal(one.periods, other.periods);
        assert_int_equal(one.first_ns, other.first_ns);
        assert_int_equal(one.time_ns, other.time_ns);
        assert_memory_equal(one.layers, other.layers, sizeof one.layers);
    }
    assert_int_equal(ledger_phase_site_count(left), ledger_phase_site_count(right));
    for (size_t i = 0; i < ledger_phase_site_count(left); i++) {
        struct phase_site one = ledger_phase_site(left, i), other = ledger_phase_site(right, i);
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_int_equal(ledger_steps(left), ledger_steps(right));
}

/* Samples of reasons that there was none of are all zero, but for the device of the first three. */
static void assert_samples_equal(const struct memory_sample *left, const struct memory_sample *right)
{
    if (left->total_bytes != 0 || right->total_bytes != 0)
        assert_memory_equal(left, right, sizeof *left);
}

static void assert_held_equal(const struct held *left, const struct held *right)
{
    assert_int_equal(left->count, right->count);
    assert_int_equal(left->bytes, right->bytes);
    assert_int_equal(left->basis, right->basis);
}

void assert_figures_equal(const struct device_figures *left, const struct device_figures *right)
{
    assert_int_equal(left->device, right->device);
    assert_held_equal(&left->contexts, &right->contexts);
    assert_held_equal(&left->code, &right->code);
    assert_int_equal(left->processes_ns, right->processes_ns);
    assert_int_equal(left->own_bytes, right->own_bytes);
    assert_int_equal(left->all_bytes, right->all_bytes);
    assert_samples_equal(&left->first, &right->first);
    assert_samples_equal(&left->latest, &right->latest);
    assert_samples_equal(&left->fullest, &right->fullest);
    for (int reason = 0; reason < SAMPLE_REASON_COUNT; reason++)
        assert_samples_equal(&left->last[reason], &right->last[reason]);
}

void assert_ledgers_equal(const struct catalog *catalog, const struct ledger *left,
                          const struct ledger *right)
{
    assert_memory_equal(ledger_counters(left), ledger_counters(right), sizeof(struct ledger_counters));
    for (uint32_t i = 0; i < catalog_site_count(catalog); i++) {
        struct site_totals one = ledger_site(left, i), other = ledger_site(right, i);
        assert_memory_equal(&one, &other, sizeof one);
    }
    assert_int_equal(ledger_space_count(left), ledger_space_count(right));
    for (size_t i = 0; i < ledger_space_count(left); i++) {
        const struct ledger_space *one = ledger_space(left, i), *other = ledger_space(right, i);
        assert_int_equal(one->layer, other->layer);
        assert_int_equal(one->kind, other->kind);
        assert_int_equal(one->device, other->device);
        assert_memory_equal(&one->totals, &other->totals, sizeof one->totals);
    }
    assert_int_equal(ledger_oom_count(left), ledger_oom_count(right));
    for (size_t i = 0; i < ledger_oom_count(left); i++)
        assert_ooms_equal(ledger_oom(left, i), ledger_oom(right, i));
    assert_phases_equal(left, right);
    assert_int_equal(ledger_memory_count(left), ledger_memory_count(right));
    for (size_t i = 0; i < ledger_memory_count(left); i++) {
        assert_memory_equal(ledger_memory(left, i), ledger_memory(right, i), sizeof(struct memory_sample));
        assert_figures_equal(ledger_device(left, i), ledger_device(right, i));
    }
    assert_int_equal(ledger_pool_count(left), ledger_pool_count(right));
    for (size_t i = 0; i < ledger_pool_count(left); i++) {
        const struct pool_sample *one = ledger_pool(left, i), *other = ledger_pool(right, i);
        assert_int_equal(one->device, other->device);
        assert_int_equal(one->handle, other->handle);
        assert_memory_equal(&one->time_ns, &other->time_ns,
                            sizeof *one - offsetof(struct pool_sample, time_ns));
    }
    for (int device = 0; device < 2; device++) {
        assert_moments_equal(left, right, device, LAYOUT_NOW);
        assert_moments_equal(left, right, device, LAYOUT_FULLEST);
    }
    assert_blocks_equal(left, right);
}

void trace_books_put_everything(struct trace_writer *writer, void *arg)
{
    const struct trace_books *books = arg;
    trace_put_catalog(writer, books->catalog);
    ledger_save(books->ledger, trace_put_state, writer);
}

/* A ledger's items one after the other, each with its kind and count. */
struct image {
    uint64_t *values;
    size_t count, room;
};

static void add_value(struct image *image, uint64_t value)
{
    if (image->count == image->room) {
        image->room = image->room == 0 ? 4096 : image->room * 2;
        image->values = realloc(image->values, image->room * sizeof *image->values);
        assert_non_null(image->values);
    }
    image->values[image->count++] = value;
}

static void add_item(void *arg, enum ledger_state_kind kind, const uint64_t *values, uint32_t count)
{
    add_value(arg, kind);
    add_value(arg, count);
    for (uint32_t i = 0; i < count; i++)
        add_value(arg, values[i]);
}

void assert_states_equal(const struct ledger *left, const struct ledger *right)
{
    struct image one = {0}, other = {0};
    ledger_save(left, add_item, &one);
    ledger_save(right, add_item, &other);
    assert_int_equal(one.count, other.count);
    assert_memory_equal(one.values, other.values, one.count * sizeof *one.values);
    free(one.values);
    free(other.values);
}
