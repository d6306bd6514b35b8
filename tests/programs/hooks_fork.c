/*
 * hooks_fork CHILDREN: forks, one after the other, beside threads that look up what is not there by dlsym,
 * and says how many children could not look up anything any more.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, SECONDS = 10 };

static void *look_up(void *name)
{
    for (;;)
        dlsym(RTLD_DEFAULT, name);
    return NULL;
}

int main(int count, char **arguments)
{
    static char name[] = "cuMemAlloc_v2";
    pthread_t thread;
    int stuck = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, look_up, name);
    for (int i = count > 1 ? atoi(arguments[1]) : 0; i > 0; i--) {
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            dlsym(RTLD_DEFAULT, name);
            _exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        stuck += status != 0;
    }
    printf("%d stuck\n", stuck);
    fflush(stdout);
    _exit(0);
}
