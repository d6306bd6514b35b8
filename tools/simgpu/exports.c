/*
 * cuGetProcAddress: a name, a CUDA version and flags lead to one of the driver's exports. Every name that
 * NVIDIA's driver exports is here; those that the simulation does not offer exist as stubs, for programs that
 * only look.
 */
#include "entry.h"

#include <string.h>

struct export
{
    const char *name;
    int version; /* of CUDA, that brought this variant */
    bool per_thread;
    void *address;
};

/* The table needs addresses only: no matter what the functions take. */
#define LEGACY(name, version, suffix)     EXPORT CUresult name##suffix(void);
#define PER_THREAD(name, version, suffix) LEGACY(name, version, suffix)
#define ALIAS(name, version, symbol)
#include "exports_memory.h"
#include "exports_other.h"
#include "exports_stream.h"
#undef LEGACY
#undef PER_THREAD
#undef ALIAS

#define LEGACY(name, version, suffix)     {#name, version, false, (void *)name##suffix},
#define PER_THREAD(name, version, suffix) {#name, version, true, (void *)name##suffix},
#define ALIAS(name, version, symbol)      {#name, version, false, (void *)symbol},
static const struct export memory_exports[] = {
#include "exports_memory.h"
};
static const struct export other_exports[] = {
#include "exports_other.h"
};
static const struct export stream_exports[] = {
#include "exports_stream.h"
};

#define TABLE(exports)                                                                                       \
    {                                                                                                        \
        exports, sizeof(exports) / sizeof *(exports)                                                         \
    }
static const struct {
    const struct export *exports;
    size_t count;
} tables[] = {TABLE(memory_exports), TABLE(other_exports), TABLE(stream_exports)};

/* The first export of a name in one table, which is sorted by name; NULL when it is not there. */
static const struct export *first_of(const struct export *exports, size_t count, const char *name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(exports[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && strcmp(exports[low].name, name) == 0 ? &exports[low] : NULL;
}

void *export_pick(const char *name, int version, bool per_thread, CUdriverProcAddressQueryResult *status)
{
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct export *end = tables[i].exports + tables[i].count, *best = NULL;
        const struct export *export = first_of(tables[i].exports, tables[i].count, name);
        if (!export)
            continue;
        for (; export < end && strcmp(export->name, name) == 0; export ++)
            if (export->version <= version && (per_thread || !export->per_thread) &&
                !(best && best->per_thread && !export->per_thread))
                best = export;
        *status = best ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        return best ? best->address : NULL;
    }
    return NULL;
}
