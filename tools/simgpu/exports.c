/*
 * The table of the driver's exports by name and CUDA version. Every name that NVIDIA's driver exports is in
 * it; those that the simulation does not offer exist as stubs (stubs.c), for programs that only look.
 */
#include "exports.h"

#define SIMGPU_NO_PROTOTYPES
#include "entry.h"

#include <string.h>

struct exported {
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
static const struct exported memory_exports[] = {
#include "exports_memory.h"
};
static const struct exported other_exports[] = {
#include "exports_other.h"
};
static const struct exported stream_exports[] = {
#include "exports_stream.h"
};

#define TABLE(exports)                                                                                       \
    {                                                                                                        \
        exports, sizeof(exports) / sizeof *(exports)                                                         \
    }
static const struct {
    const struct exported *exports;
    size_t count;
} tables[] = {TABLE(memory_exports), TABLE(other_exports), TABLE(stream_exports)};

/* The first entry of a name in one table, which is sorted by name; NULL when it is not there. */
static const struct exported *first_of(const struct exported *exports, size_t count, const char *name)
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
        const struct exported *end = tables[i].exports + tables[i].count, *best = NULL;
        const struct exported *entry = first_of(tables[i].exports, tables[i].count, name);
        if (!entry)
            continue;
        for (; entry < end && strcmp(entry->name, name) == 0; entry++)
            if (entry->version <= version && (per_thread || !entry->per_thread) &&
                !(best && best->per_thread && !entry->per_thread))
                best = entry;
        *status = best ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        return best ? best->address : NULL;
    }
    return NULL;
}
