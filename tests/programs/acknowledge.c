/*
 * Allocates and frees in several threads without end, and after each call that returned writes one byte to
 * standard output: 'a' for an allocation, 'f' for a free. Made to be killed: what it acknowledged must be in
 * the recording. Usage: acknowledge THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"

static void *context;

static void acknowledge(char what)
{
    if (write(STDOUT_FILENO, &what, 1) != 1)
        _exit(3);
}

static void *work(void *argument)
{
    address kept[64] = {0};
    size_t size = 1000 + (size_t)argument;
    if (cuCtxSetCurrent(context) != 0)
        _exit(4);
    for (unsigned int turn = 0;; turn++) {
        address *slot = &kept[turn % 64];
        if (*slot != 0) {
            if (cuMemFree_v2(*slot) != 0)
                _exit(5);
            acknowledge('f');
        }
        if (cuMemAlloc_v2(slot, size) != 0)
            _exit(6);
        acknowledge('a');
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc == 2 ? atoi(argv[1]) : 1;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0)
        return 2;
    for (int i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(size_t)i) != 0)
            return 2;
    }
    work(NULL);
    return 0;
}
