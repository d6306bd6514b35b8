/*
 * A program with NVTX ranges: through NVIDIA's own header where WITH_HEADER is defined, and otherwise through
 * as much of what that does as is needed here.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_HEADER
#include <nvtx3/nvToolsExt.h>
#else

typedef void function(void);
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    uint64_t payload;
    int32_t messageType;
    union {
        const char *ascii;
        const wchar_t *unicode;
        void *registered;
    } message;
} nvtxEventAttributes_t;
#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
#define NVTX_MESSAGE_TYPE_ASCII       1
#define NVTX_MESSAGE_TYPE_REGISTERED  3
typedef void *nvtxDomainHandle_t, *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;

static function *core[16], *core2[16];
static function **core_table[17], **core2_table[17];

static int get_module_table(int module, function ****table, unsigned *count)
{
    for (int i = 0; i < 16; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    *table = module == 1 ? core_table : module == 5 ? core2_table : NULL;
    *count = 16;
    return *table != NULL;
}

static const void *get_export_table(uint32_t id)
{
    static const struct {
        size_t size;
        int (*get)(int, function ****, unsigned *);
    } callbacks = {sizeof callbacks, get_module_table};
    return id == 1 ? &callbacks : NULL;
}

static void initialize(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*start)(const void *(*)(uint32_t)) =
        tool ? (int (*)(const void *(*)(uint32_t)))dlsym(tool, "InitializeInjectionNvtx2") : NULL;
    if (start && !start(get_export_table))
        exit(9);
}

static void *serve(function **table, int number)
{
    static int done;
    if (!done++)
        initialize();
    return (void *)table[number];
}

/* Where nobody serves a function, NVTX answers as these do. */
#define CALL(otherwise, table, number, type, ...)                                                            \
    ((type)serve(table, number) ? ((type)serve(table, number))(__VA_ARGS__) : (otherwise))
#define nvtxRangePushA(name)  CALL(-2, core, 9, int (*)(const char *), name)
#define nvtxRangePop()        CALL(-2, core, 11, int (*)(void))
#define nvtxRangePushEx(e)    CALL(-2, core, 8, int (*)(const nvtxEventAttributes_t *), e)
#define nvtxRangeStartA(name) CALL(0, core, 5, nvtxRangeId_t (*)(const char *), name)
#define nvtxRangeEnd(id)                                                                                     \
    do {                                                                                                     \
        if (serve(core, 7))                                                                                  \
            ((void (*)(nvtxRangeId_t))core[7])(id);                                                          \
    } while (0)
#define nvtxDomainCreateA(name) CALL(NULL, core2, 12, nvtxDomainHandle_t (*)(const char *), name)
#define nvtxDomainRegisterStringA(d, s)                                                                      \
    CALL(NULL, core2, 10, nvtxStringHandle_t (*)(nvtxDomainHandle_t, const char *), d, s)
#define nvtxDomainRangePushEx(d, e)                                                                          \
    CALL(-2, core2, 4, int (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t *), d, e)
#define nvtxDomainRangePop(d) CALL(-2, core2, 5, int (*)(nvtxDomainHandle_t), d)
#endif

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);

#define MIB ((size_t)1 << 20)

static unsigned long long allocate(size_t bytes)
{
    unsigned long long address;
    if (cuMemAlloc_v2(&address, bytes))
        exit(3);
    return address;
}

static void check(int is, int should)
{
    if (is != should) {
        fprintf(stderr, "level %d instead of %d\n", is, should);
        exit(4);
    }
}

static void *context;
static nvtxRangeId_t across;

static void *other_thread(void *arg)
{
    cuCtxSetCurrent(context);
    check(nvtxRangePop(), (int)(intptr_t)arg); /* nothing of this thread's */
    nvtxRangeEnd(across);
    return NULL;
}

int main(int count, char **arguments)
{
    int served = count > 1 && strcmp(arguments[1], "served") == 0;
    int level0 = served ? 0 : -2, level1 = served ? 1 : -2, none = served ? -1 : -2;
    pthread_t thread;

    check(nvtxRangePushA("whole"), level0); /* before there is any CUDA */
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);

    check(nvtxRangePushA("load"), level1);
    allocate(8 * MIB);
    check(nvtxRangePop(), level1);

    nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "forward";
    for (int i = 0; i < 3; i++) {
        check(nvtxRangePushEx(&event), level1);
        cuMemFree_v2(allocate(4 * MIB));
        allocate(MIB);
        check(nvtxRangePop(), level1);
    }

    nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "exchange");
    check(nvtxDomainRangePushEx(domain, &event), level0);
    allocate(2 * MIB);
    check(nvtxDomainRangePop(domain), level0);
    check(nvtxDomainRangePop(domain), none);

    across = nvtxRangeStartA("across threads");
    allocate(16 * MIB);
    pthread_create(&thread, NULL, other_thread, (void *)(intptr_t)none);
    pthread_join(thread, NULL);
    check(nvtxRangePop(), level0);
    check(nvtxRangePop(), none);
    return 0;
}
