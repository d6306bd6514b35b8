/* Graphs, what they keep alive, and the memory that they hold of a device. */
#include "runtime.h"

EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return ASK(driver.cuGraphCreate(graph, flags));
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return ASK(driver.cuGraphDestroy(graph));
}

EXPORT cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    return ASK(driver.cuGraphClone(clone, graph));
}

EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return RUN(driver.cuGraphGetNodes(graph, nodes, count));
}

EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *behind, size_t count)
{
    return RUN(driver.cuGraphAddEmptyNode(node, graph, behind, count));
}

EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                            const cudaGraphNode_t *behind, size_t count,
                                            cudaMemAllocNodeParams *parameters)
{
    return RUN(driver.cuGraphAddMemAllocNode(node, graph, behind, count, parameters));
}

EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *behind, size_t count, void *pointer)
{
    return RUN(driver.cuGraphAddMemFreeNode(node, graph, behind, count, (CUdeviceptr)pointer));
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags)
{
    return RUN(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return RUN(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return RUN(driver.cuGraphExecDestroy(exec));
}

STREAMED(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), driver.cuGraphLaunch(exec, stream),
         driver.cuGraphLaunch_ptsz(exec, stream))

EXPORT cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return ASK(driver.cuDeviceGraphMemTrim(device));
}

EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device, CUgraphMem_attribute attribute, void *value)
{
    return ASK(driver.cuDeviceGetGraphMemAttribute(device, attribute, value));
}

EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device, CUgraphMem_attribute attribute, void *value)
{
    return ASK(driver.cuDeviceSetGraphMemAttribute(device, attribute, value));
}

EXPORT cudaError_t cudaUserObjectCreate(CUuserObject *out, void *object, CUhostFn destroy,
                                        unsigned int references, unsigned int flags)
{
    return RUN(driver.cuUserObjectCreate(out, object, destroy, references, flags));
}

EXPORT cudaError_t cudaUserObjectRetain(CUuserObject object, unsigned int count)
{
    return RUN(driver.cuUserObjectRetain(object, count));
}

EXPORT cudaError_t cudaUserObjectRelease(CUuserObject object, unsigned int count)
{
    return RUN(driver.cuUserObjectRelease(object, count));
}

EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, CUuserObject object, unsigned int count,
                                             unsigned int flags)
{
    return RUN(driver.cuGraphRetainUserObject(graph, object, count, flags));
}

EXPORT cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, CUuserObject object, unsigned int count)
{
    return RUN(driver.cuGraphReleaseUserObject(graph, object, count));
}
