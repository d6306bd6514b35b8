/* Phases and steps (program_phases.h): names, each thread's stack, and all open ranges. */
#define GPUMEMTRACE_LIBRARY
#include "preload/program_phases.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "gpumemtrace.h"
#include "preload/learn.h"
#include "preload/recorder.h"
#include "preload/state.h"

#define PUSHED_MAX 32   /* in one thread; deeper ones are counted only */
#define OPEN_MAX   1024 /* ranges of all threads; further ones are not recorded */
#define NAMES_MAX  1000 /* under what a ledger takes (ledger/phases.h) */
#define ALIKE_MAX  4    /* names that differ in their digits only and are told apart */

struct phase_name {
    uint32_t string; /* in the catalog of this recording; CATALOG_NONE: not yet */
    uint32_t alike;  /* names of which this is the pattern */
    bool is_used;
    UT_hash_handle hh;
    char text[];
};

struct open_range {
    uint32_t range;
    struct phase_name *name;
};

struct pushed {
    const void *domain;
    uint32_t range; /* 0: it was not recorded */
};

/* Under the lock of state.h. Names outlive recordings, and so does their memory. */
static struct {
    struct arena arena;
    struct phase_name *names;
    uint32_t name_count;
    struct open_range open[OPEN_MAX];
    uint32_t open_count;
    uint64_t steps;
} phases;

static _Atomic uint32_t last_range;

static __thread struct {
    uint32_t count, beyond;
    struct pushed pushed[PUSHED_MAX];
} stack __attribute__((tls_model("initial-exec")));

static struct phase_name *find_name(const char *text)
{
    struct phase_name *name;
    HASH_FIND_STR(phases.names, text, name); /* NOLINT: the hash reads the text alone */
    return name;
}

static struct phase_name *add_name(const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct phase_name *name =
        phases.name_count < 2 * NAMES_MAX ? arena_alloc(&phases.arena, sizeof *name + bytes) : NULL;
    if (name == NULL)
        return NULL;
    name->string = CATALOG_NONE;
    memcpy(name->text, text, bytes);
    HASH_ADD(hh, phases.names, text, (unsigned)(bytes - 1), name);
    if (!hash_added(name))
        return NULL;
    phases.name_count++;
    return name;
}

static struct phase_name *reach_name(const char *text)
{
    struct phase_name *name = find_name(text);
    return name != NULL ? name : add_name(text);
}

/* "step 17 of 20" gives "step # of #". False for a name without digits. */
static bool make_pattern(const char *text, char *pattern)
{
    bool has_digits = false;
    for (; *text != '\0'; text++) {
        bool is_digit = *text >= '0' && *text <= '9';
        if (is_digit && has_digits && pattern[-1] == '#')
            continue;
        *pattern++ = is_digit ? '#' : *text;
        has_digits |= is_digit;
    }
    *pattern = '\0';
    return has_digits;
}

/* The name that a range goes by; NULL without memory, or room for more. */
static struct phase_name *name_for(const char *text)
{
    char pattern[PHASE_NAME_BYTES];
    struct phase_name *name = find_name(text);
    if (name != NULL && name->is_used)
        return name;
    struct phase_name *all = make_pattern(text, pattern) ? reach_name(pattern) : NULL;
    if (all != NULL && all->alike == ALIKE_MAX)
        name = all;
    else if (name == NULL)
        name = add_name(text);
    if (name == NULL)
        return NULL;
    if (all != NULL && name != all)
        all->alike++;
    name->is_used = true;
    return name;
}

static bool is_recording(void)
{
    return atomic_load_explicit(&preload.phase, memory_order_relaxed) == PHASE_RECORDING;
}

/* Under the lock, while recording. */
static void put_begin(const struct open_range *open)
{
    if (open->name->string == CATALOG_NONE)
        open->name->string = learn_string(open->name->text);
    if (open->name->string != CATALOG_NONE)
        recorder_apply(&(struct event){.type = EVENT_PHASE_BEGIN,
                                       .time_ns = preload_now_ns(),
                                       .name = open->name->string,
                                       .range = open->range});
}

