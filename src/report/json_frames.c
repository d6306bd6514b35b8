/* Frames as JSON (json_frames.h). */
#include "report/json_frames.h"

#include <string.h>

struct frame_text {
    const char *text; /* NULL: not made yet */
    size_t bytes;
};

/* A recording can make many frames of one long name; those beyond are written anew each time. */
#define TEXTS_BYTES_MAX ((size_t)64 << 20)

struct frame_texts {
    struct output scratch;
    size_t bytes;                 /* of all texts */
    struct frame_text of_frame[]; /* by catalog frame id */
};

static void write_frame(struct json *json, const struct named_frame *frame)
{
    emit_open(json, NULL, '{');
    emit_string(json, "kind", frame->kind == FRAME_PYTHON ? "python" : "native");
    emit_string(json, "function", frame->function);
    emit_string(json, "file", frame->file);
    emit_known(json, "line", frame->line > 0, (uint64_t)frame->line);
    emit_string(json, "module", frame->module);
    emit_known(json, "offset", frame->kind == FRAME_NATIVE, frame->offset);
    if (frame->why)
        emit_string(json, "why", frame->why);
    if (frame->inlined)
        emit_bool(json, "inlined", true);
    emit_close(json, '}');
}

static void write_names(struct json *json, const struct frame_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        write_frame(json, &names->names[i]);
}

bool report_build_texts(struct report *report)
{
    size_t count = catalog_frame_count(report->input->catalog);
    report->texts = arena_alloc(report->arena, sizeof *report->texts + count * sizeof(struct frame_text));
    return report->texts != NULL;
}

/* NULL: too long for one buffer, or no memory for it. */
static const struct frame_text *text_of(const struct report *report, uint32_t id)
{
    struct frame_text *text = &report->texts->of_frame[id];
    struct output *scratch = &report->texts->scratch;
    if (text->text)
        return text;
    if (report->texts->bytes > TEXTS_BYTES_MAX)
        return NULL;
    output_init(scratch,
                -1); /* without a descriptor, output works as long as everything fits into its buffer */
    struct json json = {.out = scratch};
    write_names(&json, &report->names[id]);
    text->bytes = scratch->used;
    report->texts->bytes += scratch->used;
    text->text = scratch->error ? NULL : arena_copy(report->arena, scratch->buffer, scratch->used);
    return text->text ? text : NULL;
}

void emit_frames(struct json *json, const struct report *report, const struct stack *stack)
{
    emit_open(json, "frames", '[');
    for (uint32_t k = 0; stack && k < stack->count && !json->out->error; k++) {
        if (!catalog_frame(report->input->catalog, stack->frames[k]))
            continue;
        const struct frame_names *names = &report->names[stack->frames[k]];
        const struct frame_text *text = names->uses > 1 ? text_of(report, stack->frames[k]) : NULL;
        if (text)
            emit_raw(json, text->text, text->bytes);
        else
            write_names(json, names);
    }
    emit_close(json, ']');
}
