/* libc10_cuda.so as far as a tracer meets it (caching_allocator.h). One lock for everything, as tight as the
 * real one: it is held while the reporter is told. */
#include "caching_allocator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "c10.h"

namespace
{
constexpr size_t MIB = 1 << 20;
constexpr size_t ROUND = 512, SMALL = MIB, SMALL_SEGMENT = 2 * MIB, LARGE = 10 * MIB,
                 LARGE_SEGMENT = 20 * MIB;
constexpr int CUDA = 1;

size_t up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* The runtime's and the driver's functions, as the real one finds them: the runtime is linked, and of the
 * driver what expandable segments need is looked up. */
extern "C" int cudaSetDevice(int);
extern "C" int cudaMalloc(void **, size_t);
extern "C" int cudaFree(void *);

struct Driver {
    struct Location {
        int type = 1, id = 0;
    };
    struct Properties {
        int allocation_type = 1, handle_types = 0;
        Location location;
        void *win32 = nullptr;
        unsigned char flags[8] = {};
    };
    struct Access {
        Location location;
        int flags = 3;
    };
    int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
    int (*create)(uint64_t *, size_t, const Properties *, unsigned long long);
    int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
    int (*set_access)(uint64_t, size_t, const Access *, size_t);
    int (*unmap)(uint64_t, size_t);
    int (*release)(uint64_t);

    template <typename Function> static void find(void *library, const char *name, Function &function)
    {
        function = reinterpret_cast<Function>(dlsym(library, name));
    }

    Driver()
    {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        find(library, "cuMemAddressReserve", reserve);
        find(library, "cuMemCreate", create);
        find(library, "cuMemMap", map);
        find(library, "cuMemSetAccess", set_access);
        find(library, "cuMemUnmap", unmap);
        find(library, "cuMemRelease", release);
    }
};

Driver &driver()
{
    static Driver found;
    return found;
}

struct Segment;

enum class State { unmapped, inactive, active };

struct Block {
    uint64_t address;
    size_t bytes;
    State state;
};

struct Segment {
    int device, stream;
    bool small, expandable;
    uint64_t address;
    std::list<Block> blocks; /* contiguous */

    size_t chunk() const
    {
        return small ? SMALL_SEGMENT : LARGE_SEGMENT;
    }

