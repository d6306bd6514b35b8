/*
 * NVTX ranges are phases of the program. NVTX is code that is compiled into whoever uses it; at its first
 * call in each file it looks for a tool, by the variable NVTX_INJECTION64_PATH, and has it fill in what its
 * functions do (nvtx3/nvtxDetail/nvtxTypes.h of the CUDA toolkit, the source of all numbers and structures
 * here). We are that tool where nobody else is. The older libnvToolsExt.so.1 is a library, and its functions
 * are hooked (nvtools.c).
 *
 * What NVIDIA's own libraries mark inside themselves is left alone.
 */
#include "hooks/nvtx.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/arena.h"
#include "hooks/export.h"
#include "hooks/loaded.h"
#include "hooks/nvtx_event.h"
#include "hooks/tables.h"
#include "preload/program_phases.h"

#define VARIABLE "NVTX_INJECTION64_PATH"

enum { EXPORT_CALLBACKS = 1 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };

typedef void nvtx_function(void);

struct nvtx_callbacks {
    size_t size;
    /* table[i] is where the pointer to function number i is kept, or NULL. */
    int (*get_module_table)(int module, nvtx_function ****table, unsigned *count);
};

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
    char name[PHASE_NAME_BYTES];
    nvtx_name_wide(name, text);
    return keep_text(name);
}

static int push_event(const char *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    nvtx_name_event(name, domain, event);
    return phase_push(domain, name);
}

static uint64_t start_event(const char *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    nvtx_name_event(name, domain, event);
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

static uint64_t start_wide(const wchar_t *name)
{
    return nvtx_start_wide(name);
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
    SERVE(CORE, 10, nvtx_push_wide),   SERVE(CORE, 11, pop),
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
