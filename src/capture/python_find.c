/*
 * Finds the interpreter among the loaded modules (python_runtime.h). It can be the executable, a library of
 * it, one that is opened RTLD_LOCAL later on, or not there at all, which is looked at again whenever modules
 * were added.
 *
 * Nothing of a module is called before its types are marked ready: until then another thread can be in the
 * middle of loading it, with its relocations undone.
 */
#include "capture/python_runtime.h"

#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "capture/elf_image.h"
#include "capture/fork_gate.h"
#include "capture/python_end.h"

#define SEARCH_INTERVAL_NS INT64_C(10000000)
#define TYPE_IS_READY      (1ul << 12) /* Py_TPFLAGS_READY */

static struct {
    _Atomic(struct python_runtime *) current; /* initialised */
    _Atomic(struct python_runtime *) pending; /* loaded, and not yet seen initialised */
    _Atomic uint64_t searched_adds;           /* dlpi_adds of the last complete search */
    _Atomic int64_t next_search_ns;
} found;

_Atomic(struct python_runtime *) python_ready;

struct search {
    const struct elf_image *program;
    struct elf_image program_image;
    bool first;
    struct python_runtime *result; /* all zero when nothing was found */
};

/* A data symbol of a library can have been copied into the program (R_*_COPY): then that one is in use. */
static const void *data_symbol(const struct search *search, const struct elf_image *image, const char *name)
{
    const void *address = search->program != NULL ? elf_image_address(search->program, name) : NULL;
    return address != NULL ? address : elf_image_address(image, name);
}

static bool is_python_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0;
}

/* A file that is Python and nothing else is the interpreter as a whole; of a program or library that has
 * Python linked in, only the evaluation loop. */
static void interpreter_range(const struct dl_phdr_info *info, const struct elf_image *image, bool is_program,
                              struct elf_extent *range)
{
    char path[4096] = "";
    if (!is_program) {
        strncpy(path, info->dlpi_name, sizeof path - 1);
    } else {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
    }
    struct elf_symbol symbol;
    if (is_python_file(path))
        *range = elf_image_extent(info);
    else if (elf_image_find(image, "_PyEval_EvalFrameDefault", &symbol))
        *range = (struct elf_extent){symbol.address, symbol.bytes};
}

static bool describe(const struct search *search, const struct dl_phdr_info *info,
                     const struct elf_image *image, struct python_runtime *python)
{
    memset(python, 0, sizeof *python);
    *(void **)&python->this_thread_state = elf_image_address(image, "PyGILState_GetThisThreadState");
    if (python->this_thread_state == NULL)
        return false;
    void *finalizing = elf_image_address(image, "Py_IsFinalizing");
    *(void **)&python->is_finalizing =
        finalizing != NULL ? finalizing : elf_image_address(image, "_Py_IsFinalizing");
    *(void **)&python->version_text = elf_image_address(image, "Py_GetVersion");
    *(void **)&python->code_line = elf_image_address(image, "PyCode_Addr2Line");
    python->version = data_symbol(search, image, "Py_Version");
    python->runtime = data_symbol(search, image, "_PyRuntime");
    python->code_type = data_symbol(search, image, "PyCode_Type");
    python->frame_type = data_symbol(search, image, "PyFrame_Type");
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            python->dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    python->image = *image;
    interpreter_range(info, image, image == search->program, &python->code);
    return python->code_type != NULL && python->version_text != NULL;
}

static int visit_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    struct search *search = arg;
    struct elf_image image;
    bool is_program = search->first;
    if (is_program) {
        search->first = false;
        if (atomic_exchange_explicit(&found.searched_adds, info->dlpi_adds, memory_order_relaxed) ==
            info->dlpi_adds)
            return 1;
        if (elf_image_open_loaded(&search->program_image, info))
            search->program = &search->program_image;
        if (search->program == NULL || !describe(search, info, search->program, search->result))
            return 0;
        return 1;
    }
    return elf_image_open_loaded(&image, info) && describe(search, info, &image, search->result);
}

