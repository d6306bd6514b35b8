/*
 * Modules, libraries, functions and kernels: only their handles exist, and what their code takes of the
 * device's memory (code.h). Any image loads, any name is found in it, and a launch does nothing but say so
 * where SIMGPU_VERBOSE asks for it.
 */
#include "entry.h"

#include <stdio.h>
#include <string.h>

#include "code.h"
#include "graph.h"
#include "module.h"

enum { CU_MODULE_EAGER_LOADING = 1, CU_MODULE_LAZY_LOADING = 2 };

#define NAME_ROOM       96
#define ATTRIBUTE_COUNT 16 /* of CUfunction_attribute */

struct function {
    struct handle handle;
    void *module; /* or library */
    char name[NAME_ROOM];
    int attributes[ATTRIBUTE_COUNT];
    struct function *next;
};

struct module { /* or library */
    struct handle handle;
    struct function *functions;
    uint64_t bytes; /* of its image */
};

/* The kernel or function of a module or library by that name; made on first use. */
static struct function *function_named(struct module *module, enum handle_type type, const char *name)
{
    struct function *function;
    for (function = module->functions; function; function = function->next)
        if (function->handle.type == type && strncmp(function->name, name, NAME_ROOM - 1) == 0)
            return function;
    function = handle_new(type, sizeof *function, NULL);
    if (!function)
        return NULL;
    function->module = module;
    snprintf(function->name, sizeof function->name, "%s", name);
    function->attributes[0] = 1024; /* threads per block */
    function->attributes[4] = 32;   /* registers */
    function->attributes[5] = function->attributes[6] = 80;
    function->next = module->functions;
    module->functions = function;
    return function;
}

void module_end(void *object)
{
    struct module *module = object;
    while (module->functions) {
        struct function *function = module->functions;
        module->functions = function->next;
        handle_end(function, sizeof *function);
    }
    code_end(module);
    handle_end(module, sizeof *module);
}

/* Its code is wanted in the current context; a library's may be loaded without one. */
static CUresult need_code(const struct module *module)
{
    struct context *context = context_current();
    return context && context_state() == CUDA_SUCCESS ? code_load(module, module->bytes, context)
                                                      : CUDA_SUCCESS;
}

static CUresult load_bytes(void **out, uint64_t bytes, enum handle_type type)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    struct module *module =
        handle_new(type, sizeof *module, type == HANDLE_MODULE ? context_current() : NULL);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->bytes = bytes;
    CUresult result = code_is_lazy() ? CUDA_SUCCESS : need_code(module);
    if (result == CUDA_SUCCESS)
        *out = module;
    else
        module_end(module);
    return result;
}

static CUresult load(void **out, const void *image, enum handle_type type)
{
    return image ? load_bytes(out, code_image_bytes(image), type) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult load_file(void **out, const char *path, enum handle_type type)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file)
        return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    long bytes = fseek(file, 0, SEEK_END) ? 0 : ftell(file);
    fclose(file);
    return load_bytes(out, bytes > 0 ? (uint64_t)bytes : 0, type);
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    return CALL("cuModuleLoad", NEEDS_CONTEXT, load_file((void **)module, path, HANDLE_MODULE));
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return CALL("cuModuleLoadData", NEEDS_CONTEXT, load((void **)module, image, HANDLE_MODULE));
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, void *options,
                                   void **values)
{
    (void)count, (void)options, (void)values;
    return CALL("cuModuleLoadDataEx", NEEDS_CONTEXT, load((void **)module, image, HANDLE_MODULE));
}

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return CALL("cuModuleLoadFatBinary", NEEDS_CONTEXT, load((void **)module, image, HANDLE_MODULE));
}

