/*
 * Memory that graphs own. An allocation node has its addresses from the day it is made, and memory from the
 * moment its graph runs until it is freed: by a free node, by cuMemFree, or on a stream. The device keeps
 * what graphs gave back until it is trimmed.
 */
#include "graph.h"

#include "entry.h"
#include "memory.h"

struct graph_memory {
    struct span *span; /* addresses without physical memory */
    struct device *device;
    uint64_t bytes;
    struct block *block; /* while alive */
    unsigned references; /* nodes, steps of executable graphs, and itself while alive */
    struct graph *freed_in;
};

static struct slab memory_slab = {.size = sizeof(struct graph_memory)};

/* Addresses for an allocation of a graph; NULL: no memory. One reference. */
static struct graph_memory *new_memory(struct device *device, uint64_t bytes)
{
    if (!device->graph_window)
        device->graph_window = window_new(device->window->size / 4, NULL, true);
    struct span *span = device->graph_window ? span_take(device->graph_window, bytes) : NULL;
    struct graph_memory *memory = span ? slab_take(&memory_slab) : NULL;
    if (!memory) {
        if (span)
            span_give(span);
        return NULL;
    }
    *memory = (struct graph_memory){.span = span, .device = device, .bytes = bytes, .references = 1};
    span->graph = memory;
    return memory;
}

void graph_memory_hold(struct graph_memory *memory)
{
    memory->references++;
}

void graph_memory_release(struct graph_memory *memory)
{
    if (--memory->references)
        return;
    span_give(memory->span);
    slab_give(&memory_slab, memory);
}

/* The one that starts at an address, alive or not; NULL: none. */
static struct graph_memory *memory_starting_at(CUdeviceptr address)
{
    const struct span *span = span_at(address);
    return span && span->graph && span->start == address ? span->graph : NULL;
}

CUdeviceptr graph_memory_address(const struct graph_memory *memory)
{
    return memory->span->start;
}

struct device *graph_memory_device(const struct graph_memory *memory)
{
    return memory->device;
}

uint64_t graph_memory_bytes(const struct graph_memory *memory)
{
    return memory->bytes;
}

bool graph_memory_is_alive(const struct graph_memory *memory)
{
    return memory->block;
}

struct graph *graph_memory_freed_in(const struct graph_memory *memory)
{
    return memory->freed_in;
}

void graph_memory_set_freed_in(struct graph_memory *memory, struct graph *graph)
{
    memory->freed_in = graph;
}

/* ---- alive ---- */

static void set_used(struct device *device, uint64_t used)
{
    device->graph_used = used;
    if (used > device->graph_used_high)
        device->graph_used_high = used;
}

/* Physical memory for what graphs use: more is taken when what earlier ones left is not enough. */
static bool reserve(struct device *device, uint64_t used)
{
    uint64_t granules = (used + GRANULE - 1) / GRANULE, have = device->graph_reserved / GRANULE;
    if (granules > have && !physical_take(device, granules - have))
        return false;
    if (granules > have)
        device->graph_reserved = granules * GRANULE;
    if (device->graph_reserved > device->graph_reserved_high)
        device->graph_reserved_high = device->graph_reserved;
    return true;
}

/* The block goes; its addresses stay while nodes have them. */
static void forget_block(struct block *block)
{
    struct graph_memory *memory = block->owner;
    memory->span->block = NULL;
    memory->block = NULL;
    block->span = NULL;
    set_used(memory->device, memory->device->graph_used - round_up(memory->bytes, UNIT));
}

CUresult graph_memory_begin(struct graph_memory *memory)
{
    struct device *device = memory->device;
    uint64_t used = device->graph_used + round_up(memory->bytes, UNIT);
    if (memory->block)
        return CUDA_ERROR_INVALID_VALUE;
    if (!reserve(device, used))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct block *block = block_on(memory->span, memory->span->start, memory->bytes, BLOCK_GRAPH);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->device = device;
    block->owner = memory;
    block->on_end = forget_block;
    memory->span->block = memory->block = block;
    set_used(device, used);
    memory->references++;
    return CUDA_SUCCESS;
}

void graph_memory_finish(struct graph_memory *memory)
{
    block_end(memory->block);
    graph_memory_release(memory);
}

CUresult graph_free_block(struct block *block)
{
    graph_memory_finish(block->owner);
    return CUDA_SUCCESS;
}

/* ---- what the device keeps for graphs ---- */

static CUresult trim(CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    uint64_t needed = round_up(device->graph_used, GRANULE);
    physical_give(device, (device->graph_reserved - needed) / GRANULE);
    device->graph_reserved = needed;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    return CALL("cuDeviceGraphMemTrim", NEEDS_INIT, trim(device));
}

static CUresult get_attribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    const struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t values[] = {device->graph_used, device->graph_used_high, device->graph_reserved,
                               device->graph_reserved_high};
    *(uint64_t *)value = values[attribute];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    return CALL("cuDeviceGetGraphMemAttribute", NEEDS_INIT | needs_when_asked(),
                get_attribute(device, attribute, value));
}

/* The high-water marks can be set to 0 only: they start again from what is now. */
static CUresult set_attribute(CUdevice ordinal, CUgraphMem_attribute attribute, const void *value)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(const uint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        device->graph_used_high = device->graph_used;
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        device->graph_reserved_high = device->graph_reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    return CALL("cuDeviceSetGraphMemAttribute", NEEDS_INIT, set_attribute(device, attribute, value));
}

/* ---- nodes ---- */

CUresult graph_add_allocation(struct graph *graph, struct node *const *behind, size_t count,
                              CUDA_MEM_ALLOC_NODE_PARAMS *parameters, struct node **out)
{
    struct device *device = parameters ? device_get(parameters->poolProps.location.id) : NULL;
    if (!device || !parameters->bytesize ||
        parameters->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        parameters->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (parameters->poolProps.handleTypes)
        return CUDA_ERROR_NOT_SUPPORTED; /* graph memory is not shared between processes */
    struct graph_memory *memory = new_memory(device, parameters->bytesize);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .memory = memory};
    CUresult result = graph_add(graph, &work, behind, count, out);
    if (result != CUDA_SUCCESS) {
        graph_memory_release(memory);
        return result;
    }
    parameters->dptr = memory->span->start;
    return CUDA_SUCCESS;
}

CUresult graph_add_free(struct graph *graph, struct node *const *behind, size_t count, CUdeviceptr address,
                        struct node **out)
{
    struct graph_memory *memory = memory_starting_at(address);
    if (!memory || memory->freed_in)
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .memory = memory};
    CUresult result = graph_add(graph, &work, behind, count, out);
    if (result != CUDA_SUCCESS)
        return result;
    memory->references++;
    memory->freed_in = graph;
    return CUDA_SUCCESS;
}
