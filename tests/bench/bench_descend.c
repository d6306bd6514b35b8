/* Native frames for a benchmark: calls `function` from so many. A library of its own, since captures leave
 * out the frames of the one they are linked into. */
__attribute__((noinline)) void bench_descend(int frames, void (*function)(void *), void *arg)
{
    if (frames <= 1)
        function(arg);
    else
        bench_descend(frames - 1, function, arg);
    __asm__ volatile("" ::: "memory"); /* what comes after the call keeps it from being a jump */
}
