/* Arrays and mipmaps: memory of a layout that no program sees, reached by coordinates. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "simgpu.h"
#include "sparse.h"

/* One array, or one level or plane of another. */
struct array {
    struct handle handle;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t offset, bytes; /* in the memory behind */
    struct block *block;    /* NULL for a level or plane, and while nothing is behind (sparse, deferred) */
    struct array *parent;   /* a plane's array */
    struct mipmap *mipmap;  /* a level's */
    struct array *planes[3];
    struct sparse *sparse; /* what is mapped of one without memory of its own */
};

struct mipmap {
    struct handle handle;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    unsigned levels;
    struct block *block;
    struct array *arrays[32]; /* of the levels, made when asked for */
    struct sparse *sparse;
};

/* Whether an array with this description can be. */
bool array_is_valid(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* Its bytes, and those of a mipmap's level; levels are clamped as the driver does. */
uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels);
unsigned mipmap_levels(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned wanted);
/* The extents in texels of a tile of 64 KiB; false for a format that none can be made of. */
bool array_tile(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned tile[3]);
/* A mipmap on memory that is already there (imported from elsewhere), or, with `block` NULL, on none. */
struct mipmap *mipmap_on(struct block *block, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels);

/* What a level of a mipmap, or a plane of an array, is and where it lies; false when there is no such plane.
 */
void array_describe_level(struct array *array, const struct mipmap *mipmap, unsigned level);
bool array_describe_plane(struct array *plane, const struct array *array, unsigned index);

void array_end(struct array *array);
void mipmap_end(struct mipmap *mipmap);

/* Where the rows of a copy lie in an array; x in bytes, y in rows, z in slices or layers. */
CUresult array_side(CUarray array, size_t x, size_t y, size_t z, const CUDA_MEMCPY3D *copy, uint64_t *start,
                    uint64_t *pitch, uint64_t *slice, bool *checked);

#endif