/* The range's number, or 0 when it is not kept. */
static uint32_t begin(const char *text)
{
    char copy[PHASE_NAME_BYTES];
    uint32_t range = 0;
    int kept = errno;
    size_t bytes = text == NULL ? 0 : strnlen(text, sizeof copy - 1);
    memcpy(copy, text == NULL ? "" : text, bytes);
    copy[bytes] = '\0';
    if (hook_enter() && preload_lock()) {
        struct phase_name *name = phases.open_count < OPEN_MAX ? name_for(copy) : NULL;
        if (name != NULL) {
            do {
                range = atomic_fetch_add_explicit(&last_range, 1, memory_order_relaxed) + 1;
            } while (range == 0);
            struct open_range *open = &phases.open[phases.open_count++];
            *open = (struct open_range){.range = range, .name = name};
            if (is_recording())
                put_begin(open);
        }
        preload_unlock();
    }
    hook_leave();
    errno = kept;
    return range;
}

static void end(uint32_t range)
{
    int kept = errno;
    if (range != 0 && hook_enter() && preload_lock()) {
        uint32_t at = phases.open_count;
        while (at > 0 && phases.open[at - 1].range != range)
            at--;
        if (at > 0) {
            memmove(&phases.open[at - 1], &phases.open[at], (phases.open_count - at) * sizeof *phases.open);
            phases.open_count--;
            if (is_recording())
                recorder_apply(
                    &(struct event){.type = EVENT_PHASE_END, .time_ns = preload_now_ns(), .range = range});
        }
        preload_unlock();
    }
    if (range != 0)
        hook_leave();
    errno = kept;
}

static int count_of(const void *domain)
{
    int count = 0;
    for (uint32_t i = 0; i < stack.count; i++)
        count += stack.pushed[i].domain == domain;
    return count;
}

int phase_push(const void *domain, const char *name)
{
    int level = count_of(domain);
    if (stack.count == PUSHED_MAX)
        stack.beyond++;
    else
        stack.pushed[stack.count++] = (struct pushed){.domain = domain, .range = begin(name)};
    return level;
}

int phase_pop(const void *domain)
{
    if (stack.beyond > 0) {
        stack.beyond--;
        return PUSHED_MAX;
    }
    uint32_t at = stack.count;
    while (at > 0 && stack.pushed[at - 1].domain != domain)
        at--;
    if (at == 0)
        return -1;
    end(stack.pushed[at - 1].range);
    memmove(&stack.pushed[at - 1], &stack.pushed[at], (stack.count - at) * sizeof *stack.pushed);
    stack.count--;
    return count_of(domain);
}

uint32_t phase_start(const char *name)
{
    uint32_t range = begin(name);
    return range != 0 ? range : UINT32_MAX;
}

void phase_stop(uint32_t range)
{
    end(range);
}

static void phase_step(void)
{
    int kept = errno;
    if (hook_enter() && preload_lock()) {
        if (is_recording())
            recorder_apply(
                &(struct event){.type = EVENT_STEP, .time_ns = preload_now_ns(), .size = ++phases.steps});
        preload_unlock();
    }
    hook_leave();
    errno = kept;
}

void phases_begin_recording(void)
{
    for (uint32_t i = 0; i < phases.open_count; i++)
        put_begin(&phases.open[i]);
}

void phases_forget_recording(void)
{
    for (struct phase_name *name = phases.names; name != NULL; name = name->hh.next)
        name->string = CATALOG_NONE;
    phases.steps = 0;
}

void phases_after_fork(void)
{
    phases.open_count = 0;
}

static const char own_domain; /* its address */

void gpumemtrace_phase_begin(const char *name)
{
    phase_push(&own_domain, name);
}

void gpumemtrace_phase_end(void)
{
    phase_pop(&own_domain);
}

void gpumemtrace_step(void)
{
    phase_step();
}
