/* Contexts: made, kept, ended. What goes with which is told in context.h. */
#include "hooks/call.h"
#include "hooks/context.h"

/* What a context takes is measured around its making. */
static struct device_window making(const struct call *call, CUdevice device)
{
    struct device_window window = {.device = DEVICE_UNKNOWN};
    if (call->acts)
        device_window_open(&window, device, true);
    return window;
}

static void created(const struct call *call, CUresult rc, struct device_window *window,
                    const CUcontext *context, CUdevice device)
{
    bool is_made = call->acts && rc == CUDA_SUCCESS;
    if (is_made)
        context_created(*context, device); /* it is current: who asks about it must know it */
    struct device_change change = device_window_close(window);
    if (!is_made)
        return;
    context_took(*context, device, change);
    device_sample(device, SAMPLE_CONTEXT);
}

HOOK(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate);
    struct device_window window = making(&call, device);
    CUresult rc = REAL(context, flags, device);
    created(&call, rc, &window, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v2);
    struct device_window window = making(&call, device);
    CUresult rc = REAL(context, flags, device);
    created(&call, rc, &window, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v3,
     (CUcontext * context, CUexecAffinityParam *params, int count, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v3);
    struct device_window window = making(&call, device);
    CUresult rc = REAL(context, params, count, flags, device);
    created(&call, rc, &window, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v4);
    struct device_window window = making(&call, device);
    CUresult rc = REAL(context, params, flags, device);
    created(&call, rc, &window, context, device);
    return call_end(&call, rc);
}

static void destroyed(const struct call *call, CUresult rc, CUcontext context, bool said)
{
    if (call->acts && rc == CUDA_SUCCESS && !said)
        context_ended(context);
}

HOOK(cuCtxDestroy, (CUcontext context))
{
    FORWARD(cuCtxDestroy);
    bool said = call.acts && context_ending(context);
    CUresult rc = REAL(context);
    destroyed(&call, rc, context, said);
    return call_end(&call, rc);
}

HOOK(cuCtxDestroy_v2, (CUcontext context))
{
    FORWARD(cuCtxDestroy_v2);
    bool said = call.acts && context_ending(context);
    CUresult rc = REAL(context);
    destroyed(&call, rc, context, said);
    return call_end(&call, rc);
}

HOOK(cuCtxAttach, (CUcontext * context, unsigned int flags))
{
    FORWARD(cuCtxAttach);
    CUresult rc = REAL(context, flags);
    if (call.acts && rc == CUDA_SUCCESS)
        context_attached(*context);
    return call_end(&call, rc);
}

/* Refused for a context that is not current, so nothing is sure before. */
HOOK(cuCtxDetach, (CUcontext context))
{
    FORWARD(cuCtxDetach);
    CUresult rc = REAL(context);
    if (call.acts && rc == CUDA_SUCCESS && context_detaching(context))
        context_ended(context);
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))
{
    FORWARD(cuDevicePrimaryCtxRetain);
    struct device_window window = {.device = DEVICE_UNKNOWN};
    if (call.acts && !context_primary_is_active(device))
        window = making(&call, device);
    CUresult rc = REAL(context, device);
    struct device_change change = device_window_close(&window);
    if (call.acts && rc == CUDA_SUCCESS && context_is_primary(*context, device)) {
        context_took(*context, device, change);
        device_sample(device, SAMPLE_CONTEXT);
    }
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxRelease, (CUdevice device))
{
    struct primary_release release;
    FORWARD(cuDevicePrimaryCtxRelease);
    if (call.acts)
        context_primary_releasing(device, &release);
    CUresult rc = REAL(device);
    if (call.acts)
        context_primary_released(device, rc, &release);
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
{
    struct primary_release release;
    FORWARD(cuDevicePrimaryCtxRelease_v2);
    if (call.acts)
        context_primary_releasing(device, &release);
    CUresult rc = REAL(device);
    if (call.acts)
        context_primary_released(device, rc, &release);
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxReset, (CUdevice device))
{
    FORWARD(cuDevicePrimaryCtxReset);
    if (call.acts)
        context_primary_ending(device);
    CUresult rc = REAL(device);
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxReset_v2, (CUdevice device))
{
    FORWARD(cuDevicePrimaryCtxReset_v2);
    if (call.acts)
        context_primary_ending(device);
    CUresult rc = REAL(device);
    return call_end(&call, rc);
}

/* Room for printf, for malloc in kernels, for deeper stacks. */
HOOK(cuCtxSetLimit, (CUlimit limit, size_t value))
{
    FORWARD(cuCtxSetLimit);
    struct device_window window = {.device = DEVICE_UNKNOWN};
    if (call.acts && device_samples_affordable())
        device_window_open(&window, place_current_device(), false);
    CUresult rc = REAL(limit, value);
    struct device_change change = device_window_close(&window);
    if (call.acts && rc == CUDA_SUCCESS)
        context_grew(change);
    return call_end(&call, rc);
}

/* A green context keeps a reference to its device's primary context. */
HOOK(cuGreenCtxDestroy, (CUgreenCtx green))
{
    FORWARD(cuGreenCtxDestroy);
    CUresult rc = REAL(green);
    if (call.acts && rc == CUDA_SUCCESS)
        context_primaries_checked();
    return call_end(&call, rc);
}

HOOK(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green))
{
    FORWARD(cuCtxFromGreenCtx);
    CUresult rc = REAL(context, green);
    if (call.acts && rc == CUDA_SUCCESS)
        context_is_green(*context);
    return call_end(&call, rc);
}
