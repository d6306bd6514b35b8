/*
 * The module an address is in (modules.h). What a module's file tells is kept, and good for as long as no
 * module has been unloaded since; the list of them only grows, at its head, so it is read without a lock.
 */
#include "capture/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "capture/elf_image.h"
#include "capture/fork_gate.h"

#define SEGMENTS_MAX  8 /* further ones are counted to the last */
#define ARENA_LIMIT   ((size_t)16 << 20)
#define BUILD_ID_NAME "GNU"
#define MAPS_BYTES    8192 /* a line of /proc/self/maps with the longest path fits */

struct known_module {
    struct known_module *next;
    _Atomic unsigned long long loaded_at; /* dlpi_subs at which it was last seen */
    struct module module;
    uint32_t segment_count;
    struct elf_extent segments[SEGMENTS_MAX];
};

static struct {
    _Atomic(struct known_module *) first;
    atomic_flag adding;
    struct arena arena; /* under `adding` */
} known = {.adding = ATOMIC_FLAG_INIT};

struct query {
    uintptr_t address;
    struct loaded_module *found;
    unsigned long long subs;
    const struct known_module *known; /* it was there already */
    bool first;                       /* no module was looked at yet: the next is the program */
    bool is_program, hit;
    uint32_t segment_count;
    struct elf_extent segments[SEGMENTS_MAX];
};

static bool hold(const struct elf_extent *segments, uint32_t count, uintptr_t address)
{
    for (uint32_t i = 0; i < count; i++)
        if (address - segments[i].start < segments[i].bytes)
            return true;
    return false;
}

static const struct known_module *find_known(uintptr_t address, unsigned long long subs)
{
    const struct known_module *module = atomic_load_explicit(&known.first, memory_order_acquire);
    for (; module != NULL; module = module->next)
        if (hold(module->segments, module->segment_count, address) &&
            atomic_load_explicit(&module->loaded_at, memory_order_relaxed) == subs)
            return module;
    return NULL;
}

static void copy_path(char *to, const char *from, size_t bytes)
{
    size_t length = strnlen(from, bytes - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

static void list_segments(struct query *query, const struct dl_phdr_info *info)
{
    query->segment_count = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        struct elf_extent segment = {info->dlpi_addr + header->p_vaddr, header->p_memsz};
        if (query->segment_count < SEGMENTS_MAX) {
            query->segments[query->segment_count++] = segment;
        } else {
            struct elf_extent *last = &query->segments[SEGMENTS_MAX - 1];
            last->bytes = segment.start + segment.bytes - last->start;
        }
    }
}

/* One PT_NOTE segment: notes of a head, a name and a description, each padded to the segment's alignment. */
static void read_build_id(struct module *module, const uint8_t *notes, size_t bytes, size_t align)
{
    align = align == 8 ? 8 : 4;
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, notes, sizeof head);
        size_t name = (head.n_namesz + align - 1) / align * align;
        size_t description = (head.n_descsz + align - 1) / align * align;
        size_t left = bytes - sizeof head;
        if (name > left || head.n_descsz > left - name)
            return;
        const uint8_t *id = notes + sizeof head + name;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof BUILD_ID_NAME &&
            memcmp(notes + sizeof head, BUILD_ID_NAME, sizeof BUILD_ID_NAME) == 0 &&
            head.n_descsz <= BUILD_ID_MAX) {
            module->build_id_bytes = head.n_descsz;
            memcpy(module->build_id, id, head.n_descsz);
            return;
        }
        if (description >= left - name)
            return;
        notes = id + description;
        bytes = left - name - description;
    }
}

