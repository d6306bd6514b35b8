/* Names of NVTX ranges (nvtx_event.h). */
#include "hooks/nvtx_event.h"

#include <string.h>

static void add_text(char *name, const char *text)
{
    size_t used = strlen(name), bytes = strnlen(text, PHASE_NAME_BYTES - 1 - used);
    memcpy(name + used, text, bytes);
    name[used + bytes] = '\0';
}

static void add_wide(char *name, const wchar_t *text)
{
    size_t used = strlen(name);
    for (; *text != L'\0' && used + 4 < PHASE_NAME_BYTES; text++) {
        uint32_t code = (uint32_t)*text;
        if (code < 0x80) {
            name[used++] = (char)code;
        } else if (code < 0x800) {
            name[used++] = (char)(0xc0 | code >> 6);
            name[used++] = (char)(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            name[used++] = (char)(0xe0 | code >> 12);
            name[used++] = (char)(0x80 | (code >> 6 & 0x3f));
            name[used++] = (char)(0x80 | (code & 0x3f));
        } else {
            name[used++] = (char)(0xf0 | code >> 18);
            name[used++] = (char)(0x80 | (code >> 12 & 0x3f));
            name[used++] = (char)(0x80 | (code >> 6 & 0x3f));
            name[used++] = (char)(0x80 | (code & 0x3f));
        }
    }
    name[used] = '\0';
}

void nvtx_name_wide(char name[PHASE_NAME_BYTES], const wchar_t *text)
{
    name[0] = '\0';
    if (text != NULL)
        add_wide(name, text);
}

void nvtx_name_event(char name[PHASE_NAME_BYTES], const char *domain, const struct nvtx_event *event)
{
    name[0] = '\0';
    if (domain != NULL && domain[0] != '\0') {
        add_text(name, domain);
        add_text(name, ": ");
    }
    if (event != NULL && event->message.ascii != NULL) {
        if (event->message_type == NVTX_MESSAGE_ASCII || event->message_type == NVTX_MESSAGE_REGISTERED)
            add_text(name, event->message.ascii);
        else if (event->message_type == NVTX_MESSAGE_UNICODE)
            add_wide(name, event->message.unicode);
    }
}

int nvtx_push_wide(const wchar_t *text)
{
    char name[PHASE_NAME_BYTES];
    nvtx_name_wide(name, text);
    return phase_push(NULL, name);
}

uint32_t nvtx_start_wide(const wchar_t *text)
{
    char name[PHASE_NAME_BYTES];
    nvtx_name_wide(name, text);
    return phase_start(name);
}
