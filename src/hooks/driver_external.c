/* Memory of Vulkan, Direct3D and others, mapped into CUDA. The external memory object itself holds nothing of
 * ours; what is mapped from it is freed like any other memory. */
#include "hooks/array_size.h"
#include "hooks/call.h"

HOOK(cuExternalMemoryGetMappedBuffer,
     (CUdeviceptr * address, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *of))
{
    FORWARD(cuExternalMemoryGetMappedBuffer);
    CUresult rc = REAL(address, memory, of);
    call_allocated(&call, rc,
                   &(struct allocation){BLOCK(EXTERNAL, FOREIGN, ADDRESS), .key = GRANTED(*address),
                                        .size = of == NULL ? 0 : of->size});
    return call_end(&call, rc);
}

HOOK(cuExternalMemoryGetMappedMipmappedArray,
     (CUmipmappedArray * array, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *of))
{
    FORWARD(cuExternalMemoryGetMappedMipmappedArray);
    CUresult rc = REAL(array, memory, of);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(EXTERNAL, FOREIGN, ARRAY), .key = GRANTED((uintptr_t)*array),
                             .size = of == NULL ? 0 : array_size_of_levels(&of->arrayDesc, of->numLevels)});
    return call_end(&call, rc);
}
