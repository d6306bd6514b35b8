/*
 * random_program FOLDER FIRST COUNT STEPS: for each seed a child of its own loads the stand-in allocator from
 * FOLDER, RTLD_LOCAL as a Python module would be, and allocates and frees at random on two devices and three
 * streams; it prints the allocator's own figures as a line of JSON, and leaves with everything still alive.
 */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "caching_allocator.h"

namespace
{
constexpr size_t MIB = 1 << 20;
constexpr int DEVICES = 2, STREAMS = 3;

struct Allocator {
    decltype(&allocator_expandable) expandable;
    decltype(&allocator_malloc) malloc;
    decltype(&allocator_free) free;
    decltype(&allocator_empty_cache) empty_cache;
    decltype(&allocator_figures) figures;
    decltype(&allocator_peak) peak;
    decltype(&allocator_refusals) refusals;

    explicit Allocator(const std::string &folder)
    {
        void *library = dlopen((folder + "/libc10_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            fprintf(stderr, "%s\n", dlerror());
            _exit(2);
        }
        find(library, "allocator_expandable", expandable);
        find(library, "allocator_malloc", malloc);
        find(library, "allocator_free", free);
        find(library, "allocator_empty_cache", empty_cache);
        find(library, "allocator_figures", figures);
        find(library, "allocator_peak", peak);
        find(library, "allocator_refusals", refusals);
    }

    template <typename Function> static void find(void *library, const char *name, Function &function)
    {
        function = reinterpret_cast<Function>(dlsym(library, name));
    }
};

std::string json(const Figures &figures)
{
    char text[400];
    snprintf(text, sizeof text,
             "{\"reserved\": %llu, \"allocated\": %llu, \"releasable\": %llu, \"stranded\": %llu, "
             "\"largest_free\": %llu, \"segments\": %llu}",
             (unsigned long long)figures.reserved, (unsigned long long)figures.allocated,
             (unsigned long long)figures.releasable, (unsigned long long)figures.stranded,
             (unsigned long long)figures.largest_free, (unsigned long long)figures.segments);
    return text;
}

void play(const Allocator &allocator, std::mt19937_64 &random, int steps)
{
    std::vector<void *> alive;
    auto below = [&](size_t bound) { return random() % bound; };
    auto release = [&](size_t index) {
        allocator.free(alive[index]);
        alive[index] = alive.back();
        alive.pop_back();
    };
    for (int i = 0; i < steps; i++) {
        size_t bytes = below(3) == 0 ? below(MIB) : below(3) == 0 ? below(40 * MIB) : MIB + below(9 * MIB);
        if (below(50) == 0) {
            allocator.empty_cache(static_cast<int>(below(DEVICES)));
        } else if (!alive.empty() && (below(100) < 42 || alive.size() > 80)) {
            release(below(alive.size()));
        } else if (void *got = allocator.malloc(static_cast<int>(below(DEVICES)), bytes,
                                                static_cast<int>(below(STREAMS)))) {
            alive.push_back(got);
        } else {
            for (size_t left = alive.size() / 2; left > 0; left--)
                release(below(alive.size()));
        }
    }
}

void tell(const Allocator &allocator, unsigned long seed)
{
    constexpr size_t MOST = 1000;
    std::string now, peak, refusals;
    std::vector<Figures> figures(MOST);
    std::vector<int> devices(MOST);
    for (int device = 0; device < DEVICES; device++) {
        Figures found;
        allocator.figures(device, &found);
        now += (device ? ", " : "") + json(found);
        allocator.peak(device, &found);
        peak += (device ? ", " : "") + json(found);
    }
    size_t count = allocator.refusals(figures.data(), devices.data(), MOST);
    for (size_t i = 0; i < count && i < MOST; i++)
        refusals += (i ? ", [" : "[") + std::to_string(devices[i]) + ", " + json(figures[i]) + "]";
    std::string line = "{\"pid\": " + std::to_string(getpid()) + ", \"seed\": " + std::to_string(seed) +
                       ", \"now\": [" + now + "], \"peak\": [" + peak + "], \"refusals\": [" + refusals +
                       "]}\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        _exit(2);
}

[[noreturn]] void child(const std::string &folder, unsigned long seed, int steps)
{
    bool expandable = seed % 3 == 2;
    setenv("SIMGPU_DEVICES", "2", 1);
    /* In segments of their own, so that the cache must be emptied, and at times that is not enough. */
    setenv("SIMGPU_MEMORY", expandable ? "16G" : "280M", 1);
    setenv("SIMGPU_CONTEXT", "16M", 1);
    Allocator allocator(folder);
    std::mt19937_64 random(seed);
    allocator.expandable(expandable);
    play(allocator, random, steps);
    tell(allocator, seed);
    _exit(0);
}
} // namespace

int main(int, char **argv)
{
    unsigned long first = strtoul(argv[2], nullptr, 10), count = strtoul(argv[3], nullptr, 10);
    int failed = 0;
    for (unsigned long seed = first; seed < first + count; seed++) {
        pid_t pid = fork();
        if (pid == 0)
            child(argv[1], seed, atoi(argv[4]));
        int status = 0;
        waitpid(pid, &status, 0);
        failed |= status;
    }
    return failed != 0;
}
