/* How a frame, and a site, is written where one line has to do (frames.h). */
#include <stdio.h>
#include <string.h>

#include "report/model.h"
#include "report/words.h"

/* "train.py", or "models/utils.py" where the base name alone is not enough to find it; of what is installed,
 * from its package on. */
static const char *short_file(const struct named_frame *frame)
{
    size_t length;
    const char *base = base_name(frame->file), *folder = base;
    const char *package = frame->kind == FRAME_PYTHON ? package_of(frame->file, &length) : NULL;
    if (package)
        return package;
    bool tells_nothing = frame->ambiguous || strncmp(base, "__init__.", 9) == 0 ||
                         strncmp(base, "__main__.", 9) == 0 || strstr(frame->file, "/ipykernel_");
    while (tells_nothing && folder > frame->file && (folder == base || folder[-1] != '/'))
        folder--;
    return folder;
}

static void add_function(struct words *words, const char *function, int columns)
{
    char text[SHORT_NAME_MAX];
    words_add(words, "%s", short_name(function, columns, text));
}

const char *frame_title(const struct named_frame *frame, int columns, char *title, size_t bytes)
{
    struct words words = {0};
    if (frame->file) {
        words_add(&words, "%s", short_file(frame));
        if (frame->line)
            words_add(&words, ":%d", frame->line);
        words_add(&words, " in ");
        add_function(&words, frame->function ? frame->function : "?", columns);
    } else if (frame->function) {
        add_function(&words, frame->function, columns);
        words_add(&words, " in %s", frame->module ? base_name(frame->module) : "code without a file");
    } else if (frame->module) {
        words_add(&words, "%s+0x%llx", base_name(frame->module), (unsigned long long)frame->offset);
    } else if (frame->kind == FRAME_NATIVE) {
        words_add(&words, "code without a file at 0x%llx", (unsigned long long)frame->offset);
    } else {
        words_add(&words, "?");
    }
    words_cut(&words, bytes);
    memcpy(title, words.text, words.used + 1);
    return title;
}

const char *report_site_title(const struct report *report, uint32_t index, int columns, char *title,
                              size_t bytes)
{
    const struct report_site *site = &report->sites[index];
    if (site->title)
        return frame_title(site->title, columns, title, bytes);
    snprintf(title, bytes, "%s, no stack recorded", site->api ? site->api : "?");
    return title;
}

const char *frame_fold_name(const struct named_frame *frame, char name[FOLD_NAME_MAX])
{
    const char *from = frame->module ? base_name(frame->module) : "code without a file";
    size_t length = strlen(from);
    const char *abi = strstr(from, ".cpython-");
    if (frame->kind == FRAME_PYTHON) {
        const char *package = frame->file ? package_of(frame->file, &length) : NULL;
        from = package ? package : frame->file ? base_name(frame->file) : "?";
        length = package ? length : strlen(from);
    } else if (abi) {
        length = (size_t)(abi - from);
    }
    length = length < FOLD_NAME_MAX - 1 ? length : FOLD_NAME_MAX - 1;
    memcpy(name, from, length);
    name[length] = '\0';
    return name;
}
