/*
 * Everything that unwinds C++ frames, with CUDA allocations in between: run(name) does one thing and prints
 * what happened, in order. As a program (-DPROGRAM) it takes the name as its argument; as a library it is for
 * exceptions_host.c and for Python.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" {
int cuInit(unsigned int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);
void __register_frame(void *);
void __deregister_frame(void *);
int run(const char *name);
}

namespace
{

void *context;

/* A block that must not be forgotten by whatever unwinds through it. */
struct Block {
    unsigned long long address = 0;
    const char *name;

    explicit Block(const char *name) : name(name)
    {
        cuCtxSetCurrent(context);
        if (cuMemAlloc_v2(&address, 1 << 20) != 0)
            throw std::bad_alloc();
        std::printf("+%s\n", name);
    }
    Block(const Block &) = delete;
    ~Block()
    {
        std::printf("-%s%s\n", name, std::uncaught_exceptions() ? " unwinding" : "");
        cuMemFree_v2(address);
    }
};

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <int N> __attribute__((noinline)) void deep(void (*last)())
{
    Block block(N % 2 ? "odd" : "even");
    deep<N - 1>(last);
}

template <> void deep<0>(void (*last)())
{
    Block block("last");
    last();
}

void throw_error()
{
    throw Error("thrown");
}

void caught()
{
    for (int i = 0; i < 3; i++) {
        try {
            deep<5>(throw_error);
        } catch (const Error &error) {
            std::printf("caught %s\n", error.what());
            Block block("in handler");
        }
    }
}

void rethrown()
{
    try {
        try {
            deep<2>(throw_error);
        } catch (...) {
            Block block("first handler");
            throw;
        }
    } catch (const std::exception &error) {
        std::printf("again %s\n", error.what());
    }
    try {
        try {
            throw_error();
        } catch (...) {
            std::throw_with_nested(std::logic_error("outer"));
        }
    } catch (const std::logic_error &error) {
        std::printf("%s\n", error.what());
        try {
            std::rethrow_if_nested(error);
        } catch (const Error &inner) {
            std::printf("nested %s\n", inner.what());
        }
    }
}

void from_thread()
{
    std::future<int> value = std::async(std::launch::async, []() -> int {
        deep<3>(throw_error);
        return 1;
    });
    try {
        value.get();
    } catch (const Error &error) {
        std::printf("from thread %s\n", error.what());
    }
}

/* Many threads that all throw and catch at once. */
void in_threads()
{
    std::vector<std::thread> threads;
    std::vector<int> caught(8);
    for (int &count : caught)
        threads.emplace_back([&count] {
            cuCtxSetCurrent(context);
            for (int i = 0; i < 300; i++) {
                unsigned long long address = 0;
                try {
                    cuMemAlloc_v2(&address, 4096 * (i % 7 + 1));
                    throw i;
                } catch (int number) {
                    count += number == i;
                    cuMemFree_v2(address);
                }
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    for (int count : caught)
        std::printf("%d\n", count);
}

void exit_thread()
{
    pthread_exit(const_cast<char *>("exited"));
}

void *exiting(void *)
{
    deep<3>(exit_thread);
    return nullptr;
}

void thread_exit()
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, exiting, nullptr);
    pthread_join(thread, &result);
    std::printf("%s\n", static_cast<char *>(result));
}

int pipe_ends[2];

void wait_for_ever()
{
    char byte = 'w';
    if (write(pipe_ends[1], &byte, 1) != 1)
        std::abort();
    for (;;)
        pause();
}

void *cancelled(void *)
{
    deep<3>(wait_for_ever);
    return nullptr;
}

void thread_cancel()
{
    pthread_t thread;
    void *result;
    char byte;
    if (pipe(pipe_ends) != 0)
        std::abort();
    pthread_create(&thread, nullptr, cancelled, nullptr);
    if (read(pipe_ends[0], &byte, 1) != 1)
        std::abort();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

/* Asynchronous cancellation is refused while in our code and the driver; a pending one acts at the next
 * point. */
void *cancelled_while_allocating(void *)
{
    Block block("outer");
    char byte = 'w';
    if (write(pipe_ends[1], &byte, 1) != 1)
        std::abort();
    for (;;) {
        unsigned long long address = 0;
        cuMemAlloc_v2(&address, 4096);
        cuMemFree_v2(address);
        pthread_testcancel();
    }
    return nullptr;
}

void busy_cancel()
{
    pthread_t thread;
    void *result;
    char byte;
    if (pipe(pipe_ends) != 0)
        std::abort();
    pthread_create(&thread, nullptr, cancelled_while_allocating, nullptr);
    if (read(pipe_ends[0], &byte, 1) != 1)
        std::abort();
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
}

void terminated()
{
    std::set_terminate([] {
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const Error &error) {
            Block block("in terminate");
            std::printf("terminate with %s\n", error.what());
        }
        std::fflush(stdout);
        _exit(42);
    });
    []() noexcept { deep<2>(throw_error); }();
}

void uncaught()
{
    std::fflush(stdout);
    std::thread thread([] { throw_error(); });
    thread.join();
}

#ifdef __x86_64__

void called_from_jit()
{
    Block block("above generated code");
    throw Error("through generated code");
}

/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret, described by tables that are registered, not mapped from a file.
 */
void through_generated_code()
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    static const uint8_t tables[] = {
        0x14, 0,    0,    0,  0,    0,    0, 0, 1,    'z', 'R', 0,
        1,    0x78, 16,   1,  0x00, 0x0c, 7, 8, 0x90, 1,   0,   0, /* CIE */
        0x1c, 0,    0,    0,  0x1c, 0,    0, 0, 0,    0,   0,   0,
        0,    0,    0,    0,  0x0b, 0,    0, 0, 0,    0,   0,   0, /* FDE: start, length */
        0,    0x44, 0x0e, 16, 0x46, 0x0e, 8, 0, 0,    0,   0,   0};
    auto *page = static_cast<uint8_t *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    uint8_t *frames = page + 2048;
    uint64_t start = reinterpret_cast<uint64_t>(page);
    std::memcpy(page, code, sizeof code);
    std::memcpy(frames, tables, sizeof tables);
    std::memcpy(frames + 32, &start, sizeof start);
    __register_frame(frames);
    for (int i = 0; i < 3; i++) {
        try {
            Block block("below generated code");
            reinterpret_cast<void (*)(void (*)())>(page)(called_from_jit);
        } catch (const Error &error) {
            std::printf("caught %s\n", error.what());
        }
    }
    __deregister_frame(frames);
    munmap(page, 4096);
}

#else

void through_generated_code()
{
}

#endif

const struct {
    const char *name;
    void (*function)();
} things[] = {{"caught", caught},           {"rethrown", rethrown},
              {"from_thread", from_thread}, {"in_threads", in_threads},
              {"thread_exit", thread_exit}, {"thread_cancel", thread_cancel},
              {"busy_cancel", busy_cancel}, {"terminated", terminated},
              {"uncaught", uncaught},       {"through_generated_code", through_generated_code}};

} // namespace

int run(const char *name)
{
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0)
        return 3;
    for (const auto &thing : things)
        if (std::strcmp(thing.name, name) == 0) {
            thing.function();
            std::fflush(stdout);
            return 0;
        }
    return 2;
}

#ifdef PROGRAM
int main(int, char **arguments)
{
    return run(arguments[1]);
}
#endif
