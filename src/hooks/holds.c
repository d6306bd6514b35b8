/* Parts of arrays and multicast objects that hold memory (holds.h). */
#include "hooks/holds.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "hooks/ask.h"
#include "hooks/tables.h"
#include "hooks/vmm.h"

struct hold {
    struct hold_region region;
    CUmemGenericAllocationHandle memory;
    uint64_t change;   /* which added it */
    uint64_t owner;    /* owner_key() */
    CUcontext context; /* the owner's */
    struct hold *next; /* of its owner, or of those taken */
    unsigned pieces;   /* once taken: what is left of it beside */
    struct vmm_release release;
};

struct owner {
    uint64_t key;
    CUcontext context; /* an array's; it stays for as long as that */
    struct hold *first;
    UT_hash_handle hh;
};

_Static_assert(sizeof(struct hold) <= TABLES_ENTRY_MAX, "a part fits an entry");

/* Handles are pointers of user space. */
static uint64_t owner_key(enum holds_of of, uint64_t handle)
{
    return handle | (uint64_t)of << 63;
}

static bool is_array(uint64_t key)
{
    return key >> 63 == HOLDS_OF_ARRAY;
}

static struct owner *owners;
static _Atomic uint64_t owner_count, change_count;

void holds_forget_all(void)
{
    owners = NULL;
    atomic_store_explicit(&owner_count, 0, memory_order_relaxed);
}

static bool holds_exist(void)
{
    return atomic_load_explicit(&owner_count, memory_order_relaxed) > 0;
}

static struct owner *find_owner(uint64_t key)
{
    struct owner *owner;
    HASH_FIND(hh, owners, &key, sizeof key, owner);
    return owner;
}

static void end_owner(struct owner *owner)
{
    HASH_DEL(owners, owner);
    tables_delete(owner);
    atomic_fetch_sub_explicit(&owner_count, 1, memory_order_relaxed);
}

static struct owner *reach_owner(uint64_t key, CUcontext context)
{
    struct owner *owner = find_owner(key);
    if (owner != NULL || (owner = tables_new()) == NULL)
        return owner;
    owner->key = key;
    owner->context = context;
    owner->first = NULL;
    HASH_ADD(hh, owners, key, sizeof owner->key, owner);
    if (!hash_added(owner)) {
        tables_delete(owner);
        return NULL;
    }
    atomic_fetch_add_explicit(&owner_count, 1, memory_order_relaxed);
    return owner;
}

static void push(struct hold **list, struct hold *hold)
{
    hold->next = *list;
    *list = hold;
}

/* False when memory ran out. */
static bool insert(struct hold *hold, CUcontext context)
{
    struct owner *owner = reach_owner(hold->owner, context);
    if (owner == NULL)
        return false;
    hold->context = owner->context;
    push(&owner->first, hold);
    return true;
}

void holds_array_made(uint64_t array)
{
    CUcontext context = NULL;
    ask_cuCtxGetCurrent(&context);
    if (!tables_lock())
        return;
    reach_owner(owner_key(HOLDS_OF_ARRAY, array), context);
    tables_unlock();
}

static struct hold *new_hold(uint64_t owner, const struct hold_region *region,
                             CUmemGenericAllocationHandle memory, uint64_t change)
{
    struct hold *hold = tables_new();
    if (hold != NULL) {
        hold->region = *region;
        hold->memory = memory;
        hold->change = change;
        hold->owner = owner;
        hold->pieces = 0;
    }
    return hold;
}

static void begin_change(struct hold_change *change)
{
    if (change->number == 0)
        change->number = atomic_fetch_add_explicit(&change_count, 1, memory_order_relaxed) + 1;
}

static bool overlaps(const struct hold_region *one, const struct hold_region *other)
{
    bool same = one->level == other->level && one->layer == other->layer;
    for (int i = 0; i < 3 && same; i++)
        same = one->start[i] < other->start[i] + other->extent[i] &&
               other->start[i] < one->start[i] + one->extent[i];
    return same;
}

/* Of `whole`, what lies before (side 0) or behind (1) `cut` in one dimension, and within it in those before.
 */
static bool piece_beside(const struct hold_region *whole, const struct hold_region *cut, int dimension,
                         int side, struct hold_region *piece)
{
    *piece = *whole;
    for (int i = 0; i <= dimension; i++) {
        uint64_t end = whole->start[i] + whole->extent[i], cut_end = cut->start[i] + cut->extent[i];
        uint64_t from = cut->start[i] > whole->start[i] ? cut->start[i] : whole->start[i];
        uint64_t to = cut_end < end ? cut_end : end;
        if (i == dimension && side == 0) {
            to = from;
            from = whole->start[i];
        } else if (i == dimension) {
            from = to;
            to = end;
        }
        piece->start[i] = from;
        piece->extent[i] = to - from;
    }
    return piece->extent[dimension] > 0;
}

/* Under the lock: what is left of a hold around a region stays, as holds of its own. */
static void keep_pieces(struct owner *owner, struct hold *hold, const struct hold_region *cut,
                        uint64_t change)
{
    for (int i = 0; i < 6; i++) {
        struct hold_region region;
        struct hold *piece = NULL;
        if (piece_beside(&hold->region, cut, i / 2, i % 2, &region))
            piece = new_hold(owner->key, &region, hold->memory, change);
        if (piece != NULL) {
            piece->context = owner->context;
            push(&owner->first, piece);
            hold->pieces++;
        }
    }
}

