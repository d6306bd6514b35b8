/* The structure in which NVTX describes a range, and its name in our phases (nvtx.c, nvtools.c). */
#ifndef HOOKS_NVTX_EVENT_H
#define HOOKS_NVTX_EVENT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "preload/program_phases.h"

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_t of nvToolsExt.h. */
struct nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const char *registered; /* a handle of ours */
    } message;
};

_Static_assert(offsetof(struct nvtx_event, message) == 40, "the structure is NVTX's");

/* `text` as a name, in UTF-8; what does not fit is left out. NULL is an empty one. */
void nvtx_name_wide(char name[PHASE_NAME_BYTES], const wchar_t *text);
/* phase_push() outside any domain, and phase_start(), by such a name. */
int nvtx_push_wide(const wchar_t *text);
uint32_t nvtx_start_wide(const wchar_t *text);

/* "domain: message"; either may be missing. A registered message is taken for a text of ours. */
void nvtx_name_event(char name[PHASE_NAME_BYTES], const char *domain, const struct nvtx_event *event);

#endif
