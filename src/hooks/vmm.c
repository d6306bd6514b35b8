/* References to the memory behind handles (vmm.h). */
#include "hooks/vmm.h"

#include "base/hash.h"
#include "hooks/tables.h"

/* Of the kinds that need remembering. */
struct special_handle {
    CUmemGenericAllocationHandle handle; /* the key */
    enum handle_kind kind;
    int references;
    UT_hash_handle hh;
};

static struct special_handle *special_handles;

void vmm_forget_all(void)
{
    special_handles = NULL;
}

static struct special_handle *find_special(CUmemGenericAllocationHandle handle)
{
    struct special_handle *found;
    HASH_FIND(hh, special_handles, &handle, sizeof handle, found);
    return found;
}

static void delete_special(struct special_handle *special)
{
    HASH_DEL(special_handles, special);
    tables_delete(special);
}

/* A handle gains or loses a reference. Tells what kind it was, and whether it is gone. */
static enum handle_kind count_reference(CUmemGenericAllocationHandle handle, int by, bool *gone)
{
    enum handle_kind kind = HANDLE_OF_MEMORY;
    *gone = false;
    if (!tables_lock())
        return kind;
    struct special_handle *special = find_special(handle);
    if (special != NULL) {
        kind = special->kind;
        special->references += by;
        *gone = special->references <= 0;
        if (*gone)
            delete_special(special);
    }
    tables_unlock();
    return kind;
}

/* One reference to a special handle, its first or one more. */
static void add_reference(CUmemGenericAllocationHandle handle, enum handle_kind kind)
{
    if (!tables_lock())
        return;
    struct special_handle *special = find_special(handle);
    if (special != NULL) {
        special->references++;
    } else if ((special = tables_new()) != NULL) {
        special->handle = handle;
        special->kind = kind;
        special->references = 1;
        HASH_ADD(hh, special_handles, handle, sizeof special->handle, special);
        if (!hash_added(special))
            tables_delete(special);
    }
    tables_unlock();
}

/* Also one whose end we missed is a new one now. */
static void made(CUmemGenericAllocationHandle handle, enum handle_kind kind)
{
    if (!tables_lock())
        return;
    struct special_handle *special = find_special(handle);
    if (special != NULL)
        delete_special(special);
    tables_unlock();
    add_reference(handle, kind);
}

void vmm_multicast_created(CUmemGenericAllocationHandle handle)
{
    made(handle, HANDLE_OF_MULTICAST);
}

void vmm_imported(CUmemGenericAllocationHandle handle)
{
    made(handle, HANDLE_WITHOUT_SIZE);
}

static bool hold(CUmemGenericAllocationHandle handle, enum handle_kind *kind)
{
    bool gone;
    *kind = count_reference(handle, 1, &gone);
    return *kind == HANDLE_OF_MULTICAST || record_retain(KEY_HANDLE, handle);
}

bool vmm_hold(CUmemGenericAllocationHandle handle)
{
    enum handle_kind kind;
    return hold(handle, &kind);
}

static void size_is_known(CUmemGenericAllocationHandle handle)
{
    if (!tables_lock())
        return;
    struct special_handle *special = find_special(handle);
    if (special != NULL)
        special->kind = HANDLE_OF_IMPORT;
    tables_unlock();
}

bool vmm_map(CUmemGenericAllocationHandle handle, size_t bytes)
{
    enum handle_kind kind;
    hold(handle, &kind);
    if (kind == HANDLE_WITHOUT_SIZE) {
        size_is_known(handle);
        record_size(handle, bytes);
    }
    return kind != HANDLE_OF_MULTICAST;
}

void vmm_release(struct call *call, struct vmm_release *release, CUmemGenericAllocationHandle handle)
{
    bool gone;
    *release = (struct vmm_release){.kind = HANDLE_OF_MEMORY};
    if (!call->acts)
        return;
    release->kind = count_reference(handle, -1, &gone);
    if (gone)
        holds_take_all(call, &release->ended, HOLDS_OF_MULTICAST, handle);
    if (release->kind != HANDLE_OF_MULTICAST)
        call_free(call, &release->freeing, KEY_HANDLE, handle);
}

void vmm_released(struct call *call, CUresult rc, struct vmm_release *release,
                  CUmemGenericAllocationHandle handle)
{
    call_freed(call, rc, &release->freeing);
    holds_changed(call, rc, &release->ended);
    if (rc != CUDA_SUCCESS && release->kind != HANDLE_OF_MEMORY)
        add_reference(handle, release->kind);
}
