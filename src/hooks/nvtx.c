/*
 * NVTX ranges are phases of the program. NVTX is code that is compiled into whoever uses it; at its first
 * call in each file it looks for a tool, by the variable NVTX_INJECTION64_PATH, and has it fill in what its
 * functions do (nvtx3/nvtxDetail/nvtxTypes.h of the CUDA toolkit, the source of all numbers and structures
 * here). We are that tool where nobody else is. Of the older libnvToolsExt.so.1, which is a library, the
 * functions that push and pop are hooked.
 *
 * What NVIDIA's own libraries mark inside themselves is left alone.
 */
#include "hooks/nvtx.h"

#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/arena.h"
#include "hooks/call.h"
#include "hooks/export.h"
#include "hooks/loaded.h"
#include "hooks/tables.h"
#include "preload/program_phases.h"

#define VARIABLE "NVTX_INJECTION64_PATH"

enum { EXPORT_CALLBACKS = 1 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2, MESSAGE_REGISTERED = 3 };

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t size;
    /* table[i] is where the pointer to function number i is kept, or NULL. */
    int (*get_module_table)(int module, nvtx_function ****table, unsigned *count);
};

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

static void add_text(char *name, const char *text)
{
    size_t used = strlen(name), bytes = strnlen(text, PHASE_NAME_BYTES - 1 - used);
    memcpy(name + used, text, bytes);
    name[used + bytes] = '\0';
}

/* As UTF-8; what does not fit is left out. */
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

/* "domain: message" */
static void name_event(char name[PHASE_NAME_BYTES], const char *domain, const struct nvtx_event *event)
{
    name[0] = '\0';
    if (domain != NULL && domain[0] != '\0') {
        add_text(name, domain);
        add_text(name, ": ");
    }
    if (event != NULL && event->message.ascii != NULL) {
        if (event->message_type == MESSAGE_ASCII || event->message_type == MESSAGE_REGISTERED)
            add_text(name, event->message.ascii);
        else if (event->message_type == MESSAGE_UNICODE)
            add_wide(name, event->message.unicode);
    }
}

/* Handles for domains and registered strings are their text. They are never given back: a program has few. */
static const char *keep_text(const char *text)
{
    char *copy = tables_lock() ? tables_new() : NULL;
    if (copy == NULL)
        return NULL;
    size_t bytes = strnlen(text, TABLES_ENTRY_MAX - 1);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    tables_unlock();
    return copy;
}

static const char *keep_wide(const wchar_t *text)
{
    char name[PHASE_NAME_BYTES] = "";
    add_wide(name, text);
    return keep_text(name);
}

static int push_event(const char *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    name_event(name, domain, event);
    return phase_push(domain, name);
}

static uint64_t start_event(const char *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    name_event(name, domain, event);
    return phase_start(name);
}

static int domain_push(const char *domain, const struct nvtx_event *event)
{
    return push_event(domain, event);
}

static int domain_pop(const char *domain)
{
    return phase_pop(domain);
}

static uint64_t domain_start(const char *domain, const struct nvtx_event *event)
{
    return start_event(domain, event);
}

static void domain_end(const char *domain, uint64_t range)
{
    (void)domain;
    phase_stop((uint32_t)range);
}

static const char *domain_create(const char *name)
{
    return name == NULL ? NULL : keep_text(name);
}

static const char *domain_create_wide(const wchar_t *name)
{
    return name == NULL ? NULL : keep_wide(name);
}

static const char *domain_register(const char *domain, const char *text)
{
    (void)domain;
    return text == NULL ? NULL : keep_text(text);
}

static const char *domain_register_wide(const char *domain, const wchar_t *text)
{
    (void)domain;
    return text == NULL ? NULL : keep_wide(text);
}

static int push(const char *name)
{
    return phase_push(NULL, name);
}

static int push_wide(const wchar_t *text)
{
    char name[PHASE_NAME_BYTES] = "";
    if (text != NULL)
        add_wide(name, text);
    return phase_push(NULL, name);
}

static int push_default(const struct nvtx_event *event)
{
    return push_event(NULL, event);
}

static int pop(void)
{
    return phase_pop(NULL);
}

static uint64_t start(const char *name)
{
    return phase_start(name);
}

static uint64_t start_wide(const wchar_t *text)
{
    char name[PHASE_NAME_BYTES] = "";
    if (text != NULL)
        add_wide(name, text);
    return phase_start(name);
}

static uint64_t start_default(const struct nvtx_event *event)
{
    return start_event(NULL, event);
}

static void stop(uint64_t range)
{
    phase_stop((uint32_t)range);
}

/* The numbers are those of NvtxCallbackIdCore and NvtxCallbackIdCore2. Marks, categories and names of threads
 * stay without effect. */
