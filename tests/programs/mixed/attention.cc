// What a researcher's extension looks like: plain C functions for Python, templates behind them, and in one of these
// the allocation. Each place that a test looks for is marked.
#include <cstddef>
#include <memory>
#include <vector>

extern "C" int cuMemAlloc_v2(unsigned long long *address, size_t bytes);

namespace fused {

template <typename T> struct Workspace {
    unsigned long long address = 0;
    std::vector<T, std::allocator<T>> shape;

    __attribute__((always_inline)) int grow(size_t count)
    {
        return cuMemAlloc_v2(&address, count * sizeof(T)); // grow
    }
};

template <typename Scalar, typename Storage = Workspace<Scalar>>
__attribute__((noinline)) int attention(Storage &scores, std::size_t heads, std::size_t tokens)
{
    int result = scores.grow(heads * tokens * tokens); // attention
    asm volatile("" ::: "memory");
    return result;
}

} // namespace fused

extern "C" int fused_attention(int heads, int tokens)
{
    static std::vector<std::unique_ptr<fused::Workspace<float>>> kept;
    kept.push_back(std::make_unique<fused::Workspace<float>>());
    int result = fused::attention<float>(*kept.back(), heads, tokens); // fused_attention
    asm volatile("" ::: "memory");
    return result;
}
