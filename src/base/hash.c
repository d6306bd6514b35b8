/* The keyed hash of all tables (hash.h). */
#include "base/hash.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hash_keys hash_keys = {UINT64_C(0x2d358dccaa6c78a5), UINT64_C(0x8bb84b93962eacc9)};

void hash_draw_keys(void)
{
    enum { NONBLOCK = 1 }; /* <linux/random.h> */
    struct hash_keys drawn;
    /* The call, since getrandom() needs glibc 2.25, and this is in the library too. */
    if (syscall(SYS_getrandom, &drawn, sizeof drawn, NONBLOCK) != (long)sizeof drawn)
        return;
    drawn.multiply |= 1;
    hash_keys = drawn;
}

uint32_t hash_bytes(const void *bytes, size_t count)
{
    const char *at = bytes;
    uint64_t hash = count, word;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = hash_mix(hash ^ word);
    }
    if (count > 0) {
        word = 0;
        memcpy(&word, at, count);
        hash = hash_mix(hash ^ word);
    }
    return hash_number(hash);
}
