/* Books kept by hand (report_books.h). */
#include "report_books.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

void books_open(struct books *books)
{
    static const char *const arguments[] = {"python3", "train.py"};
    memset(books, 0, sizeof *books);
    books->catalog = catalog_create(&books->arena);
    assert_non_null(books->catalog);
    books->ledger = ledger_create(&books->arena, books->catalog);
    assert_non_null(books->ledger);
    books->process = (struct process_info){
        .pid = 4711,
        .ppid = 4700,
        .host = "gpu07",
        .exe = "/usr/bin/python3.11",
        .argument_count = 2,
        .arguments = arguments,
        .rank = -1,
        .start_realtime_ns = UINT64_C(1700000000) * SEC + 123456789,
        .duration_ns = 10 * SEC,
        .end = PROCESS_EXITED,
        .complete = true,
    };
    books->input =
        (struct report_input){.catalog = books->catalog, .ledger = books->ledger, .process = &books->process};
}

void books_close(struct books *books)
{
    ledger_destroy(books->ledger);
    catalog_destroy(books->catalog);
    arena_release(&books->arena);
}

static uint32_t string(struct books *books, const char *text)
{
    return catalog_add_string(books->catalog, text, strlen(text), NULL);
}

uint32_t books_python(struct books *books, const char *function, const char *file, int line)
{
    struct frame frame = {.kind = FRAME_PYTHON,
                          .module = CATALOG_NONE,
                          .function = string(books, function),
                          .file = string(books, file),
                          .line = line};
    return catalog_add_frame(books->catalog, &frame, NULL);
}

uint32_t books_module(struct books *books, const char *path)
{
    struct module module = {.path = path};
    return catalog_add_module(books->catalog, &module, NULL);
}

uint32_t books_native(struct books *books, uint32_t module, uint64_t offset)
{
    struct frame frame = {.kind = FRAME_NATIVE,
                          .module = module,
                          .offset = offset,
                          .function = CATALOG_NONE,
                          .file = CATALOG_NONE};
    return catalog_add_frame(books->catalog, &frame, NULL);
}

uint32_t books_site(struct books *books, const char *api, enum family family, enum space_kind space,
                    int device, const uint32_t *frames, uint32_t count)
{
    struct site_key key = {
        .stack = count ? catalog_add_stack(books->catalog, frames, count, NULL) : CATALOG_NONE,
        .api = string(books, api),
        .family = (uint8_t)family,
        .space = (uint8_t)space,
        .device = (int16_t)device,
    };
    return catalog_add_site(books->catalog, &key, NULL);
}

uint32_t books_plain(struct books *books, const uint32_t *frames, uint32_t count)
{
    return books_site(books, "cuMemAlloc", FAMILY_PLAIN, SPACE_DEVICE, 0, frames, count);
}

void books_event(struct books *books, struct event event)
{
    ledger_apply(books->ledger, &event, NULL);
}

uint64_t books_key(const struct books *books, uint32_t site, uint64_t number)
{
    static const enum key_space key_spaces[FAMILY_COUNT] = {[FAMILY_VMM] = KEY_HANDLE,
                                                            [FAMILY_ARRAY] = KEY_ARRAY,
                                                            [FAMILY_REGISTERED] = KEY_REGISTERED,
                                                            [FAMILY_TORCH] = KEY_FRAMEWORK};
    return block_key(key_spaces[catalog_site(books->catalog, site)->family], number);
}

void books_alloc(struct books *books, uint32_t site, uint64_t address, uint64_t size, uint64_t time_ns)
{
    books_event(books, (struct event){.type = EVENT_ALLOC,
                                      .site = site,
                                      .time_ns = time_ns,
                                      .key = books_key(books, site, address),
                                      .size = size});
}

void books_free(struct books *books, uint32_t site, uint64_t address, uint64_t time_ns)
{
    books_event(books, (struct event){
                           .type = EVENT_FREE, .time_ns = time_ns, .key = books_key(books, site, address)});
}

static char *write_and_read(struct books *books, void (*write)(const struct report *, struct output *))
{
    int fd = memfd_create("report", MFD_CLOEXEC);
    struct output out;
    assert_true(fd >= 0);
    if (!books->report)
        books->report = report_build(&books->input, &books->arena);
    assert_non_null(books->report);
    output_init(&out, fd);
    write(books->report, &out);
    assert_int_equal(output_flush(&out), 0);
    off_t bytes = lseek(fd, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_int_equal(pread(fd, text, (size_t)bytes, 0), bytes);
    close(fd);
    return text;
}

static void write_brief(const struct report *report, struct output *out)
{
    report_write_text(report, &(struct report_text_options){0}, out);
}

static void write_full(const struct report *report, struct output *out)
{
    report_write_text(report, &(struct report_text_options){.full = true, .native = true}, out);
}

char *books_json_text(struct books *books)
{
    return write_and_read(books, report_write_json);
}

char *books_text(struct books *books, bool full)
{
    return write_and_read(books, full ? write_full : write_brief);
}

char *books_summary(struct books *books)
{
    return write_and_read(books, report_write_summary);
}

json_t *books_json(struct books *books)
{
    json_error_t error;
    char *text = books_json_text(books);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("line %d column %d: %s\n%s", error.line, error.column, error.text, text);
    free(text);
    return json;
}

const json_t *json_node(const json_t *json, const char *path)
{
    char copy[128], *rest = copy;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *part; json && (part = strsep(&rest, "."));)
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(part)) : json_object_get(json, part);
    if (!json)
        fail_msg("no %s in the report", path);
    return json;
}

long long json_at(const json_t *json, const char *path)
{
    const json_t *node = json_node(json, path);
    if (!json_is_integer(node))
        fail_msg("%s is no integer", path);
    return json_integer_value(node);
}

const char *json_text_at(const json_t *json, const char *path)
{
    const json_t *node = json_node(json, path);
    if (!json_is_string(node))
        fail_msg("%s is no string", path);
    return json_string_value(node);
}

int line_with(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    int line = at != NULL;
    for (; at && at > text; at--)
        line += at[-1] == '\n';
    return line;
}
