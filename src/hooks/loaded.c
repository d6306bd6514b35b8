/* What is mapped (loaded.h). Every question is one walk of dl_iterate_phdr, answered inside it, where nothing
 * can be unmapped. */
#include "hooks/loaded.h"

#include <elf.h>
#include <string.h>

#include "capture/fork_gate.h"

/* Placed by the linker around this library. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

#define DEPENDENCIES_MAX 512

bool loaded_is_ours(const void *address)
{
    return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}

/* Under a lock of the dynamic linker's, which a forked child would inherit. */
static void visit_modules(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
    fork_gate_enter();
    dl_iterate_phdr(visit, data);
    fork_gate_leave();
}

static struct loaded_range range_of(const struct dl_phdr_info *info)
{
    struct elf_extent extent = elf_image_extent(info);
    return (struct loaded_range){extent.start, extent.start + extent.bytes};
}

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    struct loaded_range range = range_of(info);
    return (uintptr_t)address >= range.start && (uintptr_t)address < range.end;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return NULL;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static const char *soname_of(const struct dl_phdr_info *info, const struct elf_image *image)
{
    const ElfW(Dyn) *entry = dynamic_of(info);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SONAME && entry->d_un.d_val < image->string_bytes)
            return image->strings + entry->d_un.d_val;
    }
    return "";
}

