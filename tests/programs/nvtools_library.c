/* In the place of libnvToolsExt.so.1: counts, and answers as it does without a tool; or, where the test says
 * so, as with one, which numbers its ranges. */
#include <stdint.h>
#include <wchar.h>

int nvtx_calls;
uint64_t nvtx_next;  /* the number of the next range, one more each time; 0: no tool */
uint64_t nvtx_ended; /* the number that was ended last */

static int counted(void)
{
    nvtx_calls++;
    return -2;
}

static uint64_t numbered(void)
{
    nvtx_calls++;
    return nvtx_next == 0 ? 0 : nvtx_next++;
}

static void ended(uint64_t number)
{
    nvtx_calls++;
    nvtx_ended = number;
}

int nvtxRangePushA(const char *name)
{
    (void)name;
    return counted();
}

int nvtxRangePushW(const wchar_t *name)
{
    (void)name;
    return counted();
}

int nvtxRangePop(void)
{
    return counted();
}

uint64_t nvtxRangeStartA(const char *name)
{
    (void)name;
    return numbered();
}

uint64_t nvtxRangeStartW(const wchar_t *name)
{
    (void)name;
    return numbered();
}

uint64_t nvtxRangeStartEx(const void *event)
{
    (void)event;
    return numbered();
}

void nvtxRangeEnd(uint64_t number)
{
    ended(number);
}

uint64_t nvtxDomainRangeStartEx(const void *domain, const void *event)
{
    (void)domain;
    (void)event;
    return numbered();
}

void nvtxDomainRangeEnd(const void *domain, uint64_t number)
{
    (void)domain;
    ended(number);
}