static const struct {
    int module;
    unsigned number;
    nvtx_function *function;
} served[] = {
#define SERVE(module, number, function)                                                                      \
    {                                                                                                        \
        MODULE_##module, number, (nvtx_function *)(function)                                                 \
    }
    SERVE(CORE, 4, start_default),     SERVE(CORE, 5, start),
    SERVE(CORE, 6, start_wide),        SERVE(CORE, 7, stop),
    SERVE(CORE, 8, push_default),      SERVE(CORE, 9, push),
    SERVE(CORE, 10, push_wide),        SERVE(CORE, 11, pop),
    SERVE(CORE2, 2, domain_start),     SERVE(CORE2, 3, domain_end),
    SERVE(CORE2, 4, domain_push),      SERVE(CORE2, 5, domain_pop),
    SERVE(CORE2, 10, domain_register), SERVE(CORE2, 11, domain_register_wide),
    SERVE(CORE2, 12, domain_create),   SERVE(CORE2, 13, domain_create_wide),
#undef SERVE
};

/* Of these the base names begin. libnvToolsExt's functions are hooked themselves. */
static const char *const left_alone[] = {"libnvToolsExt.so", "libnccl",     "libcublas",   "libcudnn",
                                         "libcusparse",      "libcusolver", "libcufft",    "libcurand",
                                         "libcutensor",      "libnvrtc",    "libnvJitLink"};

static bool is_left_alone(const void *code)
{
    char path[LOADED_NAME_MAX];
    path[0] = '\0';
    loaded_range_of(code, path);
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
        if (strncmp(name, left_alone[i], strlen(left_alone[i])) == 0)
            return true;
    return false;
}

typedef const void *nvtx_get_export_table(uint32_t id);

/* Called by NVTX once for each file that has it. */
EXPORT int InitializeInjectionNvtx2(nvtx_get_export_table *get_export_table);
EXPORT int InitializeInjectionNvtx2(nvtx_get_export_table *get_export_table)
{
    int kept = errno;
    const struct nvtx_callbacks *callbacks = get_export_table(EXPORT_CALLBACKS);
    bool serves = callbacks != NULL && callbacks->size >= sizeof *callbacks &&
                  !is_left_alone((const void *)get_export_table);
    for (size_t i = 0; serves && i < sizeof served / sizeof *served; i++) {
        nvtx_function ***table = NULL;
        unsigned count = 0;
        if (callbacks->get_module_table(served[i].module, &table, &count) != 0 && table != NULL &&
            served[i].number < count && table[served[i].number] != NULL)
            *table[served[i].number] = served[i].function;
    }
    errno = kept;
    return 1;
}

/* setenv() would take memory from the program's malloc. What it does later, it does to this copy. */
void nvtx_offer(void)
{
    char path[LOADED_NAME_MAX], folder[LOADED_NAME_MAX] = "";
    size_t count = 0;
    path[0] = '\0';
    loaded_range_of((const void *)nvtx_offer, path);
    if (path[0] == '\0' || environ == NULL || (path[0] != '/' && getcwd(folder, sizeof folder) == NULL))
        return;
    for (; environ[count] != NULL; count++)
        if (strncmp(environ[count], VARIABLE "=", sizeof VARIABLE) == 0)
            return;
    static struct arena arena;
    size_t bytes = sizeof VARIABLE + strlen(folder) + 1 + strlen(path) + 1;
    char *variable = arena_alloc(&arena, bytes), **copy = arena_alloc(&arena, (count + 2) * sizeof *copy);
    if (variable == NULL || copy == NULL)
        return;
    strcpy(variable, VARIABLE "=");
    strcat(variable, folder);
    if (folder[0] != '\0')
        strcat(variable, "/");
    strcat(variable, path);
    memcpy(copy, environ, count * sizeof *copy);
    copy[count] = variable;
    environ = copy;
}

static void *real_function(enum hook_id id, const void *caller)
{
    int kept = errno;
    void *real = real_of_caller(id, caller);
    errno = kept;
    return real;
}

/* The library's answer where there is one. Its domains are its own: a range has its bare name. */
#define PUSH_HOOK(name, parameters, arguments, what)                                                         \
    HOOK_RETURNING(int, name, parameters)                                                                    \
    {                                                                                                        \
        int(*real) parameters = real_function(HOOK_##name, __builtin_return_address(0));                     \
        int level = (what);                                                                                  \
        return real == NULL ? level : real arguments;                                                        \
    }

static int push_of_library(const void *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    name_event(name, NULL, event != NULL && event->message_type == MESSAGE_REGISTERED ? NULL : event);
    return phase_push(domain, name);
}

PUSH_HOOK(nvtxRangePushA, (const char *name), (name), push(name))
PUSH_HOOK(nvtxRangePushEx, (const struct nvtx_event *event), (event), push_of_library(NULL, event))
PUSH_HOOK(nvtxRangePop, (void), (), pop())
PUSH_HOOK(nvtxDomainRangePushEx, (const void *domain, const struct nvtx_event *event), (domain, event),
          push_of_library(domain, event))
PUSH_HOOK(nvtxDomainRangePop, (const void *domain), (domain), phase_pop(domain))
