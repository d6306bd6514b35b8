/*
 * Takes three blocks of memory and gives one back after the kernel was told to refuse a system call: refused
 * NUMBER ERRNO. Ends with 7, with 77 where there is no such filter, and otherwise with what failed.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "driver.h"

static int refuse(unsigned int number, unsigned int error)
{
    struct sock_filter one[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, one};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv)
{
    address blocks[3];
    void *context;
    if (argc < 3 || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        cuCtxSetCurrent(context) != 0)
        return 2;
    if (!refuse((unsigned)atoi(argv[1]), (unsigned)atoi(argv[2])))
        return 77;
    for (int i = 0; i < 3; i++) {
        if (cuMemAlloc_v2(&blocks[i], (size_t)(i + 1) << 20) != 0)
            return 3;
    }
    return cuMemFree_v2(blocks[0]) == 0 ? 7 : 4;
}
