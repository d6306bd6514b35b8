/* Contexts, a pile of them for each thread: the last is current. */
#include "work.h"

void change_contexts(struct work *work)
{
    if (work->depth < CONTEXTS && random_below(work, 2)) {
        CUcontext context = NULL;
        CUresult rc = cuCtxCreate_v2(&context, 0, 0);
        if (note_handle(work, "context", rc, context) == CUDA_SUCCESS)
            work->contexts[work->depth++] = context;
    } else if (work->depth > 0) {
        CUcontext context = work->contexts[work->depth - 1];
        if (note(work, "end a context", cuCtxDestroy_v2(context), 0) != CUDA_SUCCESS)
            return;
        for (int i = work->thing_count - 1; i >= 0; i--) {
            if (work->things[i].context == work->depth)
                end_thing(work, i, true);
        }
        shared_context_ended(work, work->depth);
        external_context_ended(work, work->depth);
        sparse_context_ended(work, work->depth);
        work->depth--;
    } else {
        note(work, "end no context", cuCtxDestroy_v2(NULL), 0);
        note(work, "end the primary context", cuCtxDestroy_v2(work->primary), 0);
    }
}
