/*
 * A preloaded library that makes one call fail of those that libgpumemtrace.so makes to the C library and the
 * kernel, and leaves everybody else's alone. FAULTS_FAIL="function:n:errno" names the n-th call, from 1, of
 * that function, or with n=0 all of them; errno 0 is the failure that has none. FAULTS_COUNT=FILE, a file of
 * zeros, receives how often each function was called: a number of 32 bits each, in the order of the table.
 * FAULTS_CLOCK=back lets every clock that the library reads run backwards.
 *
 * Each wrapper takes six words and hands them on: enough for every function here, none of which takes or
 * gives a floating-point number.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* X(function, what it returns when it fails; with ERRNO_RETURNED the error itself) */
#define ERRNO_RETURNED 0x7fffffff
#define FUNCTIONS(X)                                                                                         \
    X(__cxa_at_quick_exit, -1)                                                                               \
    X(__cxa_atexit, -1)                                                                                      \
    X(__fxstat, -1)                                                                                          \
    X(__lxstat, -1)                                                                                          \
    X(__register_atfork, ERRNO_RETURNED)                                                                     \
    X(clock_gettime, -1)                                                                                     \
    X(close, -1)                                                                                             \
    X(dlopen, 0)                                                                                             \
    X(dlvsym, 0)                                                                                             \
    X(fallocate, -1)                                                                                         \
    X(fcntl, -1)                                                                                             \
    X(fstat, -1)                                                                                             \
    X(fstatfs, -1)                                                                                           \
    X(ftruncate, -1)                                                                                         \
    X(getauxval, 0)                                                                                          \
    X(getcontext, -1)                                                                                        \
    X(getcwd, 0)                                                                                             \
    X(getrlimit, -1)                                                                                         \
    X(madvise, -1)                                                                                           \
    X(malloc, 0)                                                                                             \
    X(mmap, -1)                                                                                              \
    X(munmap, -1)                                                                                            \
    X(nanosleep, -1)                                                                                         \
    X(open, -1)                                                                                              \
    X(pread, -1)                                                                                             \
    X(pthread_mutex_timedlock, ERRNO_RETURNED)                                                               \
    X(pthread_mutex_trylock, ERRNO_RETURNED)                                                                 \
    X(pthread_setcancelstate, ERRNO_RETURNED)                                                                \
    X(pthread_sigmask, ERRNO_RETURNED)                                                                       \
    X(pwrite, -1)                                                                                            \
    X(read, -1)                                                                                              \
    X(readlink, -1)                                                                                          \
    X(realloc, 0)                                                                                            \
    X(sigpending, -1)                                                                                        \
    X(sigtimedwait, -1)                                                                                      \
    X(swapcontext, -1)                                                                                       \
    X(syscall, -1)                                                                                           \
    X(sysconf, -1)                                                                                           \
    X(uname, -1)                                                                                             \
    X(unlink, -1)                                                                                            \
    X(write, -1)

#define AS_NUMBER(function, failed) FUNCTION_##function,
enum { FUNCTIONS(AS_NUMBER) FUNCTION_COUNT };

typedef long any_function(long, long, long, long, long, long);

#define AS_NAME(function, failed) #function,
static const char *const names[] = {FUNCTIONS(AS_NAME)};
static any_function *real[FUNCTION_COUNT];
static unsigned own_calls[FUNCTION_COUNT], *calls = own_calls;
static uintptr_t library_start, library_end;
static int is_ready, clocks_run_back;
static int fail_function = -1, fail_errno;
static unsigned fail_call;

/* Of a loaded file's own table of symbols, without asking anybody. */
static void *symbol_in(const struct link_map *map, const char *name)
{
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Half) *versions = NULL;
    const uint32_t *hash = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_VERSYM)
            versions = (const ElfW(Half) *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)entry->d_un.d_ptr;
    }
    uint32_t buckets = hash[0], first = hash[1], bloom_words = hash[2];
    const uint32_t *bucket = hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
    uint32_t value = 5381;
    for (const char *at = name; *at != '\0'; at++)
        value = value * 33 + (unsigned char)*at;
    for (uint32_t i = bucket[value % buckets]; i >= first; i++) {
        if (strcmp(strings + symbols[i].st_name, name) == 0 && symbols[i].st_shndx != SHN_UNDEF &&
            (versions[i] & 0x8000) == 0)
            return (void *)(map->l_addr + symbols[i].st_value);
        if (chain[i - first] & 1)
            break;
    }
    return NULL;
}

