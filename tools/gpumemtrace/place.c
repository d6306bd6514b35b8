/* Telling places apart by what people call them; see place.h. */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/frames.h"
#include "symbols/demangle.h"

#define FUNCTION_MAX 4096

/* "/usr/lib/libfoo.so.1.2" and "foo.cpython-311-x86_64-linux-gnu.so": what is before versions and suffixes.
 */
static int module_name(const char *path, const char **name)
{
    *name = base_name(path);
    const char *end = strstr(*name, ".so");
    const char *abi = strstr(*name, ".cpython-");
    if (!abi)
        abi = strstr(*name, ".abi3.");
    if (abi && (!end || abi < end))
        end = abi;
    return end && end > *name ? (int)(end - *name) : (int)strlen(*name);
}

/* "train.py"; with its folder where the name alone says nothing. */
static const char *file_name(const char *path)
{
    const char *name = base_name(path);
    if (strcmp(name, "__init__.py") != 0 && strcmp(name, "__main__.py") != 0)
        return name;
    while (name > path && name[-1] == '/')
        name--;
    while (name > path && name[-1] != '/')
        name--;
    return name;
}

static void write_native(FILE *to, const struct saved_frame *frame)
{
    char function[FUNCTION_MAX] = "";
    const char *module = "?";
    int module_length = frame->module ? module_name(frame->module, &module) : 1;
    if (frame->function)
        readable_name(frame->function, function, sizeof(function));
    fprintf(to, "n|%.*s|%s\n", module_length, module, function);
}

static bool is_comprehension(const char *function)
{
    return strcmp(function, "<listcomp>") == 0 || strcmp(function, "<dictcomp>") == 0 ||
           strcmp(function, "<setcomp>") == 0;
}

/* The last part of a qualified name, which is all that Python before 3.11 tells. */
static const char *last_part(const char *function)
{
    const char *dot = strrchr(function, '.');
    return dot && dot[1] ? dot + 1 : function;
}

static void write_python(FILE *to, const struct saved_frame *frame, const struct place_rules *rules)
{
    const char *function = frame->function ? frame->function : "?";
    if (is_comprehension(last_part(function)))
        return; /* a frame of its own only before 3.12 */
    fprintf(to, "p|%s|%s\n", frame->file ? file_name(frame->file) : "?",
            rules->qualified ? function : last_part(function));
}

static enum frame_rank rank(const struct saved_report *report, const struct saved_frame *frame)
{
    return frame->python ? rank_python_file(frame->file)
                         : rank_native(frame->module, frame->function, frame->file, report->program);
}

/* Two unknown functions of one module, called by one another, are one step: how many depends on inlining. */
static bool repeats_unknown(const struct saved_frame *frame, const struct saved_frame *previous)
{
    return previous && !frame->python && !previous->python && !frame->function && !previous->function &&
           frame->module && previous->module && strcmp(frame->module, previous->module) == 0;
}

/* Writes the frames up to `worst`; returns how many there were. */
static size_t write_frames(FILE *to, const struct saved_report *report, const struct saved_site *site,
                           const struct place_rules *rules, enum frame_rank worst)
{
    const struct saved_frame *previous = NULL;
    size_t written = 0;
    for (size_t i = 0; i < site->frame_count; i++) {
        const struct saved_frame *frame = &site->frames[i];
        if ((frame->inlined && !rules->inlined) || rank(report, frame) > worst ||
            repeats_unknown(frame, previous))
            continue;
        if (frame->python)
            write_python(to, frame, rules);
        else
            write_native(to, frame);
        previous = frame;
        written++;
    }
    return written;
}

char *place_key(const struct saved_report *report, const struct saved_site *site,
                const struct place_rules *rules)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fprintf(to, "%s|%s|%d\n", site->layer, site->space, rules->any_device ? -1 : site->device);
    if (write_frames(to, report, site, rules, RANK_LIBRARY) == 0 &&
        write_frames(to, report, site, rules, RANK_RUNTIME) == 0)
        fprintf(to, "%s\n", site->api);
    bool failed = ferror(to);
    if (fclose(to) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

static bool any_frame(const struct saved_report *report, bool (*is)(const struct saved_frame *))
{
    for (size_t i = 0; i < report->site_count; i++)
        for (size_t k = 0; k < report->sites[i].frame_count; k++)
            if (is(&report->sites[i].frames[k]))
                return true;
    return false;
}

static bool is_qualified(const struct saved_frame *frame)
{
    return frame->python && frame->function && strchr(frame->function, '.');
}

static bool is_inlined(const struct saved_frame *frame)
{
    return frame->inlined;
}

struct place_rules place_rules(const struct saved_report *report)
{
    return (struct place_rules){
        .qualified = any_frame(report, is_qualified),
        .inlined = any_frame(report, is_inlined),
    };
}

struct place_rules place_rules_common(struct place_rules one, struct place_rules other)
{
    return (struct place_rules){
        .qualified = one.qualified && other.qualified,
        .inlined = one.inlined && other.inlined,
    };
}
