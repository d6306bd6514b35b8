/*
 * Memory of another process: opened by IPC, imported as a handle, or imported from a pool. That process is
 * this program again, which offers the same memory to each thread until the socket between them is closed.
 * Its own books are nobody's business here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "work.h"

#define DESCRIPTORS (SHARED_HANDLES + 1)

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(4);
    }
}

static void must_succeed(CUresult rc, const char *what)
{
    if (rc != CUDA_SUCCESS) {
        fprintf(stderr, "in the other process, %s gave %d\n", what, (int)rc);
        _exit(4);
    }
}

/* An offer and its descriptors, as one message. */
static void pass(int socket, struct offer *offer, bool receive)
{
    struct iovec data = {offer, sizeof *offer};
    union {
        char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
        struct cmsghdr aligned;
    } control = {0};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int descriptors[DESCRIPTORS];
    if (receive) {
        must(recvmsg(socket, &message, MSG_WAITALL) == (ssize_t)sizeof *offer, "recvmsg");
        must(message.msg_controllen == sizeof control.bytes, "descriptors");
        memcpy(descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptors);
        memcpy(offer->handles, descriptors, sizeof offer->handles);
        offer->pool = descriptors[SHARED_HANDLES];
        return;
    }
    memcpy(descriptors, offer->handles, sizeof offer->handles);
    descriptors[SHARED_HANDLES] = offer->pool;
    *header = (struct cmsghdr){CMSG_LEN(sizeof descriptors), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    must(sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *offer, "sendmsg");
}

/* ---- the other process ---- */

static void offer_blocks(struct offer *offer)
{
    for (unsigned i = 0; i < SHARED_BLOCKS; i++) {
        CUdeviceptr address;
        offer->block_bytes[i] = 1000 + i * GRANULE;
        must_succeed(cuMemAlloc_v2(&address, offer->block_bytes[i]), "cuMemAlloc");
        must_succeed(cuIpcGetMemHandle(&offer->blocks[i], address), "cuIpcGetMemHandle");
    }
}

static void offer_handles(struct offer *offer)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    for (unsigned i = 0; i < SHARED_HANDLES; i++) {
        CUmemGenericAllocationHandle handle;
        offer->handle_bytes[i] = (i + 1) * GRANULE;
        must_succeed(cuMemCreate(&handle, offer->handle_bytes[i], &props, 0), "cuMemCreate");
        must_succeed(cuMemExportToShareableHandle(&offer->handles[i], handle,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                     "cuMemExportToShareableHandle");
    }
}

static void offer_pool(struct offer *offer)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool;
    must_succeed(cuMemPoolCreate(&pool, &props), "cuMemPoolCreate");
    must_succeed(
        cuMemPoolExportToShareableHandle(&offer->pool, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemPoolExportToShareableHandle");
    for (unsigned i = 0; i < SHARED_POINTERS; i++) {
        CUdeviceptr address;
        offer->pointer_bytes[i] = 500 + i * (GRANULE / 2);
        must_succeed(cuMemAllocFromPoolAsync(&address, offer->pointer_bytes[i], pool, NULL),
                     "cuMemAllocFromPoolAsync");
        must_succeed(cuMemPoolExportPointer(&offer->pointers[i], address), "cuMemPoolExportPointer");
    }
}

int shared_be_the_other(int socket, unsigned threads)
{
    CUcontext context;
    char end;
    must_succeed(cuInit(0), "cuInit");
    must_succeed(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must_succeed(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (unsigned i = 0; i < threads; i++) {
        struct offer offer = {0};
        offer_blocks(&offer);
        offer_handles(&offer);
        offer_pool(&offer);
        pass(socket, &offer, false);
    }
    while (read(socket, &end, 1) > 0)
        ;
    return 0;
}

/* ---- this one ---- */

void shared_start(struct work *works, unsigned threads)
{
    int sockets[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "socketpair");
    pid_t other = fork();
    must(other >= 0, "fork");
    if (other == 0) {
        char socket[16], count[16];
        snprintf(socket, sizeof socket, "%d", dup(sockets[1]));
        snprintf(count, sizeof count, "%u", threads);
        setenv("GPUMEMTRACE_DISABLE", "1", 1);
        execl("/proc/self/exe", "hooks_random", "share", socket, count, (char *)NULL);
        _exit(5);
    }
    close(sockets[1]);
    for (unsigned i = 0; i < threads; i++)
        pass(sockets[0], &works[i].offer, true);
}

/* Opening what is open in this context already gives the same address, to be closed once more. */
static void open_block(struct work *work)
{
    unsigned which = random_below(work, SHARED_BLOCKS);
    struct opened *opened = &work->opened[work->depth][which];
    CUdeviceptr address = 0;
    CUresult rc = cuIpcOpenMemHandle_v2(&address, work->offer.blocks[which], random_below(work, 8) != 0);
    note(work, address == opened->address ? "open again" : "open", rc, 0);
    if (rc != CUDA_SUCCESS) {
        work->books[IPC].failed++;
    } else if (opened->count++ == 0) {
        opened->address = address;
        begin_block(work, IPC, work->offer.block_bytes[which]);
    }
}

static void close_block(struct work *work)
{
    unsigned which = random_below(work, SHARED_BLOCKS);
    struct opened *opened = &work->opened[work->depth][which];
    if (opened->count == 0)
        return;
    if (random_below(work, 8) == 0)
        note(work, "free what is opened", cuMemFree_v2(opened->address), 0);
    if (note(work, "close", cuIpcCloseMemHandle(opened->address), 0) != CUDA_SUCCESS || --opened->count > 0)
        return;
    end_block(work, IPC, work->offer.block_bytes[which], false);
    opened->address = 0;
}

void open_shared(struct work *work)
{
    if (random_below(work, 2))
        open_block(work);
    else
        close_block(work);
}

void shared_context_ended(struct work *work, int context)
{
    for (unsigned i = 0; i < SHARED_BLOCKS; i++) {
        if (work->opened[context][i].count > 0)
            end_block(work, IPC, work->offer.block_bytes[i], true);
        work->opened[context][i] = (struct opened){0};
    }
}

/* Freed like any other memory, and of no context. What is imported already is refused. */
void import_pointer(struct work *work)
{
    unsigned which = random_below(work, SHARED_POINTERS);
    CUdeviceptr address = 0;
    if (work->shared_pool == NULL) {
        CUresult rc =
            cuMemPoolImportFromShareableHandle(&work->shared_pool, (void *)(intptr_t)work->offer.pool,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        note_handle(work, "import a pool", rc, work->shared_pool);
        return;
    }
    CUresult rc = cuMemPoolImportPointer(&address, work->shared_pool, &work->offer.pointers[which]);
    if (note(work, "import a pointer", rc, 0) == CUDA_SUCCESS)
        begin_thing(work, IPC, BY_FREE, address, work->offer.pointer_bytes[which], NO_CONTEXT);
    else
        work->books[IPC].failed++;
}