    bool is_free() const
    {
        return blocks.size() == 1 && blocks.front().state == State::inactive;
    }
};

using Place = std::list<Block>::iterator;

std::mutex lock;
bool expandable_segments;
std::list<Segment> segments;
std::map<uint64_t, std::pair<Segment *, Place>> active; /* by address */
std::map<int, Figures> peaks;
std::vector<std::pair<int, Figures>> refusals;

/* Bytes of whole chunks inside a free block: what an expandable segment can give back of it. */
size_t whole_chunks(const Segment &segment, const Block &block)
{
    uint64_t first = up(block.address - segment.address, segment.chunk());
    uint64_t end = (block.address + block.bytes - segment.address) / segment.chunk() * segment.chunk();
    return end > first ? end - first : 0;
}

Figures figures_of(int device)
{
    Figures sum = {};
    for (const Segment &segment : segments) {
        if (segment.device != device)
            continue;
        bool in_run = false;
        for (const Block &block : segment.blocks) {
            if (block.state == State::unmapped) {
                in_run = false;
                continue;
            }
            sum.segments += !in_run;
            in_run = true;
            sum.reserved += block.bytes;
            if (block.state == State::active)
                sum.allocated += block.bytes;
            else
                sum.largest_free = std::max<uint64_t>(sum.largest_free, block.bytes);
            if (block.state == State::inactive && segment.expandable)
                sum.releasable += whole_chunks(segment, block);
        }
        if (!segment.expandable && segment.is_free())
            sum.releasable += segment.blocks.front().bytes;
    }
    sum.stranded = sum.reserved - sum.allocated - sum.releasable;
    return sum;
}

void note_moment(int device)
{
    Figures now = figures_of(device), &peak = peaks[device];
    if (now.reserved > peak.reserved || (now.reserved == peak.reserved && now.allocated > peak.allocated))
        peak = now;
}

void tell(const Block &block, int64_t bytes, int device)
{
#if C10_FORM == 10
    c10::reportMemoryUsageToProfiler(const_cast<Block *>(&block), bytes, {CUDA, static_cast<int8_t>(device)});
#else
    Figures now = figures_of(device);
    c10::reportMemoryUsageToProfiler(reinterpret_cast<void *>(block.address), bytes,
                                     static_cast<Sum>(now.allocated), static_cast<Sum>(now.reserved),
                                     {CUDA, static_cast<int8_t>(device)});
#endif
}

void refuse(int device)
{
    refusals.emplace_back(device, figures_of(device));
}

/* Joins a free block with its free neighbours. */
Place merge(Segment &segment, Place block)
{
    if (block != segment.blocks.begin() && std::prev(block)->state == State::inactive) {
        Place before = std::prev(block);
        before->bytes += block->bytes;
        segment.blocks.erase(block);
        block = before;
    }
    Place after = std::next(block);
    if (after != segment.blocks.end() && after->state == State::inactive) {
        block->bytes += after->bytes;
        segment.blocks.erase(after);
    }
    return block;
}

bool find_fit(int device, int stream, bool small, size_t bytes, Segment *&where, Place &best)
{
    where = nullptr;
    for (Segment &segment : segments) {
        if (segment.device != device || segment.stream != stream || segment.small != small)
            continue;
        for (Place block = segment.blocks.begin(); block != segment.blocks.end(); ++block) {
            if (block->state == State::inactive && block->bytes >= bytes &&
                (!where || block->bytes < best->bytes)) {
                where = &segment;
                best = block;
            }
        }
    }
    return where != nullptr;
}

bool add_segment(int device, int stream, bool small, size_t bytes, Segment *&where, Place &block)
{
    size_t size = small ? SMALL_SEGMENT : bytes < LARGE ? LARGE_SEGMENT : up(bytes, 2 * MIB);
    void *address = nullptr;
    if (cudaMalloc(&address, size) != 0) {
        refuse(device);
        return false;
    }
    segments.push_back({device, stream, small, false, reinterpret_cast<uint64_t>(address), {}});
    where = &segments.back();
    where->blocks.push_back({where->address, size, State::inactive});
    block = where->blocks.begin();
    return true;
}

bool map_chunk(const Segment &segment, uint64_t address)
{
    Driver::Properties properties;
    Driver::Access access;
    uint64_t handle;
    properties.location.id = access.location.id = segment.device;
    if (driver().create(&handle, segment.chunk(), &properties, 0) != 0) {
        refuse(segment.device);
        return false;
    }
    driver().map(address, segment.chunk(), 0, handle, 0);
    driver().set_access(address, segment.chunk(), &access, 1);
    driver().release(handle); /* the mapping keeps it */
    return true;
}

/* Makes `bytes` at the start of a gap part of the free block before it, which may be new. */
Place fill(Segment &segment, Place gap, size_t bytes)
{
    Place block = gap != segment.blocks.begin() && std::prev(gap)->state == State::inactive
                      ? std::prev(gap)
                      : segment.blocks.insert(gap, {gap->address, 0, State::inactive});
    block->bytes += bytes;
    gap->address += bytes;
    gap->bytes -= bytes;
    return block;
}

/* The other way round. */
void empty(Segment &segment, Place gap, size_t bytes)
{
    Place block = std::prev(gap);
    gap->address -= bytes;
    gap->bytes += bytes;
    block->bytes -= bytes;
    if (block->bytes == 0)
        segment.blocks.erase(block);
}

/* Maps as many chunks at the first gap as `bytes` need together with what is free before it. */
bool grow(Segment &segment, size_t bytes, Place &block)
{
    for (Place gap = segment.blocks.begin(); gap != segment.blocks.end(); ++gap) {
        size_t before = gap != segment.blocks.begin() && std::prev(gap)->state == State::inactive
                            ? std::prev(gap)->bytes
                            : 0;
        if (gap->state != State::unmapped || before + gap->bytes < bytes)
            continue;
        size_t wanted = up(bytes - before, segment.chunk());
        for (size_t mapped = 0; mapped < wanted; mapped += segment.chunk()) {
            if (!map_chunk(segment, gap->address)) {
                if (mapped > 0) {
                    driver().unmap(gap->address - mapped, mapped);
                    empty(segment, gap, mapped);
                }
                return false;
            }
            block = fill(segment, gap, segment.chunk());
            note_moment(segment.device);
        }
        if (gap->bytes == 0)
            segment.blocks.erase(gap);
        block = merge(segment, block);
        return true;
    }
    return false;
}

bool grow_expandable(int device, int stream, bool small, size_t bytes, Segment *&where, Place &block)
{
    constexpr size_t RANGE = 4096 * MIB / LARGE_SEGMENT * LARGE_SEGMENT;
    for (Segment &segment : segments) {
        if (segment.expandable && segment.device == device && segment.stream == stream &&
            segment.small == small) {
            where = &segment;
            return grow(segment, bytes, block);
        }
    }
    uint64_t address;
    if (driver().reserve(&address, RANGE, 0, 0, 0) != 0)
        return false;
    segments.push_back({device, stream, small, true, address, {}});
    where = &segments.back();
    where->blocks.push_back({address, RANGE, State::unmapped});
    return grow(*where, bytes, block);
}

void unmap_chunks(Segment &segment)
{
    for (Place block = segment.blocks.begin(); block != segment.blocks.end(); ++block) {
        size_t bytes = block->state == State::inactive ? whole_chunks(segment, *block) : 0;
        if (bytes == 0)
            continue;
        uint64_t first = segment.address + up(block->address - segment.address, segment.chunk());
        driver().unmap(first, bytes);
        Block rest = {first + bytes, block->address + block->bytes - first - bytes, State::inactive};
        Place gap = segment.blocks.insert(std::next(block), {first, bytes, State::unmapped});
        if (rest.bytes > 0)
            segment.blocks.insert(std::next(gap), rest);
        block->bytes = first - block->address;
        if (block->bytes == 0)
            segment.blocks.erase(block);
        /* Gaps side by side are one. */
        Place after = std::next(gap);
        if (after != segment.blocks.end() && after->state == State::unmapped) {
            gap->bytes += after->bytes;
            segment.blocks.erase(after);
        }
        if (gap != segment.blocks.begin() && std::prev(gap)->state == State::unmapped) {
            gap->address = std::prev(gap)->address;
            gap->bytes += std::prev(gap)->bytes;
            segment.blocks.erase(std::prev(gap));
        }
        block = gap;
    }
}

void empty_cache(int device)
{
    for (auto segment = segments.begin(); segment != segments.end();) {
        auto next = std::next(segment);
        if (segment->device == device && segment->expandable) {
            unmap_chunks(*segment);
        } else if (segment->device == device && segment->is_free()) {
            cudaFree(reinterpret_cast<void *>(segment->address));
            segments.erase(segment);
        }
        segment = next;
    }
}

bool find_or_add(int device, int stream, bool small, size_t bytes, Segment *&segment, Place &block)
{
    if (find_fit(device, stream, small, bytes, segment, block))
        return true;
    return expandable_segments ? grow_expandable(device, stream, small, bytes, segment, block)
                               : add_segment(device, stream, small, bytes, segment, block);
}
} // namespace