static bool is_initialised(const struct python_runtime *python)
{
    bool free_threaded = false;
    if (python->runtime != NULL && python->version != NULL && (*python->version >> 16 & 0xff) >= 13) {
        uint64_t header[3];
        memcpy(header, python->runtime, sizeof header);
        free_threaded = memcmp(header, "xdebugpy", 8) == 0 && header[2] == 1;
    }
    size_t flags = free_threaded ? 184 : 168; /* PyTypeObject.tp_flags */
    return PYTHON_FIELD(unsigned long, python->code_type, flags) & TYPE_IS_READY;
}

/* "3.10.13 (main, …": the minor version, or -1. */
static int minor_of_text(const char *text)
{
    int minor = 0;
    if (text == NULL || strncmp(text, "3.", 2) != 0)
        return -1;
    for (text += 2; *text >= '0' && *text <= '9' && minor < 1000; text++)
        minor = minor * 10 + (*text - '0');
    return minor;
}

static void complete(struct python_runtime *python)
{
    int minor = python->version == NULL                ? minor_of_text(python->version_text())
                : (*python->version >> 24 & 0xff) == 3 ? (int)(*python->version >> 16 & 0xff)
                                                       : -1;
    bool known = python->is_finalizing != NULL && python_layout_get(&python->layout, minor, python->runtime);
    python->minor = minor;
    python->walk = python_walker_for(&python->layout);
    atomic_store_explicit(&python->state, known ? PYTHON_UNCHECKED : PYTHON_UNREADABLE, memory_order_release);
}

static struct python_runtime *search_modules(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    int64_t now_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    if (now_ns < atomic_load_explicit(&found.next_search_ns, memory_order_relaxed))
        return NULL;
    atomic_store_explicit(&found.next_search_ns, now_ns + SEARCH_INTERVAL_NS, memory_order_relaxed);

    struct python_runtime *python = pages_alloc(sizeof *python);
    if (python == NULL)
        return NULL;
    struct search search = {.first = true, .result = python};
    fork_gate_enter();
    dl_iterate_phdr(visit_module, &search);
    fork_gate_leave();
    struct python_runtime *none = NULL;
    if (python->code_type == NULL || python->version_text == NULL ||
        !atomic_compare_exchange_strong(&found.pending, &none, python)) {
        pages_free(python, sizeof *python);
        return none;
    }
    return python;
}

/* Makes `pending` the interpreter in use. A copy is completed, since other threads may be doing the same. */
static struct python_runtime *take_into_use(const struct python_runtime *pending)
{
    struct python_runtime *python = pages_alloc(sizeof *python);
    if (python == NULL)
        return NULL;
    memcpy(python, pending, sizeof *python);
    complete(python);
    struct python_runtime *other = NULL;
    if (atomic_compare_exchange_strong(&found.current, &other, python))
        return python;
    pages_free(python, sizeof *python);
    return other;
}

struct python_runtime *python_find(void)
{
    struct python_runtime *python = atomic_load_explicit(&found.current, memory_order_acquire);
    if (python != NULL)
        return python;
    python = atomic_load_explicit(&found.pending, memory_order_acquire);
    if (python == NULL)
        python = search_modules();
    return python != NULL && is_initialised(python) ? take_into_use(python) : NULL;
}

static int has_dynamic(struct dl_phdr_info *info, size_t bytes, void *dynamic)
{
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) == dynamic)
            return 1;
    return 0;
}

void python_find_again(void)
{
    struct python_runtime *python = atomic_load_explicit(&found.pending, memory_order_acquire);
    if (python != NULL && !dl_iterate_phdr(has_dynamic, (void *)python->dynamic)) {
        /* Its description is left behind: another thread may be reading it. */
        python_end_forget();
        atomic_store_explicit(&python_ready, NULL, memory_order_release);
        atomic_store_explicit(&found.current, NULL, memory_order_release);
        atomic_store_explicit(&found.pending, NULL, memory_order_release);
    }
    atomic_store_explicit(&found.searched_adds, 0, memory_order_relaxed);
    atomic_store_explicit(&found.next_search_ns, 0, memory_order_relaxed);
}
