/*
 * cuInit and cuGetProcAddress: how a runtime comes by the driver. Look-ups act at any depth, since what they
 * return is called later.
 *
 * Which variant the driver returned is told by its address, which is that of one of its exports. A driver, or
 * another tool's hook, that returns something else is taken at its word: the variant that cudaTypedefs.h
 * promises for that name at that version.
 */
#include "hooks/proc_address.h"

#include "hooks/ask.h"
#include "hooks/call.h"
#include "hooks/loaded.h"
#include "hooks/loader.h"

typedef CUresult look_up(const char *symbol, void **function, int version, cuuint64_t flags);
typedef CUresult look_up_with_status(const char *symbol, void **function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status);

static int driver_version(void)
{
    static _Atomic int known;
    int version = atomic_load_explicit(&known, memory_order_relaxed);
    if (version == 0 && ask_cuDriverGetVersion(&version) == CUDA_SUCCESS)
        atomic_store_explicit(&known, version, memory_order_relaxed);
    return version;
}

/* What the driver itself returns for a version, without a trace. */
static void *ask_again(const char *symbol, int version, uint64_t flags)
{
    look_up_with_status *v2 = real_driver(HOOK_cuGetProcAddress_v2);
    look_up *v1 = v2 == NULL ? real_driver(HOOK_cuGetProcAddress) : NULL;
    CUdriverProcAddressQueryResult status;
    void *function = NULL;
    CUresult rc = CUDA_ERROR_NOT_FOUND;
    if (v2 != NULL)
        rc = v2(symbol, &function, version, flags, &status);
    else if (v1 != NULL)
        rc = v1(symbol, &function, version, flags);
    return rc == CUDA_SUCCESS ? function : NULL;
}

/* By a version newer than the table, a name may mean a variant that we do not know: unless it still means
 * what it meant at the newest version that we do know, it is left alone. */
static enum hook_id variant_by_version(const char *symbol, void *function, int version, uint64_t flags)
{
    enum hook_stream stream =
        (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 ? HOOK_PER_THREAD : HOOK_LEGACY;
    int driver = driver_version();
    if (driver != 0 && version > driver)
        version = driver;
    if (version > SYMBOLS_CUDA_VERSION) {
        if (ask_again(symbol, SYMBOLS_CUDA_VERSION, flags) != function)
            return HOOK_COUNT;
        version = SYMBOLS_CUDA_VERSION;
    }
    return symbol_variant(symbol, version, stream);
}

/* Our own hook came back: from a driver that resolves its own exports, or from a tool behind us that meant
 * its own function of that name. The latter is then the next one to call. */
static void learn_from_our_own(const void *function)
{
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (hook_symbols[i].hook == function && hook_symbols[i].library == HOOK_DRIVER)
            real_learn_driver((enum hook_id)i, loader_next(hook_symbols[i].name));
    }
}

void proc_address_replace(const char *symbol, void **function, int version, uint64_t flags)
{
    if (symbol == NULL || function == NULL || *function == NULL || !symbol_is_driver_name(symbol))
        return;
    real_prepare();
    if (loaded_is_ours(*function)) {
        learn_from_our_own(*function);
        return;
    }
    enum hook_id id = real_variant_at(*function, symbol);
    if (id == HOOK_COUNT && version != PROC_ADDRESS_ANY_VERSION)
        id = variant_by_version(symbol, *function, version, flags);
    if (id == HOOK_COUNT)
        return;
    real_learn_driver(id, *function);
    *function = hook_symbols[id].hook;
}

HOOK(cuInit, (unsigned int flags))
{
    FORWARD(cuInit);
    real_prepare();
    CUresult rc = REAL(flags);
    return call_end(&call, rc);
}

HOOK(cuGetProcAddress, (const char *symbol, void **function, int version, cuuint64_t flags))
{
    FORWARD(cuGetProcAddress);
    CUresult rc = REAL(symbol, function, version, flags);
    if (rc == CUDA_SUCCESS)
        proc_address_replace(symbol, function, version, flags);
    return call_end(&call, rc);
}

HOOK(cuGetProcAddress_v2, (const char *symbol, void **function, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status))
{
    FORWARD(cuGetProcAddress_v2);
    CUresult rc = REAL(symbol, function, version, flags, status);
    if (rc == CUDA_SUCCESS)
        proc_address_replace(symbol, function, version, flags);
    return call_end(&call, rc);
}
