/* Allocates by what cuGetProcAddress hands out, and by a name with a suffix: an interposer may or may not be
 * met. */
#include <dlfcn.h>
#include <stdio.h>

#include "cuda/abi.h"

typedef CUresult (*get_proc_address_fn)(const char *, void **, int, cuuint64_t,
                                        CUdriverProcAddressQueryResult *);

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    get_proc_address_fn get = driver ? (get_proc_address_fn)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*set)(CUcontext);
    CUresult (*allocate)(CUdeviceptr *, size_t), (*allocate_ptsz)(CUdeviceptr *, size_t, CUstream);
    CUcontext context;
    CUdeviceptr address;
    if (!get)
        return 1;
    get("cuInit", (void **)&init, 12000, 0, NULL);
    get("cuDevicePrimaryCtxRetain", (void **)&retain, 12000, 0, NULL);
    get("cuCtxSetCurrent", (void **)&set, 12000, 0, NULL);
    get("cuMemAlloc", (void **)&allocate, 12000, 0, NULL);
    get("cuMemAllocAsync", (void **)&allocate_ptsz, 12000, 2, NULL);
    return init(0) || retain(&context, 0) || set(context) || allocate(&address, 100) ||
           allocate_ptsz(&address, 100, NULL);
}
