/* Multicast objects of this one device, and the memory that is bound to them: it lives as long as that. */
#include "work.h"

#define GRANULES 3

void create_multicast(struct work *work)
{
    CUmulticastObjectProp props = {.numDevices = random_below(work, 8) ? 1 : 99, .size = GRANULES * GRANULE};
    CUmemGenericAllocationHandle made = 0;
    struct handle *handle = free_handle(work);
    if (handle == NULL || note(work, "multicast", cuMulticastCreate(&made, &props), 0) != CUDA_SUCCESS)
        return;
    *handle = (struct handle){made, NO_FAMILY, false, props.size, props.size, 1, 0};
    if (random_below(work, 8))
        note(work, "add the device", cuMulticastAddDevice(made, 0), 0);
}

static int any_handle(struct work *work, bool multicast)
{
    int index = (int)random_below(work, HANDLES);
    const struct handle *handle = &work->handles[index];
    bool fits = handle->handle != 0 && handle->references > 0 && (handle->family == NO_FAMILY) == multicast;
    return fits ? index : -1;
}

static void bind(struct work *work, struct binding *binding)
{
    int object = any_handle(work, true), memory = any_handle(work, false);
    unsigned granule = random_below(work, GRANULES + 1); /* one too far */
    CUresult rc;
    if (object < 0)
        return;
    CUmemGenericAllocationHandle handle = work->handles[object].handle;
    if (random_below(work, 2)) {
        int slot = (int)random_below(work, SLOTS);
        memory = work->slots[slot];
        if (memory < 0)
            return;
        rc = cuMulticastBindAddr(handle, granule * GRANULE, work->range + (unsigned)slot * GRANULE, GRANULE,
                                 0);
    } else {
        if (memory < 0)
            return;
        rc = cuMulticastBindMem(handle, granule * GRANULE, work->handles[memory].handle, 0, GRANULE, 0);
    }
    if (note(work, "bind", rc, 0) != CUDA_SUCCESS)
        return;
    *binding = (struct binding){object, memory, granule};
    work->handles[memory].mappings++;
}

static void let_go(struct work *work, struct binding *binding)
{
    struct handle *memory = &work->handles[binding->memory];
    binding->object = -1;
    memory->mappings--;
    settle(work, memory);
}

static void unbind(struct work *work, struct binding *binding)
{
    const struct handle *object = &work->handles[binding->object];
    if (object->references == 0)
        return;
    unsigned granule = random_below(work, 8) ? binding->granule : GRANULES;
    CUresult rc = cuMulticastUnbind(object->handle, 0, granule * GRANULE, GRANULE);
    if (note(work, "unbind", rc, 0) == CUDA_SUCCESS)
        let_go(work, binding);
}

void change_bindings(struct work *work)
{
    struct binding *binding = &work->bindings[random_below(work, BINDINGS)];
    if (binding->object < 0)
        bind(work, binding);
    else
        unbind(work, binding);
}

void multicast_ended(struct work *work, int object)
{
    for (int i = 0; i < BINDINGS; i++) {
        if (work->bindings[i].object == object)
            let_go(work, &work->bindings[i]);
    }
}
