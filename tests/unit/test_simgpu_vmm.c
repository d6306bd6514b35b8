/* Virtual memory management of the simulated GPU: what keeps an allocation alive, in any order, and what is
 * refused. */
#include "simgpu/child.h"

#include <sys/mman.h>
#include <sys/socket.h>

static CUmemAllocationProp on_device(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static CUmemGenericAllocationHandle create(size_t size)
{
    CUmemAllocationProp properties = on_device(0);
    CUmemGenericAllocationHandle handle;
    OK(CU(cuMemCreate)(&handle, size, &properties, 0));
    return handle;
}

static CUdeviceptr reserve(size_t size)
{
    CUdeviceptr address;
    OK(CU(cuMemAddressReserve)(&address, size, 0, 0, 0));
    return address;
}

static CUresult give_access(CUdeviceptr address, size_t size)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CU(cuMemSetAccess)(address, size, &access, 1);
}

static void body_test_granularity_is_two_mebibytes(void)
{
    start(0);
    CUmemAllocationProp properties = on_device(0);
    size_t granularity;
    OK(CU(cuMemGetAllocationGranularity)(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    EXPECT(granularity, 2 * MIB);
    OK(CU(cuMemGetAllocationGranularity)(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    EXPECT(granularity % (2 * MIB), 0);
    CUmemGenericAllocationHandle handle;
    EXPECT(CU(cuMemCreate)(&handle, MIB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemCreate)(&handle, 0, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemCreate)(&handle, 2 * MIB, &properties, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemCreate)(&handle, 9 * GIB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    properties.location.id = 1;
    EXPECT(CU(cuMemCreate)(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
    properties = on_device(0);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    EXPECT(CU(cuMemCreate)(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
}
CHILD_TEST(test_granularity_is_two_mebibytes, "")

static void body_test_memory_lives_until_released_and_unmapped(void)
{
    start(0);
    size_t before = free_bytes();
    CUdeviceptr address = reserve(16 * MIB);
    EXPECT(free_bytes(), before); /* addresses cost nothing */
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuMemMap)(address, 4 * MIB, 0, handle, 0));
    OK(CU(cuMemRelease)(handle));
    EXPECT(before - free_bytes(), 4 * MIB); /* still mapped */
    EXPECT(CU(cuMemRelease)(handle), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemUnmap)(address, 4 * MIB));
    EXPECT(free_bytes(), before);

    handle = create(2 * MIB); /* the other order */
    OK(CU(cuMemMap)(address, 2 * MIB, 0, handle, 0));
    OK(CU(cuMemUnmap)(address, 2 * MIB));
    EXPECT(before - free_bytes(), 2 * MIB);
    OK(CU(cuMemRelease)(handle));
    EXPECT(free_bytes(), before);
}
CHILD_TEST(test_memory_lives_until_released_and_unmapped, "")

static void body_test_a_retained_handle_needs_its_own_release(void)
{
    start(0);
    size_t before = free_bytes();
    CUdeviceptr address = reserve(8 * MIB);
    CUmemGenericAllocationHandle handle = create(2 * MIB), retained, again;
    OK(CU(cuMemMap)(address, 2 * MIB, 0, handle, 0));
    OK(CU(cuMemMap)(address + 4 * MIB, 2 * MIB, 0, handle, 0)); /* twice at once */
    OK(CU(cuMemRetainAllocationHandle)(&retained, (void *)(address + 4 * MIB + 5)));
    EXPECT(retained, handle);
    OK(CU(cuMemRelease)(handle));
    OK(CU(cuMemRelease)(handle));
    EXPECT(CU(cuMemRelease)(handle), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemRetainAllocationHandle)(&again, (void *)address)); /* found through the mapping */
    EXPECT(again, handle);
    OK(CU(cuMemUnmap)(address, 2 * MIB));
    OK(CU(cuMemUnmap)(address + 4 * MIB, 2 * MIB));
    EXPECT(before - free_bytes(), 2 * MIB);
    OK(CU(cuMemRelease)(again));
    EXPECT(free_bytes(), before);
    EXPECT(CU(cuMemRetainAllocationHandle)(&again, (void *)address), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_retained_handle_needs_its_own_release, "")

static void body_test_access_comes_with_a_grant_only(void)
{
    start(0);
    CUdeviceptr address = reserve(8 * MIB);
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    unsigned long long flags;
    char text[8];
    EXPECT(give_access(address, 4 * MIB), CUDA_ERROR_INVALID_VALUE); /* nothing is mapped */
    OK(CU(cuMemMap)(address, 4 * MIB, 0, handle, 0));
    EXPECT(CU(cuMemcpyHtoD_v2)(address, "text", 5), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemGetAccess)(&flags, &location, address));
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(give_access(address, 4 * MIB));
    OK(CU(cuMemGetAccess)(&flags, &location, address));
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(CU(cuMemcpyHtoD_v2)(address + 4 * MIB - 5, "text", 5));
    EXPECT(CU(cuMemcpyHtoD_v2)(address + 4 * MIB - 4, "text", 5), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemUnmap)(address, 4 * MIB));
    EXPECT(CU(cuMemcpyHtoD_v2)(address, "text", 5), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemMap)(address + 4 * MIB, 4 * MIB, 0, handle, 0)); /* elsewhere: the same bytes */
    OK(give_access(address + 4 * MIB, 4 * MIB));
    OK(CU(cuMemcpyDtoH_v2)(text, address + 8 * MIB - 5, 5));
    EXPECT(strcmp(text, "text"), 0);
}
CHILD_TEST(test_access_comes_with_a_grant_only, "")

static void body_test_a_copy_crosses_mappings(void)
{
    start(0);
    CUdeviceptr address = reserve(6 * MIB);
    for (int i = 0; i < 3; i++)
        OK(CU(cuMemMap)(address + (CUdeviceptr)i * 2 * MIB, 2 * MIB, 0, create(2 * MIB), 0));
    OK(give_access(address, 6 * MIB));
    static char out[6 * MIB], in[6 * MIB];
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (char)(i * 31 + i / 4096);
    OK(CU(cuMemcpyHtoD_v2)(address, out, sizeof out));
    OK(CU(cuMemcpyDtoH_v2)(in, address, sizeof in));
    EXPECT(memcmp(in, out, sizeof in), 0);
    OK(CU(cuMemsetD32_v2)(address + 2 * MIB - 8, 0x01010101, 4)); /* over the border */
    OK(CU(cuMemcpyDtoH_v2)(in, address + 2 * MIB - 8, 16));
    for (int i = 0; i < 16; i++)
        EXPECT(in[i], 1);
    EXPECT(CU(cuMemUnmap)(address + MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemUnmap)(address, 6 * MIB)); /* several whole mappings at once */
}
CHILD_TEST(test_a_copy_crosses_mappings, "")

static void body_test_wrong_mappings_are_refused(void)
{
    start(0);
    CUdeviceptr address = reserve(8 * MIB);
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    EXPECT(CU(cuMemMap)(address + MIB, 2 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMap)(address, 6 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMap)(address, 2 * MIB, 2 * MIB, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMap)(address + 6 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMap)(address, 4 * MIB, 0, 0x1234, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMap)(allocate(4 * MIB), 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemMap)(address, 4 * MIB, 0, handle, 0));
    EXPECT(CU(cuMemMap)(address + 2 * MIB, 2 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemUnmap)(address, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemUnmap)(address, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAddressFree)(address, 8 * MIB), CUDA_ERROR_INVALID_VALUE); /* still mapped */
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemUnmap)(address, 4 * MIB));
    EXPECT(CU(cuMemAddressFree)(address, 6 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemAddressFree)(address, 8 * MIB));
    EXPECT(CU(cuMemAddressFree)(address, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAddressReserve)(&address, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAddressReserve)(&address, 2 * MIB, 3 * MIB, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemAddressReserve)(&address, 2 * MIB, 64 * MIB, 0, 0));
    EXPECT(address % (64 * MIB), 0);
}
CHILD_TEST(test_wrong_mappings_are_refused, "")

static void body_test_a_hint_places_a_reservation(void)
{
    start(0);
    CUdeviceptr wished, address, other;
    for (int tries = 0; tries < 5; tries++) { /* a sanitizer's own thread may take what is free in a moment */
        char *room = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        wished = ((CUdeviceptr)room + 2 * MIB) / (2 * MIB) * (2 * MIB);
        munmap(room, 16 * MIB);
        OK(CU(cuMemAddressReserve)(&address, 6 * MIB, 0, wished, 0));
        if (address == wished)
            break;
        OK(CU(cuMemAddressFree)(address, 6 * MIB));
    }
    EXPECT(address, wished);
    OK(CU(cuMemAddressReserve)(&other, 6 * MIB, 0, wished, 0)); /* only a hint */
    TRUE(other != wished);
    OK(CU(cuMemMap)(address, 2 * MIB, 0, create(2 * MIB), 0));
    OK(CU(cuMemUnmap)(address, 2 * MIB));
    OK(CU(cuMemAddressFree)(address, 6 * MIB));
    OK(CU(cuMemAddressFree)(other, 6 * MIB));
    EXPECT(reserve(6 * MIB), other); /* addresses come back */
}
CHILD_TEST(test_a_hint_places_a_reservation, "")

static void body_test_a_mapped_address_describes_itself(void)
{
    start(0);
    CUdeviceptr address = reserve(8 * MIB), base;
    size_t size;
    unsigned mapped = 9;
    uint64_t start_address, range;
    CUmemAllocationProp properties;
    CUmemGenericAllocationHandle handle = create(4 * MIB);
    OK(CU(cuMemMap)(address + 2 * MIB, 4 * MIB, 0, handle, 0));
    OK(CU(cuMemGetAddressRange_v2)(&base, &size, address + 3 * MIB));
    EXPECT(base, address + 2 * MIB);
    EXPECT(size, 4 * MIB);
    OK(CU(cuPointerGetAttribute)(&start_address, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 3 * MIB));
    EXPECT(start_address, address);
    OK(CU(cuPointerGetAttribute)(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
    EXPECT(range, 8 * MIB);
    OK(CU(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address));
    EXPECT(mapped, 0);
    OK(CU(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address + 2 * MIB));
    EXPECT(mapped, 1);
    OK(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, handle));
    EXPECT(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    EXPECT(CU(cuMemGetAddressRange_v2)(&base, &size, address), CUDA_ERROR_NOT_FOUND);
}
CHILD_TEST(test_a_mapped_address_describes_itself, "")

static void body_test_host_memory_can_be_mapped(void)
{
    start(0);
    size_t before = free_bytes();
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
    CUmemGenericAllocationHandle handle;
    OK(CU(cuMemCreate)(&handle, 2 * MIB, &properties, 0));
    EXPECT(free_bytes(), before);
    OK(CU(cuMemRelease)(handle));
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    EXPECT(CU(cuMemCreate)(&handle, 2 * MIB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_host_memory_can_be_mapped, "")

static void send_fd(int socket, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    EXPECT(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    EXPECT(recvmsg(socket, &message, 0), 1);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    TRUE(header);
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

static void import_side(int socket)
{
    start(0);
    size_t before = free_bytes();
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties;
    CUdeviceptr address = reserve(4 * MIB);
    int fd = receive_fd(socket);
    OK(CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    EXPECT(free_bytes(), before);
    OK(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, handle));
    EXPECT(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    OK(CU(cuMemMap)(address, 4 * MIB, 0, handle, 0));
    OK(give_access(address, 4 * MIB));
    char text[8] = "";
    OK(CU(cuMemcpyDtoH_v2)(text, address + 3 * MIB, 7));
    EXPECT(strcmp(text, "shared"), 0);
    OK(CU(cuMemcpyHtoD_v2)(address, "back", 5));
    OK(CU(cuMemRelease)(handle));
    OK(CU(cuMemUnmap)(address, 4 * MIB));
}

static void body_test_another_process_imports_an_allocation(void)
{
    int sockets[2];
    TRUE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    pid_t child = fork();
    if (child == 0) {
        import_side(sockets[1]);
        _exit(0);
    }
    start(0);
    CUmemAllocationProp properties = on_device(0);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle, plain = create(2 * MIB);
    size_t before = free_bytes();
    OK(CU(cuMemCreate)(&handle, 4 * MIB, &properties, 0));
    EXPECT(before - free_bytes(), 4 * MIB);
    CUdeviceptr address = reserve(4 * MIB);
    OK(CU(cuMemMap)(address, 4 * MIB, 0, handle, 0));
    OK(give_access(address, 4 * MIB));
    OK(CU(cuMemcpyHtoD_v2)(address + 3 * MIB, "shared", 7));
    int fd, status;
    EXPECT(CU(cuMemExportToShareableHandle)(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
           CUDA_ERROR_INVALID_VALUE); /* not made for it */
    OK(CU(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(sockets[0], fd);
    close(fd);
    waitpid(child, &status, 0);
    EXPECT(status, 0);
    char text[8] = "";
    OK(CU(cuMemcpyDtoH_v2)(text, address, 5));
    EXPECT(strcmp(text, "back"), 0);
    OK(CU(cuMemUnmap)(address, 4 * MIB));
    OK(CU(cuMemRelease)(handle));
    EXPECT(free_bytes(), before);
    EXPECT(CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)0,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
           CUDA_ERROR_INVALID_VALUE); /* some other file */
}
CHILD_TEST(test_another_process_imports_an_allocation, "")

static void body_test_a_multicast_object_owns_no_memory(void)
{
    start(0);
    size_t before = free_bytes();
    CUmulticastObjectProp properties = {.numDevices = 2, .size = 4 * MIB};
    CUmemGenericAllocationHandle object, memory;
    OK(CU(cuMulticastCreate)(&object, &properties));
    EXPECT(free_bytes(), before);
    memory = create(4 * MIB);
    OK(CU(cuMulticastAddDevice)(object, 0));
    EXPECT(CU(cuMulticastAddDevice)(object, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMulticastAddDevice)(object, 1));
    OK(CU(cuMulticastBindMem)(object, 0, memory, 0, 4 * MIB, 0));
    OK(CU(cuMemRelease)(memory));
    EXPECT(before - free_bytes(), 4 * MIB); /* bound memory lives */
    EXPECT(CU(cuMulticastUnbind)(object, 0, 0, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMulticastUnbind)(object, 0, 0, 4 * MIB));
    EXPECT(free_bytes(), before);
    OK(CU(cuMemRelease)(object));
    properties.numDevices = 3;
    EXPECT(CU(cuMulticastCreate)(&object, &properties), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_multicast_object_owns_no_memory, "SIMGPU_DEVICES=2")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_granularity_is_two_mebibytes),
        cmocka_unit_test(test_memory_lives_until_released_and_unmapped),
        cmocka_unit_test(test_a_retained_handle_needs_its_own_release),
        cmocka_unit_test(test_access_comes_with_a_grant_only),
        cmocka_unit_test(test_a_copy_crosses_mappings),
        cmocka_unit_test(test_wrong_mappings_are_refused),
        cmocka_unit_test(test_a_hint_places_a_reservation),
        cmocka_unit_test(test_a_mapped_address_describes_itself),
        cmocka_unit_test(test_host_memory_can_be_mapped),
        cmocka_unit_test(test_another_process_imports_an_allocation),
        cmocka_unit_test(test_a_multicast_object_owns_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
