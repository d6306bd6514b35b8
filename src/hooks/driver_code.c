/*
 * Modules and libraries: their code lies in device memory, and the driver does not tell how much. It is
 * measured around the calls that load it: at once, or with the first function that is asked for, as
 * CUDA_MODULE_LOADING has it (lazily since CUDA 12.2). What is loaded only when a kernel is launched is not
 * seen here: launches are too many to be stood in front of.
 *
 * A program may ask for functions all the time; see device_samples_affordable().
 */
#include "hooks/call.h"
#include "hooks/device_samples.h"

#define WORTH_A_SAMPLE (1 << 20) /* bytes that a load takes */

static struct device_window before(const struct call *call)
{
    struct device_window window = {.device = DEVICE_UNKNOWN};
    if (call->acts && device_samples_affordable())
        device_window_open(&window, place_current_device(), false);
    return window;
}

/* `count` more are loaded than before, where the call succeeded. */
static void after(const struct call *call, CUresult rc, struct device_window *window, int count)
{
    int device = window->device;
    struct device_change change = device_window_close(window);
    if (!call->acts || rc != CUDA_SUCCESS || (count == 0 && change.bytes == 0))
        return;
    context_holds_code(count, change);
    if (change.bytes >= WORTH_A_SAMPLE)
        device_sample(device, SAMPLE_CODE);
}

#define CODE_CALL(name, count, ...)                                                                          \
    FORWARD(name);                                                                                           \
    struct device_window window = before(&call);                                                             \
    CUresult rc = REAL(__VA_ARGS__);                                                                         \
    after(&call, rc, &window, count);                                                                        \
    return call_end(&call, rc)

HOOK(cuModuleLoad, (CUmodule * module, const char *path))
{
    CODE_CALL(cuModuleLoad, 1, module, path);
}

HOOK(cuModuleLoadData, (CUmodule * module, const void *image))
{
    CODE_CALL(cuModuleLoadData, 1, module, image);
}

HOOK(cuModuleLoadDataEx,
     (CUmodule * module, const void *image, unsigned int count, CUjit_option *options, void **values))
{
    CODE_CALL(cuModuleLoadDataEx, 1, module, image, count, options, values);
}

HOOK(cuModuleLoadFatBinary, (CUmodule * module, const void *image))
{
    CODE_CALL(cuModuleLoadFatBinary, 1, module, image);
}

HOOK(cuModuleUnload, (CUmodule module))
{
    CODE_CALL(cuModuleUnload, -1, module);
}

HOOK(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))
{
    CODE_CALL(cuModuleGetFunction, 0, function, module, name);
}

HOOK(cuLibraryLoadData, (CUlibrary * library, const void *code, CUjit_option *jit_options, void **jit_values,
                         unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count))
{
    CODE_CALL(cuLibraryLoadData, 1, library, code, jit_options, jit_values, jit_count, options, values,
              count);
}

HOOK(cuLibraryLoadFromFile,
     (CUlibrary * library, const char *path, CUjit_option *jit_options, void **jit_values,
      unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count))
{
    CODE_CALL(cuLibraryLoadFromFile, 1, library, path, jit_options, jit_values, jit_count, options, values,
              count);
}

HOOK(cuLibraryUnload, (CUlibrary library))
{
    CODE_CALL(cuLibraryUnload, -1, library);
}

HOOK(cuLibraryGetModule, (CUmodule * module, CUlibrary library))
{
    CODE_CALL(cuLibraryGetModule, 0, module, library);
}

HOOK(cuKernelGetFunction, (CUfunction * function, CUkernel kernel))
{
    CODE_CALL(cuKernelGetFunction, 0, function, kernel);
}

HOOK(cuFuncLoad, (CUfunction function))
{
    CODE_CALL(cuFuncLoad, 0, function);
}
