/* Lexical clean-up of source paths; see source_path.h. */
#include "symbols/source_path.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_part(const char *part, size_t length, const char *name)
{
    return length == strlen(name) && memcmp(part, name, length) == 0;
}

/* Takes the last part off `text`; false when there is none to take, or it is ".." itself. */
static bool drop_last(const char *text, size_t *used)
{
    size_t end = *used, start;
    if (end > 0 && text[end - 1] == '/')
        end--;
    for (start = end; start > 0 && text[start - 1] != '/'; start--)
        ;
    if (start == end || is_part(text + start, end - start, ".."))
        return false;
    *used = start;
    return true;
}

const char *source_path(const char *path, char text[SOURCE_PATH_MAX])
{
    size_t used = 0;
    if (strlen(path) >= SOURCE_PATH_MAX)
        return path;
    if (path[0] == '/')
        text[used++] = '/';
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        bool up = is_part(part, length, "..");
        if (length > 0 && !is_part(part, length, ".") && !(up && drop_last(text, &used))) {
            memcpy(text + used, part, length);
            used += length;
            if (part[length])
                text[used++] = '/';
        }
        part += length + (part[length] ? 1 : 0);
    }
    if (used > 1 && text[used - 1] == '/')
        used--;
    text[used] = 0;
    return text;
}
