/*
 * Contexts: made and ended, a stack of them for each thread, and the primary one of each device. A context
 * that was ended stays readable while it stands on a thread's stack, so that the thread can be told so.
 */
#include "code.h"
#include "entry.h"

#include <stdlib.h>

#define STACK_DEPTH 64

/* By CUlimit: stack, printf, heap, sync depth, pending launches, L2 fetch granularity, persisting L2, shared
 * memory. */
static const uint64_t default_limits[CONTEXT_LIMITS] = {DEFAULT_STACK, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};

struct stack {
    struct context *contexts[STACK_DEPTH];
    int depth;
};

static __thread struct stack stack;
static unsigned long long last_id;

/* What is on top, a green context's view as itself. */
static struct context *top(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

struct context *context_current(void)
{
    struct context *context = top();
    return context && context->green_parent ? context->green_parent : context;
}

CUresult context_state(void)
{
    const struct context *context = top();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context->alive && context_current()->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct context *context_get(CUcontext handle)
{
    struct context *context = handle_get(handle, HANDLE_CONTEXT);
    return context && context->alive ? context : NULL;
}

/* ---- life ---- */

CUresult context_start(struct context *context)
{
    struct device *device = context->device;
    if (!physical_take(device, (simgpu_context_bytes() + GRANULE - 1) / GRANULE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->alive = true;
    context->id = ++last_id;
    context->peers = 0;
    context->references = 1;
    for (size_t i = 0; i < CONTEXT_LIMITS; i++)
        context->limits[i] = default_limits[i];
    context->device_memory.window = device->window;
    context->managed_memory.window = managed_window();
    context->pinned_memory.window = host_window();
    return CUDA_SUCCESS;
}

/* Ends everything in the context; its structure stays. */
void context_stop(struct context *context)
{
    while (context->handles)
        handle_teardown(context->handles);
    while (context->blocks)
        block_end(context->blocks);
    code_end_in(context);
    physical_give(context->device,
                  (simgpu_context_bytes() + GRANULE - 1) / GRANULE + context->stack_granules);
    context->stack_granules = 0;
    context->alive = false;
}

static void context_drop(struct context *context)
{
    if (context->alive || context->stacked || context == context->device->primary)
        return;
    free(context->legacy);
    handle_end(context, sizeof *context);
}

struct context *context_view(struct context *context)
{
    struct context *view = handle_new(HANDLE_CONTEXT, sizeof *view, NULL);
    if (!view)
        return NULL;
    view->device = context->device;
    view->flags = context->flags;
    view->api_version = context->api_version;
    view->id = ++last_id;
    view->alive = true;
    view->green_parent = context;
    return view;
}

CUresult context_new(struct context **out, struct device *device, unsigned flags)
{
    struct context *context = handle_new(HANDLE_CONTEXT, sizeof *context, NULL);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->device = device;
    context->flags = flags;
    context->api_version = 3020;
    CUresult result = context_start(context);
    if (result == CUDA_SUCCESS)
        *out = context;
    else
        handle_end(context, sizeof *context);
    return result;
}

/* ---- the thread's stack ---- */

static CUresult push(struct context *context)
{
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.contexts[stack.depth++] = context;
    context->stacked++;
    return CUDA_SUCCESS;
}

static struct context *pop(void)
{
    struct context *context = stack.contexts[--stack.depth];
    context->stacked--;
    return context;
}

void context_end_view(struct context *view)
{
    if (stack.depth && top() == view)
        pop();
    view->alive = false;
    view->green = NULL;
    context_drop(view);
}

static CUresult pop_current(CUcontext *out)
{
    if (!stack.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct context *context = pop();
    if (out)
        *out = (CUcontext)context;
    context_drop(context);
    return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext handle)
{
    struct context *context = context_get(handle);
    return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult set_current(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (handle && !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth)
        context_drop(pop());
    return context ? push(context) : CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)top();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    return CALL("cuCtxPushCurrent", NEEDS_INIT, push_current(context));
}

EXPORT CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    return CALL("cuCtxPopCurrent", NEEDS_INIT, pop_current(context));
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    return CALL("cuCtxSetCurrent", NEEDS_INIT, set_current(context));
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    return CALL("cuCtxGetCurrent", NEEDS_INIT, get_current(context));
}

/* ---- created contexts ---- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context;
    CUresult result = context_new(&context, device, flags);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (CUcontext)context;
    return push(context);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device)
{
    return cuCtxCreate_v2(out, flags, device);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinities, int count, unsigned int flags,
                               CUdevice device)
{
    if (count && !affinities)
        return CUDA_ERROR_INVALID_VALUE;
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    if (params && params->cigParams && params->numExecAffinityParams)
        return CUDA_ERROR_INVALID_VALUE; /* the two exclude each other */
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

static CUresult destroy(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (!context || context == context->device->primary || context->green_parent)
        return handle ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    if (top() == context)
        pop();
    context_stop(context);
    context_drop(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    return CALL("cuCtxDestroy", NEEDS_INIT, destroy(context));
}

EXPORT CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

static CUresult attach(CUcontext *out, unsigned flags)
{
    struct context *context = context_current();
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    context->references++;
    *out = (CUcontext)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    return CALL("cuCtxAttach", NEEDS_CONTEXT, attach(context, flags));
}

static CUresult detach(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (!context || context != context_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->references ? CUDA_SUCCESS : destroy(handle);
}

EXPORT CUresult cuCtxDetach(CUcontext context)
{
    return CALL("cuCtxDetach", NEEDS_INIT, detach(context));
}
