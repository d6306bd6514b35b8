/*
 * Who uses a simulated device's memory: the code of modules and libraries, other processes that share the
 * device, and what NVML tells of both. Sizes are counted in granules of 2 MiB; formats of images are those of
 * ELF and of NVIDIA's fatbinary_section.h.
 */
#include "simgpu/child.h"

#include <signal.h>
#include <sys/mman.h>

#include "../../src/cuda/abi_nvml.h"

/* A text, as PTX is, of so many bytes. */
static char *text_of(size_t bytes)
{
    char *text = malloc(bytes + 1);
    memset(text, '/', bytes);
    text[bytes] = '\0';
    return text;
}

static void body_test_a_module_takes_its_size_at_its_first_function(void)
{
    start(0);
    CUmodule module;
    CUfunction function;
    unsigned mode;
    OK(CU(cuModuleGetLoadingMode)(&mode));
    EXPECT(mode, 2);
    size_t before = free_bytes();
    OK(CU(cuModuleLoadData)(&module, text_of(3 * MIB)));
    EXPECT(before - free_bytes(), 0);
    OK(CU(cuModuleGetFunction)(&function, module, "one"));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuModuleGetFunction)(&function, module, "two"));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuModuleUnload)(module));
    EXPECT(before - free_bytes(), 0);
}
CHILD_TEST(test_a_module_takes_its_size_at_its_first_function, "SIMGPU_MEMORY=1G")

static void body_test_a_module_takes_its_size_at_once(void)
{
    start(0);
    CUmodule module;
    size_t before = free_bytes();
    OK(CU(cuModuleLoadData)(&module, text_of(3 * MIB)));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuDevicePrimaryCtxReset_v2)(0));
    start(0);
    EXPECT(before - free_bytes(), 0);
    EXPECT(CU(cuModuleLoadData)(&module, text_of(900 * MIB)), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(before - free_bytes(), 0);
}
CHILD_TEST(test_a_module_takes_its_size_at_once, "SIMGPU_MEMORY=1G CUDA_MODULE_LOADING=EAGER")