void allocator_expandable(int expandable)
{
    std::lock_guard<std::mutex> guard(lock);
    expandable_segments = expandable != 0;
}

void *allocator_malloc(int device, size_t bytes, int stream)
{
    std::lock_guard<std::mutex> guard(lock);
    Segment *segment;
    Place block;
    bytes = up(std::max<size_t>(bytes, 1), ROUND);
    bool small = bytes <= SMALL;
    cudaSetDevice(device);
    if (!find_or_add(device, stream, small, bytes, segment, block)) {
        empty_cache(device);
        if (!find_or_add(device, stream, small, bytes, segment, block)) {
#if C10_FORM != 10
            Figures now = figures_of(device);
            c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), static_cast<Sum>(now.allocated),
                                             static_cast<Sum>(now.reserved),
                                             {CUDA, static_cast<int8_t>(device)});
            refuse(device);
#endif
            return nullptr;
        }
    }
    size_t rest = block->bytes - bytes;
    if (small || segment->expandable ? rest >= ROUND : rest > SMALL) {
        segment->blocks.insert(std::next(block), {block->address + bytes, rest, State::inactive});
        block->bytes = bytes;
    }
    block->state = State::active;
    active[block->address] = {segment, block};
    tell(*block, static_cast<int64_t>(block->bytes), device);
    note_moment(device);
    return reinterpret_cast<void *>(block->address);
}

void allocator_free(void *address)
{
    std::lock_guard<std::mutex> guard(lock);
    auto found = active.find(reinterpret_cast<uint64_t>(address));
    if (found == active.end())
        abort();
    auto [segment, block] = found->second;
    active.erase(found);
    block->state = State::inactive;
    tell(*block, -static_cast<int64_t>(block->bytes), segment->device);
    merge(*segment, block);
}

void allocator_empty_cache(int device)
{
    std::lock_guard<std::mutex> guard(lock);
    cudaSetDevice(device);
    empty_cache(device);
}

void allocator_figures(int device, Figures *figures)
{
    std::lock_guard<std::mutex> guard(lock);
    *figures = figures_of(device);
}

void allocator_peak(int device, Figures *figures)
{
    std::lock_guard<std::mutex> guard(lock);
    *figures = peaks[device];
}

size_t allocator_refusals(Figures *figures, int *devices, size_t most)
{
    std::lock_guard<std::mutex> guard(lock);
    for (size_t i = 0; i < refusals.size() && i < most; i++) {
        devices[i] = refusals[i].first;
        figures[i] = refusals[i].second;
    }
    return refusals.size();
}
