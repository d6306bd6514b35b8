/*
 * The physical memory of each device, a count of granules; and that of other processes on it.
 *
 * Where SIMGPU_SHARED names a file, all processes that name the same one share the devices: each has a slot
 * in it with what it uses. A slot is its process's as long as that holds a record lock on it, so a process
 * that was killed gives its memory back, as on a real device.
 */
#include "physical.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS     64
#define FILE_LOCK SLOTS /* the byte whose lock covers taking memory; the bytes before are the slots' */

struct slot {
    _Atomic int pid;
    _Atomic uint64_t used[MAX_DEVICES]; /* granules */
};

static struct {
    pthread_once_t once;
    int fd;
    pid_t pid;          /* of the process that opened it */
    struct slot *slots; /* NULL: nothing is shared */
    struct slot *own;
} shared = {.once = PTHREAD_ONCE_INIT, .fd = -1};

static bool set_lock(int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(shared.fd, command, &lock) == 0;
}

/* A process's own locks never stand in its way: that slot is asked about by its number. */
static bool is_held(int slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    return &shared.slots[slot] == shared.own ||
           (fcntl(shared.fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
}

static void take_slot(void)
{
    for (int i = 0; i < SLOTS && !shared.own; i++) {
        if (!set_lock(F_SETLK, F_WRLCK, i))
            continue;
        shared.own = &shared.slots[i];
        for (int device = 0; device < MAX_DEVICES; device++)
            atomic_store(&shared.own->used[device], 0);
        atomic_store(&shared.own->pid, getpid());
    }
}

static void open_shared(void)
{
    const char *path = getenv("SIMGPU_SHARED");
    shared.fd = path && *path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (shared.fd < 0)
        return;
    size_t bytes = SLOTS * sizeof(struct slot);
    void *slots = ftruncate(shared.fd, (off_t)bytes)
                      ? MAP_FAILED
                      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared.fd, 0);
    if (slots == MAP_FAILED)
        return;
    shared.slots = slots;
    shared.pid = getpid();
}

static bool is_shared(void)
{
    pthread_once(&shared.once, open_shared);
    return shared.slots && shared.pid == getpid();
}

int physical_occupants(int device, struct occupant *occupants, int room)
{
    int count = 0;
    if (devices[device].used && room > 0)
        occupants[count++] = (struct occupant){getpid(), devices[device].used * GRANULE};
    for (int i = 0; is_shared() && i < SLOTS && count < room; i++) {
        uint64_t used = atomic_load(&shared.slots[i].used[device]);
        if (used && &shared.slots[i] != shared.own && is_held(i))
            occupants[count++] = (struct occupant){atomic_load(&shared.slots[i].pid), used * GRANULE};
    }
    return count;
}

uint64_t physical_used(const struct device *device)
{
    struct occupant occupants[SLOTS + 1];
    uint64_t used = 0;
    for (int count = physical_occupants(device->ordinal, occupants, SLOTS + 1); count > 0; count--)
        used += occupants[count - 1].bytes / GRANULE;
    return used < device->memory ? used : device->memory;
}

static void change(struct device *device, uint64_t used)
{
    device->used = used;
    if (shared.own)
        atomic_store(&shared.own->used[device->ordinal], used);
}

bool physical_take(struct device *device, uint64_t granules)
{
    if (!device)
        return true;
    if (!is_shared()) {
        if (device->memory - device->used < granules)
            return false;
        device->used += granules;
        return true;
    }
    if (!shared.own)
        take_slot();
    set_lock(F_SETLKW, F_WRLCK, FILE_LOCK);
    bool fits = shared.own && device->memory - physical_used(device) >= granules;
    if (fits)
        change(device, device->used + granules);
    set_lock(F_SETLK, F_UNLCK, FILE_LOCK);
    return fits;
}

void physical_give(struct device *device, uint64_t granules)
{
    if (device)
        change(device, device->used - granules);
}
