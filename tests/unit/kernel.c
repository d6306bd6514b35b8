/* The mmap() of kernel.h. */
#include "kernel.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int granted = KERNEL_GRANTS_ALL, refused;

void kernel_grants(int mappings)
{
    atomic_store(&granted, mappings);
    atomic_store(&refused, 0);
}

int kernel_refusals(void)
{
    return atomic_load(&refused);
}

static atomic_bool without_shared_maps;

void kernel_refuses_shared_maps(bool refuses)
{
    atomic_store(&without_shared_maps, refuses);
}

void *mmap(void *start, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && (flags & MAP_SHARED) && atomic_load(&without_shared_maps)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    if (atomic_load(&granted) == 0) {
        atomic_fetch_add(&refused, 1);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (atomic_load(&granted) != KERNEL_GRANTS_ALL)
        atomic_fetch_sub(&granted, 1);
    /* The kernel's answer is an address, or its errors as syscall() hands them on: -1, which is MAP_FAILED.
     */
    return (void *)syscall(SYS_mmap, start, bytes, protection, flags, fd, offset);
}