static CUresult unload(void *handle, enum handle_type type)
{
    struct module *module = handle_get(handle, type);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    module_end(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    return CALL("cuModuleUnload", NEEDS_CONTEXT, unload(module, HANDLE_MODULE));
}

static CUresult find(void **out, void *handle, enum handle_type owner, enum handle_type type,
                     const char *name)
{
    struct module *module = handle_get(handle, owner);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = type == HANDLE_FUNCTION ? need_code(module) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
    *out = function_named(module, type, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    return CALL("cuModuleGetFunction", NEEDS_CONTEXT,
                find((void **)function, module, HANDLE_MODULE, HANDLE_FUNCTION, name));
}

/* What variables an image holds is not known here. */
EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    (void)address, (void)bytes;
    CUresult known = handle_get(module, HANDLE_MODULE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
    return CALL("cuModuleGetGlobal", NEEDS_CONTEXT, name ? known : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *bytes, CUmodule module,
                                  const char *name)
{
    (void)address, (void)bytes;
    return cuModuleGetGlobal_v2(NULL, NULL, module, name);
}

EXPORT CUresult cuModuleGetLoadingMode(unsigned int *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = code_is_lazy() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

/* ---- libraries ---- */

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, void *jit_options, void **jit_values,
                                  unsigned int jit_count, void *options, void **values, unsigned int count)
{
    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return CALL("cuLibraryLoadData", NEEDS_INIT, load((void **)library, code, HANDLE_LIBRARY));
}

EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, void *jit_options,
                                      void **jit_values, unsigned int jit_count, void *options, void **values,
                                      unsigned int count)
{
    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return CALL("cuLibraryLoadFromFile", NEEDS_INIT, load_file((void **)library, path, HANDLE_LIBRARY));
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    return CALL("cuLibraryUnload", NEEDS_INIT, unload(library, HANDLE_LIBRARY));
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return CALL("cuLibraryGetKernel", NEEDS_INIT,
                find((void **)kernel, library, HANDLE_LIBRARY, HANDLE_KERNEL, name));
}

static CUresult function_of_kernel(CUfunction *out, CUkernel handle)
{
    struct function *kernel = handle_get(handle, HANDLE_KERNEL);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    return find((void **)out, kernel->module, HANDLE_LIBRARY, HANDLE_FUNCTION, kernel->name);
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    return CALL("cuKernelGetFunction", NEEDS_CONTEXT, function_of_kernel(function, kernel));
}

static struct function *launchable(const void *handle)
{
    struct function *function = handle_get(handle, HANDLE_FUNCTION);
    return function ? function : handle_get(handle, HANDLE_KERNEL); /* a kernel may stand in for one */
}

static CUresult name_of(const char **name, const void *handle)
{
    const struct function *function = launchable(handle);
    if (!name || !function)
        return name ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    *name = function->name;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction function)
{
    return CALL("cuFuncGetName", NEEDS_INIT, name_of(name, function));
}

EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return CALL("cuKernelGetName", NEEDS_INIT, name_of(name, kernel));
}

static CUresult get_attribute(int *value, int attribute, const void *handle)
{
    const struct function *function = launchable(handle);
    if (!value || attribute < 0 || attribute >= ATTRIBUTE_COUNT || !function)
        return function ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *value = function->attributes[attribute];
    return CUDA_SUCCESS;
}

static CUresult set_attribute(const void *handle, int attribute, int value)
{
    struct function *function = launchable(handle);
    if (attribute < 0 || attribute >= ATTRIBUTE_COUNT || !function)
        return function ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    return CALL("cuFuncGetAttribute", NEEDS_CONTEXT, get_attribute(value, attribute, function));
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    return CALL("cuFuncSetAttribute", NEEDS_CONTEXT, set_attribute(function, attribute, value));
}

EXPORT CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device)
{
    (void)device;
    return CALL("cuKernelGetAttribute", NEEDS_INIT, get_attribute(value, attribute, kernel));
}

EXPORT CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device)
{
    (void)device;
    return CALL("cuKernelSetAttribute", NEEDS_INIT, set_attribute(kernel, attribute, value));
}

/* ---- launches ---- */

struct shape {
    unsigned grid[3], block[3];
};

static CUresult launch(const void *handle, const struct shape *shape, CUstream stream_handle)
{
    const struct function *function = launchable(handle);
    struct stream *stream;
    CUresult result = function ? stream_for_work(stream_handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = need_code(function->module);
    if (result != CUDA_SUCCESS)
        return result;
    for (int i = 0; i < 3; i++)
        if (!shape->grid[i] || !shape->block[i])
            return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) {
        CUDA_KERNEL_NODE_PARAMS kernel = {.func = (CUfunction)handle,
                                          .gridDimX = shape->grid[0],
                                          .gridDimY = shape->grid[1],
                                          .gridDimZ = shape->grid[2],
                                          .blockDimX = shape->block[0],
                                          .blockDimY = shape->block[1],
                                          .blockDimZ = shape->block[2]};
        return graph_capture_kernel(stream, &kernel);
    }
    if (simgpu_verbose())
        fprintf(stderr, "simgpu: %s<<<(%u,%u,%u), (%u,%u,%u)>>> is not run\n", function->name, shape->grid[0],
                shape->grid[1], shape->grid[2], shape->block[0], shape->block[1], shape->block[2]);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                               unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                               CUstream stream, void **parameters, void **extra)
{
    (void)shared, (void)parameters, (void)extra;
    struct shape shape = {{gx, gy, gz}, {bx, by, bz}};
    return CALL("cuLaunchKernel", NEEDS_CONTEXT, launch(function, &shape, stream));
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                    CUstream stream, void **parameters, void **extra)
{
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, per_thread(stream), parameters, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                          unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
                                          unsigned int shared, CUstream stream, void **parameters)
{
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy,
                                               unsigned int gz, unsigned int bx, unsigned int by,
                                               unsigned int bz, unsigned int shared, CUstream stream,
                                               void **parameters)
{
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, per_thread(stream), parameters, NULL);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                 void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                          config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream,
                          parameters, extra);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                      void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig own = *config;
    own.hStream = per_thread(config->hStream);
    return cuLaunchKernelEx(&own, function, parameters, extra);
}

/* Host functions run at once, on the calling thread, outside the lock: they may take locks of the program's.
 */
static CUresult host_function(CUstream handle, CUhostFn function, void *data)
{
    struct stream *stream;
    CUresult result = function ? stream_for_work(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && stream->capture)
        return graph_capture_host(stream, function, data);
    if (result == CUDA_SUCCESS)
        entry_call_later(function, data);
    return result;
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    return CALL("cuLaunchHostFunc", NEEDS_CONTEXT, host_function(stream, function, data));
}

EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data)
{
    return cuLaunchHostFunc(per_thread(stream), function, data);
}

static CUresult add_callback(CUstream handle, CUstreamCallback function, unsigned flags)
{
    struct stream *stream;
    CUresult result = function && !flags ? stream_for_work(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS && stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : result;
}

EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data,
                                    unsigned int flags)
{
    CUresult result = CALL("cuStreamAddCallback", NEEDS_CONTEXT, add_callback(stream, function, flags));
    if (result == CUDA_SUCCESS)
        function(stream, CUDA_SUCCESS, data);
    return result;
}

EXPORT CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void *data,
                                         unsigned int flags)
{
    return cuStreamAddCallback(per_thread(stream), function, data, flags);
}