/* Takes out what `region` overlaps (NULL: everything) of one owner, as a list. */
static struct hold *take(uint64_t key, const struct hold_region *region, uint64_t change)
{
    struct hold *taken = NULL, *all;
    struct owner *owner;
    if (!holds_exist() || !tables_lock())
        return NULL;
    owner = find_owner(key);
    all = owner == NULL ? NULL : owner->first;
    if (owner != NULL)
        owner->first = NULL;
    while (all != NULL) {
        struct hold *hold = all;
        all = hold->next;
        bool goes = region == NULL || overlaps(&hold->region, region);
        push(goes ? &taken : &owner->first, hold);
        if (goes && region != NULL)
            keep_pieces(owner, hold, region, change);
    }
    if (owner != NULL && owner->first == NULL && (region == NULL || !is_array(key)))
        end_owner(owner);
    tables_unlock();
    return taken;
}

static void take_and_release(struct call *call, struct hold_change *change, uint64_t owner,
                             const struct hold_region *region)
{
    struct hold *taken = take(owner, region, change->number);
    while (taken != NULL) {
        struct hold *hold = taken;
        taken = hold->next;
        for (unsigned i = 0; i < hold->pieces; i++)
            vmm_hold(hold->memory);
        vmm_release(call, &hold->release, hold->memory);
        push(&change->taken, hold);
    }
}

void holds_take(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner,
                const struct hold_region *region)
{
    if (!call->acts || !holds_exist())
        return;
    begin_change(change);
    take_and_release(call, change, owner_key(of, owner), region);
}

void holds_take_all(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner)
{
    holds_take(call, change, of, owner, NULL);
}

void holds_add(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner,
               const struct hold_region *region, CUmemGenericAllocationHandle memory)
{
    uint64_t key = owner_key(of, owner);
    CUcontext context = NULL;
    if (!call->acts)
        return;
    begin_change(change);
    bool holds = vmm_hold(memory); /* before what was there lets go: it may be the same memory */
    take_and_release(call, change, key, region);
    if (of == HOLDS_OF_ARRAY)
        ask_cuCtxGetCurrent(&context);
    if (!holds || !tables_lock())
        return;
    struct hold *hold = new_hold(key, region, memory, change->number);
    if (hold != NULL && !insert(hold, context))
        tables_delete(hold);
    tables_unlock();
}

/* Under the lock: takes out what a change added. */
static struct hold *take_added(uint64_t change)
{
    struct hold *taken = NULL;
    struct owner *owner, *next;
    HASH_ITER (hh, owners, owner, next) {
        struct hold *all = owner->first;
        owner->first = NULL;
        while (all != NULL) {
            struct hold *hold = all;
            all = hold->next;
            push(hold->change == change ? &taken : &owner->first, hold);
        }
        if (owner->first == NULL && !is_array(owner->key))
            end_owner(owner);
    }
    return taken;
}

/* Those that were taken are back before those that came instead go, so that no memory ends in between. Until
 * the driver has refused the whole call nobody else could come to the same parts. */
static void take_back(struct call *call, CUresult rc, struct hold_change *change)
{
    struct hold *added;
    for (struct hold *hold = change->taken; hold != NULL; hold = hold->next)
        vmm_released(call, rc, &hold->release, hold->memory);
    if (!tables_lock())
        return;
    while (change->taken != NULL) {
        struct hold *hold = change->taken;
        change->taken = hold->next;
        hold->pieces = 0;
        if (!insert(hold, hold->context))
            tables_delete(hold);
    }
    added = take_added(change->number);
    tables_unlock();
    for (struct hold *hold = added; hold != NULL; hold = hold->next)
        vmm_release(call, &hold->release, hold->memory);
    change->taken = added; /* to be deleted */
}

void holds_changed(struct call *call, CUresult rc, struct hold_change *change)
{
    if (change->number == 0)
        return;
    if (rc != CUDA_SUCCESS)
        take_back(call, rc, change);
    if (change->taken == NULL || !tables_lock())
        return;
    while (change->taken != NULL) {
        struct hold *hold = change->taken;
        change->taken = hold->next;
        tables_delete(hold);
    }
    tables_unlock();
}

static bool find_owner_in(CUcontext context, uint64_t *key)
{
    bool found = false;
    if (!tables_lock())
        return false;
    for (struct owner *owner = owners; owner != NULL && !found; owner = owner->hh.next) {
        found = is_array(owner->key) && owner->context == context;
        if (found)
            *key = owner->key;
    }
    tables_unlock();
    return found;
}

void holds_context_ended(CUcontext context)
{
    struct call call = {.acts = true};
    struct hold_change change = {0};
    uint64_t key;
    while (holds_exist() && find_owner_in(context, &key))
        holds_take_all(&call, &change, HOLDS_OF_ARRAY, key);
    holds_changed(&call, CUDA_SUCCESS, &change);
}
