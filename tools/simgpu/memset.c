/* cuMemsetD8, D16, D32, their two-dimensional and stream-ordered kin. */
#include "copy.h"

#include "entry.h"
#include "stream.h"

static CUresult submit(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
                       size_t height, CUstream stream)
{
    struct fill fill = {to, pitch, width, height, value, element};
    return fill_submit(&fill, stream);
}

#define FLAT(name, value_type, element)                                                                      \
    EXPORT CUresult name##_v2(CUdeviceptr to, value_type value, size_t count)                                \
    {                                                                                                        \
        return CALL(#name, NEEDS_MEMORY_CALL, submit(to, 0, value, element, count, 1, NULL));                \
    }                                                                                                        \
    EXPORT CUresult name##_v2_ptds(CUdeviceptr to, value_type value, size_t count)                           \
    {                                                                                                        \
        return name##_v2(to, value, count);                                                                  \
    }                                                                                                        \
    EXPORT CUresult name(CUdeviceptr_v1 to, value_type value, unsigned int count)                            \
    {                                                                                                        \
        return name##_v2(to, value, count);                                                                  \
    }                                                                                                        \
    EXPORT CUresult name##Async(CUdeviceptr to, value_type value, size_t count, CUstream stream)             \
    {                                                                                                        \
        return CALL(#name "Async", NEEDS_CONTEXT, submit(to, 0, value, element, count, 1, stream));          \
    }                                                                                                        \
    EXPORT CUresult name##Async_ptsz(CUdeviceptr to, value_type value, size_t count, CUstream stream)        \
    {                                                                                                        \
        return name##Async(to, value, count, per_thread(stream));                                            \
    }
FLAT(cuMemsetD8, unsigned char, 1)
FLAT(cuMemsetD16, unsigned short, 2)
FLAT(cuMemsetD32, unsigned int, 4)

#define RECTANGLE(name, value_type, element)                                                                 \
    EXPORT CUresult name##_v2(CUdeviceptr to, size_t pitch, value_type value, size_t width, size_t height)   \
    {                                                                                                        \
        return CALL(#name, NEEDS_MEMORY_CALL, submit(to, pitch, value, element, width, height, NULL));       \
    }                                                                                                        \
    EXPORT CUresult name##_v2_ptds(CUdeviceptr to, size_t pitch, value_type value, size_t width,             \
                                   size_t height)                                                            \
    {                                                                                                        \
        return name##_v2(to, pitch, value, width, height);                                                   \
    }                                                                                                        \
    EXPORT CUresult name(CUdeviceptr_v1 to, unsigned int pitch, value_type value, unsigned int width,        \
                         unsigned int height)                                                                \
    {                                                                                                        \
        return name##_v2(to, pitch, value, width, height);                                                   \
    }                                                                                                        \
    EXPORT CUresult name##Async(CUdeviceptr to, size_t pitch, value_type value, size_t width, size_t height, \
                                CUstream stream)                                                             \
    {                                                                                                        \
        return CALL(#name "Async", NEEDS_CONTEXT, submit(to, pitch, value, element, width, height, stream)); \
    }                                                                                                        \
    EXPORT CUresult name##Async_ptsz(CUdeviceptr to, size_t pitch, value_type value, size_t width,           \
                                     size_t height, CUstream stream)                                         \
    {                                                                                                        \
        return name##Async(to, pitch, value, width, height, per_thread(stream));                             \
    }
RECTANGLE(cuMemsetD2D8, unsigned char, 1)
RECTANGLE(cuMemsetD2D16, unsigned short, 2)
RECTANGLE(cuMemsetD2D32, unsigned int, 4)