static bool is_called(const struct dl_phdr_info *info, const char *name, bool prefix)
{
    struct elf_image image;
    if (!elf_image_open_loaded(&image, info))
        return false;
    const char *names[] = {file_name(info->dlpi_name), soname_of(info, &image)};
    for (int i = 0; i < 2; i++) {
        if (prefix ? strncmp(names[i], name, strlen(name)) == 0 : strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

struct by_address {
    const void *address;
    char *name;
    struct elf_image *image;
    struct loaded_range range;
    const char *called; /* a name's beginning to compare with; NULL: none */
    bool matches;
};

static int find_by_address(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct by_address *find = arg;
    (void)bytes;
    if (!holds(info, find->address))
        return 0;
    find->range = range_of(info);
    if (find->name != NULL) {
        size_t length = strnlen(info->dlpi_name, LOADED_NAME_MAX - 1);
        memcpy(find->name, info->dlpi_name, length);
        find->name[length] = '\0';
    }
    if (find->called != NULL)
        find->matches = is_called(info, find->called, true);
    if (find->image != NULL)
        find->matches = elf_image_open_loaded(find->image, info);
    return 1;
}

struct loaded_range loaded_range_of(const void *address, char name[LOADED_NAME_MAX])
{
    struct by_address find = {.address = address, .name = name};
    if (name != NULL)
        name[0] = '\0';
    visit_modules(find_by_address, &find);
    return find.range;
}

bool loaded_image_of(const void *address, struct elf_image *image)
{
    struct by_address find = {.address = address, .image = image};
    visit_modules(find_by_address, &find);
    return find.matches;
}

static bool address_in(const void *address, const char *called)
{
    struct by_address find = {.address = address, .called = called};
    visit_modules(find_by_address, &find);
    return find.matches;
}

bool loaded_in_driver(const void *address)
{
    return address_in(address, "libcuda.so");
}

bool loaded_in_runtime(const void *address)
{
    return address_in(address, "libcudart");
}

struct by_name {
    const char *called;
    bool prefix;
    const char *symbol;
    void *address; /* of the symbol */
    struct elf_image image;
    struct loaded_range range;
    const ElfW(Dyn) * dynamic;
};

static int find_by_name(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct by_name *find = arg;
    (void)bytes;
    if (!is_called(info, find->called, find->prefix) || holds(info, __ehdr_start) ||
        !elf_image_open_loaded(&find->image, info))
        return 0;
    find->address = find->symbol == NULL ? NULL : elf_image_address(&find->image, find->symbol);
    find->range = range_of(info);
    find->dynamic = dynamic_of(info);
    /* By prefix any of several may be the right one: the one that has the symbol. */
    return !find->prefix || find->address != NULL;
}

bool loaded_driver(struct elf_image *image, struct loaded_range *range)
{
    struct by_name find = {.called = "libcuda.so", .prefix = true, .symbol = "cuInit"};
    visit_modules(find_by_name, &find);
    *image = find.image;
    *range = find.range;
    return find.address != NULL;
}

void *loaded_in_any_runtime(const char *name)
{
    struct by_name find = {.called = "libcudart", .prefix = true, .symbol = name};
    visit_modules(find_by_name, &find);
    return find.address;
}

void *loaded_in_file(const char *file, const char *name)
{
    struct by_name find = {.called = file, .symbol = name};
    visit_modules(find_by_name, &find);
    return find.address;
}

void *loaded_anywhere(const char *name)
{
    struct by_name find = {.called = "", .prefix = true, .symbol = name};
    visit_modules(find_by_name, &find);
    return find.address;
}

struct search_onward {
    const void *caller;
    const char *name;
    bool is_behind_caller, meets_us;
};

/* In the order of loading, which is that of the search up to this library. */
static int search_onward(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct search_onward *search = arg;
    struct elf_image image;
    (void)bytes;
    if (holds(info, __ehdr_start)) {
        search->meets_us = search->is_behind_caller;
        return 1;
    }
    if (!search->is_behind_caller) {
        search->is_behind_caller = holds(info, search->caller);
        return 0;
    }
    return elf_image_open_loaded(&image, info) && elf_image_address(&image, search->name) != NULL;
}

bool loaded_meets_us(const void *caller, const char *name)
{
    struct search_onward search = {.caller = caller, .name = name};
    visit_modules(search_onward, &search);
    return search.meets_us;
}

struct mapped_set {
    const void *const *addresses;
    bool *mapped;
    uint32_t count;
};

static int mark_mapped(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct mapped_set *set = arg;
    struct loaded_range range = range_of(info);
    (void)bytes;
    for (uint32_t i = 0; i < set->count; i++) {
        uintptr_t address = (uintptr_t)set->addresses[i];
        if (address >= range.start && address < range.end)
            set->mapped[i] = true;
    }
    return 0;
}

void loaded_which_are_mapped(const void *const *addresses, bool *mapped, uint32_t count)
{
    struct mapped_set set = {addresses, mapped, count};
    memset(mapped, 0, count * sizeof *mapped);
    visit_modules(mark_mapped, &set);
}

/* Names of dependencies still to be looked at and those already looked at, in breadth-first order. */
struct dependencies {
    uint32_t count;
    const char *names[DEPENDENCIES_MAX];
};

static void add_dependencies(struct dependencies *queue, const struct elf_image *image,
                             const ElfW(Dyn) * dynamic)
{
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag != DT_NEEDED || dynamic->d_un.d_val >= image->string_bytes)
            continue;
        const char *name = image->strings + dynamic->d_un.d_val;
        bool known = false;
        for (uint32_t i = 0; i < queue->count && !known; i++)
            known = strcmp(queue->names[i], name) == 0;
        if (!known && queue->count < DEPENDENCIES_MAX)
            queue->names[queue->count++] = name;
    }
}

struct start_of_search {
    const void *caller;
    struct dependencies *queue;
};

static int add_first_dependencies(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct start_of_search *start = arg;
    struct elf_image image;
    (void)bytes;
    if (!holds(info, start->caller))
        return 0;
    if (elf_image_open_loaded(&image, info))
        add_dependencies(start->queue, &image, dynamic_of(info));
    return 1;
}

void *loaded_in_dependencies(const void *caller, const char *name)
{
    struct dependencies queue = {0};
    struct start_of_search start = {caller, &queue};
    visit_modules(add_first_dependencies, &start);
    for (uint32_t i = 0; i < queue.count; i++) {
        struct by_name find = {.called = queue.names[i], .symbol = name};
        visit_modules(find_by_name, &find);
        if (find.address != NULL)
            return find.address;
        add_dependencies(&queue, &find.image, find.dynamic);
    }
    return NULL;
}

static int read_unloads(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg = info->dlpi_subs;
    return 1;
}

uint64_t loaded_unloads(void)
{
    uint64_t unloads = 0;
    visit_modules(read_unloads, &unloads);
    return unloads;
}