static void describe(struct query *query, const struct dl_phdr_info *info)
{
    struct module *module = &query->found->module;
    struct elf_extent extent = elf_image_extent(info);
    memset(module, 0, sizeof *module);
    module->path = query->found->path;
    module->bias = info->dlpi_addr;
    module->start = extent.start;
    module->end = extent.start + extent.bytes;
    copy_path(query->found->path, info->dlpi_name, sizeof query->found->path);
    for (int i = 0; i < info->dlpi_phnum && module->build_id_bytes == 0; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_build_id(module, (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                          info->dlpi_phdr[i].p_memsz, info->dlpi_phdr[i].p_align);
}

/* Runs under the dynamic linker's lock: copies what is needed and asks the kernel nothing. */
static int visit(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    (void)bytes;
    struct query *query = arg;
    query->is_program = query->first;
    if (query->first) {
        query->first = false;
        query->subs = info->dlpi_subs;
        query->known = find_known(query->address, query->subs);
        if (query->known != NULL)
            return 1;
    }
    list_segments(query, info);
    if (!hold(query->segments, query->segment_count, query->address))
        return 0;
    query->hit = true;
    describe(query, info);
    return 1;
}

static uintptr_t read_hex(const char **text)
{
    uintptr_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return value;
    }
}

/* A line of /proc/self/maps, "start-end flags offset device inode   path". */
static bool take_mapped_path(const char *line, uintptr_t address, char *path, size_t bytes)
{
    uintptr_t start = read_hex(&line);
    if (*line++ != '-')
        return false;
    uintptr_t end = read_hex(&line);
    const char *slash = strchr(line, '/');
    if (address < start || address >= end || slash == NULL)
        return false;
    copy_path(path, slash, bytes);
    return true;
}

/* The kernel's name of the file mapped at `address`: absolute, whatever the working directory was. */
static void find_mapped_path(uintptr_t address, char *path, size_t bytes)
{
    char *buffer = pages_alloc(MAPS_BYTES); /* too much for a small stack */
    size_t used = 0;
    bool done = false;
    int fd = buffer == NULL ? -1 : open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !done) {
        ssize_t got = read(fd, buffer + used, MAPS_BYTES - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
        buffer[used] = '\0';
        char *line = buffer, *newline;
        while (!done && (newline = strchr(line, '\n')) != NULL) {
            *newline = '\0';
            done = take_mapped_path(line, address, path, bytes);
            line = newline + 1;
        }
        used -= (size_t)(line - buffer);
        memmove(buffer, line, used);
        if (used == MAPS_BYTES - 1)
            used = 0;
    }
    if (fd >= 0)
        close(fd);
    pages_free(buffer, MAPS_BYTES);
}

static void find_path(const struct query *query)
{
    char *path = query->found->path;
    size_t bytes = sizeof query->found->path;
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso != 0 &&
        vdso - query->found->module.start < query->found->module.end - query->found->module.start) {
        copy_path(path, "[vdso]", bytes);
    } else if (query->is_program) {
        ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
        path[length > 0 ? length : 0] = '\0';
    } else if (path[0] != '/') {
        find_mapped_path(query->address, path, bytes);
    }
}

static void examine_file(struct module *module)
{
    struct stat status;
    if (module->path[0] != '/' || syscall(SYS_newfstatat, AT_FDCWD, module->path, &status, 0) != 0)
        return;
    module->file_size = (uint64_t)status.st_size;
    module->file_mtime_ns =
        (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)status.st_mtim.tv_nsec;
}

static bool is_same(const struct module *one, const struct module *other)
{
    return one->bias == other->bias && one->start == other->start && one->end == other->end &&
           one->file_size == other->file_size && one->file_mtime_ns == other->file_mtime_ns &&
           one->build_id_bytes == other->build_id_bytes &&
           memcmp(one->build_id, other->build_id, one->build_id_bytes) == 0 &&
           strcmp(one->path, other->path) == 0;
}

/* Under `known.adding`. */
static void add_known(const struct query *query)
{
    const struct module *module = &query->found->module;
    struct known_module *entry = atomic_load_explicit(&known.first, memory_order_relaxed);
    for (; entry != NULL; entry = entry->next)
        if (is_same(&entry->module, module)) {
            atomic_store_explicit(&entry->loaded_at, query->subs, memory_order_relaxed);
            return;
        }
    if (known.arena.mapped_bytes >= ARENA_LIMIT)
        return;
    entry = arena_alloc(&known.arena, sizeof *entry);
    const char *path = arena_copy(&known.arena, module->path, strlen(module->path));
    if (entry == NULL || path == NULL)
        return;
    entry->module = *module;
    entry->module.path = path;
    entry->segment_count = query->segment_count;
    memcpy(entry->segments, query->segments, sizeof entry->segments);
    atomic_init(&entry->loaded_at, query->subs);
    entry->next = atomic_load_explicit(&known.first, memory_order_relaxed);
    atomic_store_explicit(&known.first, entry, memory_order_release);
}

bool modules_find(uintptr_t address, struct loaded_module *found)
{
    int saved = errno, cancel_state;
    struct query query = {.address = address, .found = found, .first = true};
    /* Files are read inside the gate, and a thread that ended there would shut it for good. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    fork_gate_enter();
    dl_iterate_phdr(visit, &query);
    if (query.known != NULL) {
        found->module = query.known->module;
        copy_path(found->path, query.known->module.path, sizeof found->path);
        found->module.path = found->path;
    } else if (query.hit) {
        find_path(&query);
        examine_file(&found->module);
        /* Whoever comes second at the same moment does without. */
        if (!atomic_flag_test_and_set_explicit(&known.adding, memory_order_acquire)) {
            add_known(&query);
            atomic_flag_clear_explicit(&known.adding, memory_order_release);
        }
    }
    fork_gate_leave();
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved;
    return query.known != NULL || query.hit;
}
