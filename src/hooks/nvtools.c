/*
 * The functions of libnvToolsExt.so.1, the library that NVTX was before it came as headers (nvtx.c): a range
 * that a program marks through it is a phase, and the library is called all the same, and answers.
 *
 * Ranges that begin with Push belong to a thread. Those that begin with Start are named by a number, which
 * another thread may end them by. The number is the library's where it has one (a profiler is behind it), and
 * else ours, which the library then never sees.
 */
#include <stdatomic.h>

#include "hooks/call.h"
#include "hooks/nvtx_event.h"

/* Ranges that are open under numbers of the library's; further ones are no phases. */
#define NUMBERED_MAX 1024

/* A number of ours, as the program has it. */
#define OURS (UINT64_C(0x67700000) << 32)

struct numbered {
    _Atomic uint64_t number; /* the library's; 0: free */
    _Atomic uint32_t range;  /* 0: not known yet */
};

static struct numbered numbered[NUMBERED_MAX];

static void remember(uint64_t number, uint32_t range)
{
    for (int i = 0; i < NUMBERED_MAX; i++) {
        uint64_t none = 0;
        if (atomic_load_explicit(&numbered[i].number, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&numbered[i].number, &none, number)) {
            atomic_store(&numbered[i].range, range);
            return;
        }
    }
    phase_stop(range);
}

/* The range that has this number of the library's, which is free from now on; 0 for none. */
static uint32_t take(uint64_t number)
{
    for (int i = 0; i < NUMBERED_MAX; i++) {
        if (atomic_load_explicit(&numbered[i].number, memory_order_relaxed) != number)
            continue;
        uint32_t range = atomic_exchange(&numbered[i].range, 0);
        if (range != 0) {
            atomic_store(&numbered[i].number, 0);
            return range;
        }
    }
    return 0;
}

static uint64_t started(uint64_t number, uint32_t range)
{
    if (number == 0)
        return OURS | range;
    remember(number, range);
    return number;
}

static bool is_ours(uint64_t number)
{
    return (number & ~(uint64_t)UINT32_MAX) == OURS;
}

static void ended(uint64_t number)
{
    uint32_t range = is_ours(number) ? (uint32_t)number : number == 0 ? 0 : take(number);
    if (range != 0)
        phase_stop(range);
}

static void *real_function(enum hook_id id, const void *caller)
{
    int kept = errno;
    void *real = real_of_caller(id, caller);
    errno = kept;
    return real;
}

/* What the library registers has numbers of its own: such a message has no text here. */
static void name_range(char name[PHASE_NAME_BYTES], const struct nvtx_event *event)
{
    nvtx_name_event(name, NULL,
                    event != NULL && event->message_type == NVTX_MESSAGE_REGISTERED ? NULL : event);
}

static int push_event(const void *domain, const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    name_range(name, event);
    return phase_push(domain, name);
}

static uint32_t start_event(const struct nvtx_event *event)
{
    char name[PHASE_NAME_BYTES];
    name_range(name, event);
    return phase_start(name);
}

/* The library's answer where there is one. Its domains are its own: a range has its bare name. */
#define PUSH_HOOK(name, parameters, arguments, what)                                                         \
    HOOK_RETURNING(int, name, parameters)                                                                    \
    {                                                                                                        \
        int(*real) parameters = real_function(HOOK_##name, __builtin_return_address(0));                     \
        int level = (what);                                                                                  \
        return real == NULL ? level : real arguments;                                                        \
    }

#define START_HOOK(name, parameters, arguments, what)                                                        \
    HOOK_RETURNING(uint64_t, name, parameters)                                                               \
    {                                                                                                        \
        uint64_t(*real) parameters = real_function(HOOK_##name, __builtin_return_address(0));                \
        uint32_t range = (what);                                                                             \
        return started(real == NULL ? 0 : real arguments, range);                                            \
    }

PUSH_HOOK(nvtxRangePushA, (const char *name), (name), phase_push(NULL, name))
PUSH_HOOK(nvtxRangePushW, (const wchar_t *name), (name), nvtx_push_wide(name))
PUSH_HOOK(nvtxRangePushEx, (const struct nvtx_event *event), (event), push_event(NULL, event))
PUSH_HOOK(nvtxRangePop, (void), (), phase_pop(NULL))
PUSH_HOOK(nvtxDomainRangePushEx, (const void *domain, const struct nvtx_event *event), (domain, event),
          push_event(domain, event))
PUSH_HOOK(nvtxDomainRangePop, (const void *domain), (domain), phase_pop(domain))

START_HOOK(nvtxRangeStartA, (const char *name), (name), phase_start(name))
START_HOOK(nvtxRangeStartW, (const wchar_t *name), (name), nvtx_start_wide(name))
START_HOOK(nvtxRangeStartEx, (const struct nvtx_event *event), (event), start_event(event))
START_HOOK(nvtxDomainRangeStartEx, (const void *domain, const struct nvtx_event *event), (domain, event),
           start_event(event))

HOOK_RETURNING(void, nvtxRangeEnd, (uint64_t number))
{
    void (*real)(uint64_t) = real_function(HOOK_nvtxRangeEnd, __builtin_return_address(0));
    ended(number);
    if (real != NULL)
        real(is_ours(number) ? 0 : number);
}

HOOK_RETURNING(void, nvtxDomainRangeEnd, (const void *domain, uint64_t number))
{
    void (*real)(const void *, uint64_t) =
        real_function(HOOK_nvtxDomainRangeEnd, __builtin_return_address(0));
    ended(number);
    if (real != NULL)
        real(domain, is_ours(number) ? 0 : number);
}
