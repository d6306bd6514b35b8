/* Contexts: made, kept, ended. What goes with which is told in context.h. */
#include "hooks/call.h"
#include "hooks/context.h"

static void created(const struct call *call, CUresult rc, const CUcontext *context, CUdevice device)
{
    if (call->acts && rc == CUDA_SUCCESS)
        context_created(*context, device);
}

HOOK(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate);
    CUresult rc = REAL(context, flags, device);
    created(&call, rc, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v2);
    CUresult rc = REAL(context, flags, device);
    created(&call, rc, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v3,
     (CUcontext * context, CUexecAffinityParam *params, int count, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v3);
    CUresult rc = REAL(context, params, count, flags, device);
    created(&call, rc, context, device);
    return call_end(&call, rc);
}

HOOK(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice device))
{
    FORWARD(cuCtxCreate_v4);
    CUresult rc = REAL(context, params, flags, device);
    created(&call, rc, context, device);
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
    CUresult rc = REAL(context, device);
    if (call.acts && rc == CUDA_SUCCESS)
        context_is_primary(*context, device);
    return call_end(&call, rc);
}

static void released(const struct call *call, CUresult rc)
{
    if (call->acts && rc == CUDA_SUCCESS)
        context_primaries_checked();
}

HOOK(cuDevicePrimaryCtxRelease, (CUdevice device))
{
    FORWARD(cuDevicePrimaryCtxRelease);
    CUresult rc = REAL(device);
    released(&call, rc);
    return call_end(&call, rc);
}

HOOK(cuDevicePrimaryCtxRelease_v2, (CUdevice device))
{
    FORWARD(cuDevicePrimaryCtxRelease_v2);
    CUresult rc = REAL(device);
    released(&call, rc);
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

/* A green context keeps a reference to its device's primary context. */
HOOK(cuGreenCtxDestroy, (CUgreenCtx green))
{
    FORWARD(cuGreenCtxDestroy);
    CUresult rc = REAL(green);
    released(&call, rc);
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
