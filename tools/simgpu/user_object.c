/* Objects of the program's that graphs hold: counted, and destroyed by the program's own function at the end.
 */
#include "entry.h"
#include "graph.h"

struct user_object {
    struct handle handle;
    CUhostFn destroy;
    void *object;
    unsigned references;
};

static CUresult create(CUuserObject *out, void *object, CUhostFn destroy, unsigned references, unsigned flags)
{
    if (!out || !destroy || !references || flags != 1 /* no synchronisation: the only one there is */)
        return CUDA_ERROR_INVALID_VALUE;
    struct user_object *user = handle_new(HANDLE_USER_OBJECT, sizeof *user, NULL);
    if (!user)
        return CUDA_ERROR_OUT_OF_MEMORY;
    user->destroy = destroy;
    user->object = object;
    user->references = references;
    *out = (CUuserObject)user;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuUserObjectCreate(CUuserObject *out, void *object, CUhostFn destroy, unsigned int references,
                                   unsigned int flags)
{
    return CALL("cuUserObjectCreate", NEEDS_INIT, create(out, object, destroy, references, flags));
}

void user_object_release(struct user_object *user, unsigned count)
{
    user->references -= count;
    if (user->references)
        return;
    entry_call_later(user->destroy, user->object);
    handle_end(user, sizeof *user);
}

static CUresult retain(CUuserObject handle, unsigned count)
{
    struct user_object *user = handle_get(handle, HANDLE_USER_OBJECT);
    if (!user || !count)
        return CUDA_ERROR_INVALID_VALUE;
    user->references += count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    return CALL("cuUserObjectRetain", NEEDS_INIT, retain(object, count));
}

static CUresult release(CUuserObject handle, unsigned count)
{
    struct user_object *user = handle_get(handle, HANDLE_USER_OBJECT);
    if (!user || !count || count > user->references)
        return CUDA_ERROR_INVALID_VALUE;
    user_object_release(user, count);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    return CALL("cuUserObjectRelease", NEEDS_INIT, release(object, count));
}

/* ---- held by graphs ---- */

/* With CU_GRAPH_USER_OBJECT_MOVE the caller gives its own references away. */
static CUresult graph_retain(CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags)
{
    struct graph *graph = graph_get(graph_handle);
    struct user_object *user = handle_get(handle, HANDLE_USER_OBJECT);
    if (!graph || !user || !count || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!graph_hold_object(graph, user, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!flags)
        user->references += count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                        unsigned int flags)
{
    return CALL("cuGraphRetainUserObject", NEEDS_INIT, graph_retain(graph, object, count, flags));
}

static CUresult graph_release(CUgraph graph_handle, CUuserObject handle, unsigned count)
{
    struct graph *graph = graph_get(graph_handle);
    struct user_object *user = handle_get(handle, HANDLE_USER_OBJECT);
    if (!graph || !user || !count || !graph_drop_object(graph, user, count))
        return CUDA_ERROR_INVALID_VALUE;
    user_object_release(user, count);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    return CALL("cuGraphReleaseUserObject", NEEDS_INIT, graph_release(graph, object, count));
}
