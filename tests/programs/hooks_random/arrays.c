/* Arrays and mipmaps. */
#include "work.h"

/* Bytes of an array by its descriptor, as the documentation has it: texels of every level. */
static unsigned long long array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned texel, unsigned levels)
{
    unsigned long long total = 0;
    bool layered = (of->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    for (unsigned level = 0; level < levels; level++) {
        unsigned long long width = of->Width >> level, height = of->Height >> level;
        unsigned long long depth = layered ? of->Depth : of->Depth >> level;
        total += (width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) * texel;
    }
    return total;
}

void allocate_array(struct work *work)
{
    static const struct {
        CUarray_format format;
        unsigned bytes;
    } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_HALF, 2}, {CU_AD_FORMAT_FLOAT, 4}};
    static const unsigned channel_counts[] = {1, 2, 4};
    unsigned format = random_below(work, 3), channels = channel_counts[random_below(work, 3)];
    CUDA_ARRAY3D_DESCRIPTOR of = {.Width = 1 + random_below(work, 256),
                                  .Height = random_below(work, 3) ? 1 + random_below(work, 64) : 0,
                                  .Format = formats[format].format,
                                  .NumChannels = channels};
    unsigned texel = formats[format].bytes * channels;
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    unsigned levels = 1;
    CUresult rc;
    switch (random_below(work, 4)) {
    case 0: {
        CUDA_ARRAY_DESCRIPTOR flat = {of.Width, of.Height, of.Format, random_below(work, 8) ? channels : 3};
        rc = cuArrayCreate_v2(&array, &flat);
        break;
    }
    case 1:
        of.Depth = of.Height ? random_below(work, 8) : 0;
        if (of.Depth && random_below(work, 2))
            of.Flags = CUDA_ARRAY3D_LAYERED;
        rc = cuArray3DCreate_v2(&array, &of);
        break;
    case 2:
        of.Height = of.Width;
        of.Depth = 6;
        of.Flags = CUDA_ARRAY3D_CUBEMAP;
        rc = cuArray3DCreate_v2(&array, &of);
        break;
    default:
        levels = 1 + random_below(work, 4);
        of.Width = 64;
        of.Height = 32;
        rc = cuMipmappedArrayCreate(&mipmap, &of, levels);
    }
    allocated(work, "array", rc, ARRAY, mipmap != NULL ? BY_MIPMAP_DESTROY : BY_ARRAY_DESTROY,
              mipmap != NULL ? (uintptr_t)mipmap : (uintptr_t)array, array_bytes(&of, texel, levels));
}