static void body_test_a_library_is_loaded_into_each_context_that_uses_it(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUcontext second;
    OK(CU(cuInit)(0));
    OK(CU(cuLibraryLoadData)(&library, text_of(5 * MIB), NULL, NULL, 0, NULL, NULL, 0));
    start(0);
    size_t before = free_bytes();
    OK(CU(cuLibraryGetKernel)(&kernel, library, "kernel"));
    EXPECT(before - free_bytes(), 0);
    OK(CU(cuKernelGetFunction)(&function, kernel));
    EXPECT(before - free_bytes(), 6 * MIB);
    OK(CU(cuCtxCreate_v2)(&second, 0, 0));
    before = free_bytes();
    OK(CU(cuLaunchKernel)((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(before - free_bytes(), 6 * MIB);
    OK(CU(cuLibraryUnload)(library));
    EXPECT(free_bytes() - before, 6 * MIB);
}
CHILD_TEST(test_a_library_is_loaded_into_each_context_that_uses_it, "SIMGPU_MEMORY=1G SIMGPU_CONTEXT=64M")

static void body_test_images_tell_their_size(void)
{
    static struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } fat = {0xba55ed50, 1, 16, 7 * MIB};
    static struct {
        uint32_t magic, version;
        const void *data, *name;
    } wrapper = {0x466243b1, 1, &fat, NULL};
    static struct {
        unsigned char ident[16];
        uint16_t type, machine;
        uint32_t version;
        uint64_t entry, segments, sections;
        uint32_t flags;
        uint16_t header_bytes, segment_bytes, segment_count, section_bytes, section_count, names;
    } elf = {.ident = "\177ELF\2\1\1", .sections = 9 * MIB, .section_bytes = 64, .section_count = 10};
    static const struct {
        const void *image;
        size_t taken;
    } images[] = {{&fat, 8 * MIB}, {&wrapper, 8 * MIB}, {&elf, 10 * MIB}, {"?", 2 * MIB}};
    start(0);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        CUmodule module;
        size_t before = free_bytes();
        OK(CU(cuModuleLoadData)(&module, images[i].image));
        EXPECT(before - free_bytes(), images[i].taken);
        OK(CU(cuModuleUnload)(module));
    }
}
CHILD_TEST(test_images_tell_their_size, "CUDA_MODULE_LOADING=EAGER")

/* ---- other processes, and NVML ---- */

static void *nvml_symbol(const char *name)
{
    static void *library;
    /* It looks for the driver by name, as a program's LD_LIBRARY_PATH would have it found. */
    driver_symbol("cuInit");
    if (!library)
        library = dlopen(simgpu_path("libnvidia-ml.so.1"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    return symbol;
}

typedef nvmlReturn_t init_function(unsigned flags);
typedef nvmlReturn_t shutdown_function(void);
typedef nvmlReturn_t by_uuid_function(const char *uuid, nvmlDevice_t *device);
typedef nvmlReturn_t memory_function(nvmlDevice_t device, nvmlMemory_t *memory);
typedef nvmlReturn_t processes_function(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes);

#define NVML(type, name) ((type *)nvml_symbol(name))

static nvmlDevice_t nvml_device(void)
{
    CUuuid uuid;
    char text[NVML_UUID_TEXT], *end = text;
    nvmlDevice_t device;
    OK(CU(cuDeviceGetUuid)(&uuid, 0));
    end += sprintf(end, "GPU-");
    for (int i = 0; i < 16; i++)
        end += sprintf(end, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                       (unsigned char)uuid.bytes[i]);
    EXPECT(NVML(init_function, "nvmlInitWithFlags")(NVML_INIT_FLAG_NO_ATTACH), NVML_SUCCESS);
    EXPECT(NVML(by_uuid_function, "nvmlDeviceGetHandleByUUID")(text, &device), NVML_SUCCESS);
    text[6] ^= 1;
    nvmlDevice_t other;
    EXPECT(NVML(by_uuid_function, "nvmlDeviceGetHandleByUUID")(text, &other), NVML_ERROR_NOT_FOUND);
    return device;
}

static void body_test_nvml_tells_of_this_process(void)
{
    OK(CU(cuInit)(0));
    nvmlDevice_t device = nvml_device();
    nvmlMemory_t memory;
    nvmlProcessInfo_t processes[4];
    unsigned count = 4;
    EXPECT(NVML(memory_function, "nvmlDeviceGetMemoryInfo")(device, &memory), NVML_SUCCESS);
    EXPECT(memory.total, 1 * GIB);
    EXPECT(memory.free, 1 * GIB);
    EXPECT(NVML(processes_function, "nvmlDeviceGetComputeRunningProcesses_v3")(device, &count, processes),
           NVML_SUCCESS);
    EXPECT(count, 0);
    start(0);
    allocate(10 * MIB);
    EXPECT(NVML(memory_function, "nvmlDeviceGetMemoryInfo")(device, &memory), NVML_SUCCESS);
    EXPECT(memory.free, free_bytes());
    EXPECT(memory.used, 74 * MIB);
    EXPECT(NVML(processes_function, "nvmlDeviceGetComputeRunningProcesses_v3")(device, &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT(count, 1);
    EXPECT(NVML(processes_function, "nvmlDeviceGetComputeRunningProcesses_v3")(device, &count, processes),
           NVML_SUCCESS);
    EXPECT(processes[0].pid, getpid());
    EXPECT(processes[0].usedGpuMemory, 74 * MIB);
    EXPECT(NVML(shutdown_function, "nvmlShutdown")(), NVML_SUCCESS);
    EXPECT(NVML(memory_function, "nvmlDeviceGetMemoryInfo")(device, &memory), NVML_ERROR_UNINITIALIZED);
}
CHILD_TEST(test_nvml_tells_of_this_process, "SIMGPU_MEMORY=1G SIMGPU_CONTEXT=64M")

/* Another process that uses the same devices: it is asked for so many MiB through one pipe, answers the
 * driver's error through the other, and lives until it is killed. */
struct neighbour {
    pid_t pid;
    int ask, answer;
};

static struct neighbour neighbour_begin(void)
{
    int ask[2], answer[2];
    TRUE(pipe(ask) == 0 && pipe(answer) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        unsigned mib;
        start(0);
        while (read(ask[0], &mib, sizeof mib) == sizeof mib) {
            CUdeviceptr address;
            CUresult result = CU(cuMemAlloc_v2)(&address, mib * MIB);
            if (write(answer[1], &result, sizeof result) != sizeof result)
                break;
        }
        _exit(0);
    }
    return (struct neighbour){pid, ask[1], answer[0]};
}

static CUresult neighbour_takes(const struct neighbour *neighbour, unsigned mib)
{
    CUresult result;
    TRUE(write(neighbour->ask, &mib, sizeof mib) == sizeof mib);
    TRUE(read(neighbour->answer, &result, sizeof result) == sizeof result);
    return result;
}

static void body_test_processes_share_a_device(void)
{
    char path[] = "/tmp/simgpu-shared-XXXXXX";
    TRUE(mkstemp(path) >= 0);
    setenv("SIMGPU_SHARED", path, 1);
    struct neighbour neighbour = neighbour_begin();
    OK(neighbour_takes(&neighbour, 100));
    start(0);
    EXPECT(free_bytes(), GIB - (100 + 64 + 64) * MIB);
    nvmlProcessInfo_t processes[4];
    unsigned count = 4;
    nvmlDevice_t device = nvml_device();
    EXPECT(NVML(processes_function, "nvmlDeviceGetComputeRunningProcesses_v3")(device, &count, processes),
           NVML_SUCCESS);
    EXPECT(count, 2);
    EXPECT(processes[0].pid, getpid());
    EXPECT(processes[1].pid, neighbour.pid);
    EXPECT(processes[1].usedGpuMemory, 164 * MIB);
    allocate(500 * MIB);
    EXPECT(neighbour_takes(&neighbour, 300), CUDA_ERROR_OUT_OF_MEMORY);
    OK(neighbour_takes(&neighbour, 200));
    EXPECT(free_bytes(), GIB - (100 + 200 + 500 + 64 + 64) * MIB);
    kill(neighbour.pid, SIGKILL);
    waitpid(neighbour.pid, NULL, 0);
    EXPECT(free_bytes(), GIB - (500 + 64) * MIB);
    unlink(path);
}
CHILD_TEST(test_processes_share_a_device, "SIMGPU_MEMORY=1G SIMGPU_CONTEXT=64M")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_module_takes_its_size_at_its_first_function),
        cmocka_unit_test(test_a_module_takes_its_size_at_once),
        cmocka_unit_test(test_a_library_is_loaded_into_each_context_that_uses_it),
        cmocka_unit_test(test_images_tell_their_size),
        cmocka_unit_test(test_nvml_tells_of_this_process),
        cmocka_unit_test(test_processes_share_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
