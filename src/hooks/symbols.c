/* The table of symbols.h as data, and its look-ups. Nothing here calls out: dlsym uses it before anything
 * else is up. */
#include "hooks/symbols.h"

#include <string.h>

/* Each hook under its internal name: &cuMemAlloc_v2 could be another library's. */
#define AS_DECLARATION(name, ...) extern char hook_##name[] __attribute__((visibility("hidden")));
HOOKED_SYMBOLS(AS_DECLARATION)
#undef AS_DECLARATION

#define AS_ROW(symbol, bare_name, from, stream_kind, of, ...)                                                \
    [HOOK_##symbol] = {.name = #symbol,                                                                      \
                       .bare = (bare_name),                                                                  \
                       .name_length = sizeof #symbol - 1,                                                    \
                       .bare_length = sizeof bare_name - 1,                                                  \
                       .stream = HOOK_##stream_kind,                                                         \
                       .library = HOOK_##of,                                                                 \
                       .since = (from),                                                                      \
                       .hook = hook_##symbol},
const struct hook_symbol hook_symbols[HOOK_COUNT] = {HOOKED_SYMBOLS(AS_ROW)};
#undef AS_ROW

/* A bare name that from some version on means a function that also has a bare name of its own. */
static const struct {
    const char *bare;
    int since;
    enum hook_id hook;
} aliases[] = {
    /* cuda.h of 12.0 and later: #define cuGraphInstantiate cuGraphInstantiateWithFlags */
    {"cuGraphInstantiate", 12000, HOOK_cuGraphInstantiateWithFlags},
};

static int could_be_hooked(const char *name)
{
    return name != NULL && name[0] == 'c' && name[1] == 'u' && name[2] != '\0';
}

enum hook_id symbol_find(const char *name)
{
    if (!could_be_hooked(name))
        return HOOK_COUNT;
    size_t length = strlen(name);
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (hook_symbols[i].name_length == length && memcmp(hook_symbols[i].name, name, length) == 0)
            return (enum hook_id)i;
    }
    return HOOK_COUNT;
}

static int is_bare_name_of(const struct hook_symbol *symbol, const char *bare, size_t length)
{
    return symbol->library == HOOK_DRIVER && symbol->bare_length == length &&
           memcmp(symbol->bare, bare, length) == 0;
}

enum hook_id symbol_variant(const char *bare, int version, enum hook_stream stream)
{
    enum hook_id best = HOOK_COUNT;
    int best_since = -1;
    if (!could_be_hooked(bare))
        return HOOK_COUNT;
    size_t length = strlen(bare);
    for (int i = 0; i < HOOK_COUNT; i++) {
        const struct hook_symbol *symbol = &hook_symbols[i];
        if (!is_bare_name_of(symbol, bare, length) || symbol->since > version)
            continue;
        /* The per-thread variant is for who asks for it; who asks where there is none gets the only one. */
        if (symbol->stream == HOOK_PER_THREAD && stream != HOOK_PER_THREAD)
            continue;
        if (symbol->since > best_since ||
            (symbol->since == best_since && symbol->stream == HOOK_PER_THREAD)) {
            best = (enum hook_id)i;
            best_since = symbol->since;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (aliases[i].since <= version && aliases[i].since > best_since &&
            strcmp(aliases[i].bare, bare) == 0)
            best = aliases[i].hook;
    }
    return best;
}

int symbol_is_driver_name(const char *name)
{
    if (!could_be_hooked(name))
        return 0;
    size_t length = strlen(name);
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (is_bare_name_of(&hook_symbols[i], name, length))
            return 1;
    }
    enum hook_id exact = symbol_find(name);
    return exact != HOOK_COUNT && hook_symbols[exact].library == HOOK_DRIVER;
}
