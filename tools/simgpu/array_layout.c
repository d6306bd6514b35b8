/* How large arrays are. Rows follow each other without padding, block-compressed ones as rows of blocks. */
#include "array.h"

struct format {
    CUarray_format format;
    unsigned bits, channels, block; /* as in CUDA_ARRAY_FORMATS */
};

#define AS_ROW(name, value, bits, channels, block) {name, bits, channels, block},
static const struct format formats[] = {CUDA_ARRAY_FORMATS(AS_ROW)};

static const struct format *format_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].format == descriptor->Format)
            return &formats[i];
    return NULL;
}

static bool channels_fit(const struct format *format, unsigned channels)
{
    if (format->channels)
        return channels == format->channels;
    return channels == 1 || channels == 2 || channels == 4;
}

bool array_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    const struct format *format = format_of(descriptor);
    bool layered = descriptor->Flags & CUDA_ARRAY3D_LAYERED, cube = descriptor->Flags & CUDA_ARRAY3D_CUBEMAP;
    size_t width = descriptor->Width, height = descriptor->Height, depth = descriptor->Depth;
    if (!format || !channels_fit(format, descriptor->NumChannels) || !width || descriptor->Flags & ~0x1ffu)
        return false;
    if (width > 1u << 28 || height > 1u << 28 || depth > 1u << 28)
        return false;
    if (cube)
        return width == height && depth && (layered ? depth % 6 == 0 : depth == 6);
    if (layered)
        return depth != 0;
    if (descriptor->Flags & CUDA_ARRAY3D_TEXTURE_GATHER)
        return height && !depth;
    return height || !depth;
}

static uint64_t blocks(uint64_t texels, const struct format *format)
{
    return (texels + format->block - 1) / format->block;
}

/* Bytes of a row of texels, or of blocks. */
static uint64_t row_bytes(const struct format *format, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    uint64_t texel_bits = format->channels ? format->bits : format->bits * descriptor->NumChannels;
    return (blocks(descriptor->Width, format) * format->block * format->block * texel_bits + 7) / 8;
}

static uint64_t at_least_1(uint64_t value)
{
    return value ? value : 1;
}

uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    const struct format *format = format_of(descriptor);
    uint64_t rows = blocks(at_least_1(descriptor->Height), format);
    return row_bytes(format, descriptor) * rows * at_least_1(descriptor->Depth);
}

/* The shapes that all graphics interfaces know as standard, by the bytes of a texel or a compressed block. */
bool array_tile(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned tile[3])
{
    static const struct {
        unsigned bytes, flat[2], volume[3];
    } tiles[] = {{1, {256, 256}, {64, 32, 32}},
                 {2, {256, 128}, {32, 32, 32}},
                 {4, {128, 128}, {32, 32, 16}},
                 {8, {128, 64}, {32, 16, 16}},
                 {16, {64, 64}, {16, 16, 16}}};
    const struct format *format = format_of(descriptor);
    unsigned bits = format->channels ? format->bits : format->bits * descriptor->NumChannels;
    bool flat = !descriptor->Depth || descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        if (tiles[i].bytes * 8 != bits * format->block * format->block)
            continue;
        for (int j = 0; j < 2; j++)
            tile[j] = (flat ? tiles[i].flat[j] : tiles[i].volume[j]) * format->block;
        tile[2] = flat ? 1 : tiles[i].volume[2];
        return true;
    }
    return false;
}

static CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR out = *descriptor;
    bool layers = descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    out.Width = at_least_1(descriptor->Width >> level);
    out.Height = descriptor->Height ? at_least_1(descriptor->Height >> level) : 0;
    if (descriptor->Depth && !layers) /* the layers stay, whatever the level */
        out.Depth = at_least_1(descriptor->Depth >> level);
    return out;
}

unsigned mipmap_levels(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned wanted)
{
    bool layers = descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    size_t largest = descriptor->Width > descriptor->Height ? descriptor->Width : descriptor->Height;
    if (!layers && descriptor->Depth > largest)
        largest = descriptor->Depth;
    unsigned most = 64 - (unsigned)__builtin_clzll(largest);
    return wanted > most ? most : wanted ? wanted : 1;
}

uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    uint64_t bytes = 0;
    for (unsigned level = 0; level < levels; level++) {
        CUDA_ARRAY3D_DESCRIPTOR one = level_of(descriptor, level);
        bytes += array_bytes(&one);
    }
    return bytes;
}

void array_describe_level(struct array *array, const struct mipmap *mipmap, unsigned level)
{
    array->descriptor = level_of(&mipmap->descriptor, level);
    array->offset = mipmap_bytes(&mipmap->descriptor, level);
    array->bytes = array_bytes(&array->descriptor);
}

/* Planes of the formats that have several: luma, then both chroma together or one by one. */
bool array_describe_plane(struct array *plane, const struct array *array, unsigned index)
{
    const CUDA_ARRAY3D_DESCRIPTOR *whole = &array->descriptor;
    CUarray_format narrow = CU_AD_FORMAT_UNSIGNED_INT8, wide = CU_AD_FORMAT_UNSIGNED_INT16;
    const struct {
        CUarray_format format, element;
        unsigned planes, across, down; /* by how much chroma is smaller */
    } planar[] = {
        {CU_AD_FORMAT_NV12, narrow, 2, 2, 2},
        {CU_AD_FORMAT_P010, wide, 2, 2, 2},
        {CU_AD_FORMAT_P016, wide, 2, 2, 2},
        {CU_AD_FORMAT_NV16, narrow, 2, 2, 1},
        {CU_AD_FORMAT_P210, wide, 2, 2, 1},
        {CU_AD_FORMAT_P216, wide, 2, 2, 1},
        {CU_AD_FORMAT_YUV444_8bit_SemiPlanar, narrow, 2, 1, 1},
        {CU_AD_FORMAT_YUV444_16bit_SemiPlanar, wide, 2, 1, 1},
        {CU_AD_FORMAT_Y444_PLANAR8, narrow, 3, 1, 1},
        {CU_AD_FORMAT_Y444_PLANAR10, wide, 3, 1, 1},
    };
    for (size_t i = 0; i < sizeof planar / sizeof *planar; i++) {
        if (planar[i].format != whole->Format || index >= planar[i].planes)
            continue;
        plane->descriptor = *whole;
        plane->descriptor.Format = planar[i].element;
        plane->descriptor.NumChannels = 1;
        plane->bytes = array_bytes(&plane->descriptor);
        plane->offset = array->offset + plane->bytes * index;
        if (index && planar[i].planes == 2) {
            plane->descriptor.Width /= planar[i].across;
            plane->descriptor.Height /= planar[i].down;
            plane->descriptor.NumChannels = 2;
            plane->bytes = array_bytes(&plane->descriptor);
        }
        return true;
    }
    return false;
}

static const struct block *memory_of(const struct array *array)
{
    if (array->mipmap)
        return array->mipmap->block;
    return array->parent ? memory_of(array->parent) : array->block;
}

CUresult array_side(CUarray handle, size_t x, size_t y, size_t z, const CUDA_MEMCPY3D *copy, uint64_t *start,
                    uint64_t *pitch, uint64_t *slice, bool *checked)
{
    const struct array *array = handle_get(handle, HANDLE_ARRAY);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    const struct block *memory = memory_of(array);
    const struct format *format = format_of(&array->descriptor);
    uint64_t row = row_bytes(format, &array->descriptor),
             rows = blocks(at_least_1(array->descriptor.Height), format);
    uint64_t slices = at_least_1(array->descriptor.Depth);
    bool one_row = copy->Height == 1 && copy->Depth == 1; /* a linear copy may run on through rows */
    if (!memory || y >= rows || z >= slices || copy->Depth > slices - z || copy->Height > rows - y)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t room = one_row ? array->bytes - (z * rows + y) * row : row;
    if (x > room || copy->WidthInBytes > room - x)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = row;
    *slice = row * rows;
    *start = memory->address + array->offset + z * *slice + y * row + x;
    *checked = true;
    return CUDA_SUCCESS;
}
