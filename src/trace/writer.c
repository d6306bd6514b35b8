/* Encodes records (writer.h). */
#include "trace/writer.h"

#include <string.h>

#include "trace/varint.h"

/* The tag, the time and the longest list of fields. */
#define EVENT_BYTES_MAX (1 + 11 * VARINT_MAX_BYTES)

/* A difference of two ids of 32 bits, in zigzag. */
#define STACK_STEP_BYTES 5

int trace_writer_open(struct trace_writer *writer, const char *path, const struct process_info *process,
                      uint64_t limit, trace_put_everything *checkpoint, void *checkpoint_arg)
{
    *writer = (struct trace_writer){.checkpoint = checkpoint, .checkpoint_arg = checkpoint_arg};
    return trace_log_open(&writer->log, path, process, limit);
}

bool trace_writer_is_open(const struct trace_writer *writer)
{
    return writer->log.is_open;
}

static void put_checkpoint(struct trace_writer *writer)
{
    uint8_t *at = trace_log_room(&writer->log, 1 + VARINT_MAX_BYTES, TRACE_LOG_CHECK);
    if (at == NULL)
        return;
    *at++ = TRACE_CHECKPOINT;
    trace_log_commit(&writer->log, varint_put(at, writer->newest_ns));
}

/* Everything goes into the other half of the file. */
static void take_checkpoint(struct trace_writer *writer)
{
    trace_log_begin_checkpoint(&writer->log);
    writer->previous_time_ns = 0;
    memset(writer->previous_number, 0, sizeof writer->previous_number);
    put_checkpoint(writer);
    if (writer->checkpoint != NULL)
        writer->checkpoint(writer, writer->checkpoint_arg);
    else
        writer->log.lacks_room = true;
    trace_log_end_checkpoint(&writer->log);
}

/* Room for a record at `now_ns` (log.h); NULL when a checkpoint has it in it, and when the recording has
 * ended. */
static uint8_t *begin_at(struct trace_writer *writer, uint64_t bytes, uint64_t now_ns)
{
    uint8_t *at = trace_log_room(&writer->log, bytes, now_ns);
    if (at == NULL && writer->log.lacks_room && !writer->log.in_checkpoint)
        take_checkpoint(writer);
    return at;
}

static uint8_t *begin(struct trace_writer *writer, uint64_t bytes)
{
    return begin_at(writer, bytes, TRACE_LOG_CHECK);
}

static void commit(struct trace_writer *writer, const uint8_t *end)
{
    trace_log_commit(&writer->log, end);
}

void trace_put_string(struct trace_writer *writer, const char *text, uint64_t bytes)
{
    if (bytes > TRACE_STRING_MAX)
        bytes = TRACE_STRING_MAX;
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES + bytes);
    if (at == NULL)
        return;
    *at++ = TRACE_STRING;
    at = varint_put(at, bytes);
    memcpy(at, text, bytes);
    commit(writer, at + bytes);
}

void trace_put_module(struct trace_writer *writer, const struct module *module, uint32_t path)
{
    uint32_t build_id_bytes = module->build_id_bytes < BUILD_ID_MAX ? module->build_id_bytes : BUILD_ID_MAX;
    uint8_t *at = begin(writer, 1 + 7 * VARINT_MAX_BYTES + BUILD_ID_MAX);
    if (at == NULL)
        return;
    *at++ = TRACE_MODULE;
    at = varint_put(at, path);
    at = varint_put(at, module->bias);
    at = varint_put(at, module->start);
    at = varint_put(at, module->end - module->start);
    at = varint_put(at, module->file_size);
    at = varint_put(at, module->file_mtime_ns);
    at = varint_put(at, build_id_bytes);
    memcpy(at, module->build_id, build_id_bytes);
    commit(writer, at + build_id_bytes);
}

