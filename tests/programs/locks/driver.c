/*
 * A driver in front of the simulated one, whose file LOCKS_DRIVER names: each of its functions calls
 * watch_call() (watch.c) and goes on to the real one's. The functions themselves are made by test_locks.py,
 * as jumps here; x86-64.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct slot {
    const char *name;
    uintptr_t target; /* at first its offset in the file */
};
extern struct slot locks_slots[];
extern const uint64_t locks_slot_count;

void watch_call(const char *what) __attribute__((weak));

__attribute__((visibility("hidden"))) void locks_enter(const struct slot *slot)
{
    if (watch_call)
        watch_call(slot->name);
}

__attribute__((constructor)) static void find_real(void)
{
    struct link_map *map;
    void *real = dlopen(getenv("LOCKS_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    if (!real || dlinfo(real, RTLD_DI_LINKMAP, &map) != 0) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        abort();
    }
    for (uint64_t i = 0; i < locks_slot_count; i++)
        locks_slots[i].target += map->l_addr;
}

/* The slot is in r11, the caller's arguments are where they were. */
__asm__(".text\n"
        ".globl locks_jump\n"
        ".hidden locks_jump\n"
        ".type locks_jump, @function\n"
        "locks_jump:\n"
        "    pushq %rdi; pushq %rsi; pushq %rdx; pushq %rcx; pushq %r8; pushq %r9; pushq %rax; pushq %r11\n"
        "    subq $8, %rsp\n"
        "    movq %r11, %rdi\n"
        "    call locks_enter\n"
        "    addq $8, %rsp\n"
        "    popq %r11; popq %rax; popq %r9; popq %r8; popq %rcx; popq %rdx; popq %rsi; popq %rdi\n"
        "    jmp *8(%r11)\n");