static void find_real(void)
{
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
        if (strstr(map->l_name, "/libc.so.6") == NULL)
            continue;
        for (int i = 0; i < FUNCTION_COUNT; i++)
            real[i] = (any_function *)symbol_in(map, names[i]);
    }
}

/* The mapped range of our library: from its first to its last segment. */
static void find_library(void)
{
    for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
        if (strstr(map->l_name, "/libgpumemtrace.so") == NULL)
            continue;
        const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;
        const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
        library_start = map->l_addr;
        for (int i = 0; i < header->e_phnum; i++) {
            uintptr_t end = map->l_addr + segments[i].p_vaddr + segments[i].p_memsz;
            if (segments[i].p_type == PT_LOAD && end > library_end)
                library_end = end;
        }
    }
}

static const char *variable(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    }
    return NULL;
}

/* In a file, so that the last calls of the process count too. */
static void share_calls(const char *path)
{
    long fd = real[FUNCTION_syscall](SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0);
    long map = real[FUNCTION_mmap](0, sizeof own_calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    real[FUNCTION_close](fd, 0, 0, 0, 0, 0);
    if (map != -1)
        calls = (unsigned *)map;
}

/* Before any constructor: whoever calls first. */
static void get_ready(void)
{
    is_ready = 1;
    find_real();
    find_library();
    if (variable("FAULTS_COUNT") != NULL)
        share_calls(variable("FAULTS_COUNT"));
    clocks_run_back = variable("FAULTS_CLOCK") != NULL;
    const char *wanted = variable("FAULTS_FAIL");
    const char *colon = wanted == NULL ? NULL : strchr(wanted, ':');
    for (int i = 0; colon != NULL && i < FUNCTION_COUNT; i++) {
        if (strlen(names[i]) == (size_t)(colon - wanted) &&
            strncmp(names[i], wanted, (size_t)(colon - wanted)) == 0)
            fail_function = i;
    }
    if (fail_function >= 0) {
        char *end;
        fail_call = (unsigned)strtoul(colon + 1, &end, 10);
        fail_errno = *end == ':' ? atoi(end + 1) : 0;
    }
}

static int is_ours(const void *caller)
{
    return (uintptr_t)caller >= library_start && (uintptr_t)caller < library_end;
}

/* Whether this call is to fail. */
static int is_fatal(int function, const void *caller)
{
    if (!is_ready)
        get_ready();
    if (!is_ours(caller))
        return 0;
    unsigned call = __atomic_add_fetch(&calls[function], 1, __ATOMIC_RELAXED);
    return function == fail_function && (fail_call == 0 || call == fail_call);
}

/* What the library is told the time is: 1 s earlier with each time it asks. */
static long turn_back(int function, const void *caller, long time, long result)
{
    if (function == FUNCTION_clock_gettime && clocks_run_back && is_ours(caller))
        ((struct timespec *)time)->tv_sec -= calls[function];
    return result;
}

#define AS_WRAPPER(function, failed)                                                                         \
    long wrap_##function(long a, long b, long c, long d, long e, long f) __asm__(#function);                 \
    __attribute__((visibility("default"))) long wrap_##function(long a, long b, long c, long d, long e,      \
                                                                long f)                                      \
    {                                                                                                        \
        if (!is_fatal(FUNCTION_##function, __builtin_return_address(0)))                                     \
            return turn_back(FUNCTION_##function, __builtin_return_address(0), b,                            \
                             real[FUNCTION_##function](a, b, c, d, e, f));                                   \
        if ((failed) == ERRNO_RETURNED)                                                                      \
            return fail_errno;                                                                               \
        errno = fail_errno;                                                                                  \
        return failed;                                                                                       \
    }
FUNCTIONS(AS_WRAPPER)