void trace_put_frame(struct trace_writer *writer, const struct frame *frame)
{
    uint8_t *at = begin(writer, 1 + 3 * VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    if (frame->kind == FRAME_NATIVE) {
        *at++ = TRACE_NATIVE;
        at = varint_put(at, frame->module == CATALOG_NONE ? 0 : (uint64_t)frame->module + 1);
        at = varint_put(at, frame->offset);
    } else {
        *at++ = TRACE_PYTHON;
        at = varint_put(at, frame->function);
        at = varint_put(at, frame->file);
        at = varint_put(at, frame->line < 0 ? 0 : (uint64_t)frame->line);
    }
    commit(writer, at);
}

void trace_put_stack(struct trace_writer *writer, const uint32_t *frames, uint32_t count)
{
    if (count > TRACE_FRAMES_MAX)
        count = TRACE_FRAMES_MAX;
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES + (uint64_t)count * STACK_STEP_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_STACK;
    at = varint_put(at, count);
    int64_t previous = 0;
    for (uint32_t i = 0; i < count; i++) {
        at = varint_put(at, zigzag((int64_t)frames[i] - previous));
        previous = frames[i];
    }
    commit(writer, at);
}

void trace_put_site(struct trace_writer *writer, const struct site_key *site)
{
    uint8_t *at = begin(writer, 1 + 5 * VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_SITE;
    at = varint_put(at, site->stack == CATALOG_NONE ? 0 : (uint64_t)site->stack + 1);
    at = varint_put(at, site->api);
    at = varint_put(at, site->family);
    at = varint_put(at, site->space);
    at = varint_put(at, (uint16_t)(site->device + 1));
    commit(writer, at);
}

void trace_put_process(struct trace_writer *writer, const uint32_t *strings, uint32_t count)
{
    if (count > TRACE_FRAMES_MAX)
        count = TRACE_FRAMES_MAX;
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES + (uint64_t)count * STACK_STEP_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_PROCESS;
    at = varint_put(at, count);
    for (uint32_t i = 0; i < count; i++)
        at = varint_put(at, strings[i]);
    commit(writer, at);
}

void trace_put_note(struct trace_writer *writer, uint32_t string)
{
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_NOTE;
    commit(writer, varint_put(at, string));
}

/* The next event's field values, in the order the format stores them. */
static uint8_t *put_fields(struct trace_writer *writer, uint8_t *at, const struct event *event,
                           unsigned fields)
{
    if (fields & FIELD_SITE)
        at = varint_put(at, event->site);
    if (fields & FIELD_KEY) {
        enum key_space space = block_key_space(event->key);
        uint64_t number = block_key_number(event->key);
        at = varint_put(at, space);
        at = varint_put(at, zigzag((int64_t)(number - writer->previous_number[space])));
        writer->previous_number[space] = number;
    }
    if (fields & FIELD_SIZE)
        at = varint_put(at, event->size);
    if (fields & FIELD_CONTEXT)
        at = varint_put(at, event->context);
    if (fields & FIELD_BORN)
        at = varint_put(at, event->born_ns);
    if (fields & FIELD_ERROR)
        at = varint_put(at, (uint32_t)event->error);
    if (fields & FIELD_FREE_BYTES)
        at = varint_put(at, event->free_bytes);
    if (fields & FIELD_TOTAL_BYTES)
        at = varint_put(at, event->total_bytes);
    if (fields & FIELD_DEVICE)
        at = varint_put(at, (uint32_t)event->device);
    if (fields & FIELD_NAME)
        at = varint_put(at, event->name);
    if (fields & FIELD_RANGE)
        at = varint_put(at, event->range);
    if (fields & FIELD_COUNT)
        at = varint_put(at, event->count);
    if (fields & FIELD_DETAIL)
        at = varint_put(at, event->detail);
    return at;
}

void trace_drop_event(struct trace_writer *writer)
{
    writer->dropped_events++;
    trace_log_set_dropped(&writer->log, writer->dropped_events);
}

/* Encoded elsewhere first: between the question whether the file is still there (log.h) and the last store
 * lies as little as can be. */
void trace_put_event(struct trace_writer *writer, const struct event *event)
{
    uint8_t record[EVENT_BYTES_MAX], *end = record;
    *end++ = (uint8_t)event->type;
    end = varint_put(end, zigzag((int64_t)(event->time_ns - writer->previous_time_ns)));
    end = put_fields(writer, end, event, event_fields(event->type));
    writer->previous_time_ns = event->time_ns;
    if (event->time_ns > writer->newest_ns)
        writer->newest_ns = event->time_ns;
    size_t bytes = (size_t)(end - record);
    uint8_t *at = begin_at(writer, bytes, event->time_ns);
    if (at != NULL) {
        memcpy(at, record, bytes);
        commit(writer, at + bytes);
    }
    if (!writer->log.is_open || writer->log.end != TRACE_LOG_GOES_ON)
        trace_drop_event(writer);
}

void trace_put_state(void *arg, enum ledger_state_kind kind, const uint64_t *values, uint32_t count)
{
    struct trace_writer *writer = arg;
    uint8_t *at = begin(writer, 1 + (2 + (uint64_t)count) * VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_STATE;
    at = varint_put(at, kind);
    at = varint_put(at, count);
    for (uint32_t i = 0; i < count; i++)
        at = varint_put(at, values[i]);
    commit(writer, at);
}

void trace_put_catalog(struct trace_writer *writer, struct catalog *catalog)
{
    for (uint32_t i = 0; i < catalog_string_count(catalog); i++) {
        const char *text = catalog_string(catalog, i);
        trace_put_string(writer, text, strlen(text));
    }
    for (uint32_t i = 0; i < catalog_module_count(catalog); i++) {
        const struct module *module = catalog_module(catalog, i);
        trace_put_module(writer, module,
                         catalog_add_string(catalog, module->path, strlen(module->path), NULL));
    }
    for (uint32_t i = 0; i < catalog_frame_count(catalog); i++)
        trace_put_frame(writer, catalog_frame(catalog, i));
    for (uint32_t i = 0; i < catalog_stack_count(catalog); i++) {
        const struct stack *stack = catalog_stack(catalog, i);
        trace_put_stack(writer, stack->frames, stack->count);
    }
    for (uint32_t i = 0; i < catalog_site_count(catalog); i++)
        trace_put_site(writer, catalog_site(catalog, i));
}

void trace_writer_close(struct trace_writer *writer, uint64_t end_ns)
{
    trace_log_close(&writer->log, end_ns);
}

void trace_writer_resume(struct trace_writer *writer)
{
    trace_log_resume(&writer->log);
}

void trace_writer_abandon(struct trace_writer *writer)
{
    trace_log_abandon(&writer->log);
}
