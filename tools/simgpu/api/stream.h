/* The simulated driver's functions: streams, events, launches and graphs. For the driver itself and for C
 * programs that call it. */
#ifndef SIMGPU_API_STREAM_H
#define SIMGPU_API_STREAM_H

#include "cuda/abi.h"

CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);
CUresult cuEventQuery(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                   unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                   CUstream stream, void **parameters);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy,
                                        unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
                                        unsigned int shared, CUstream stream, void **parameters);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data);
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **parameters, void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                               void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                             unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                             CUstream stream, void **parameters, void **extra);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void *data, unsigned int flags);
CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function, void *data, unsigned int flags);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags);
CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *answer);
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *answer);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green);
CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, CUgreenCtx *green);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *answer);
CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *answer);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *answer);
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int *answer);
CUresult cuStreamGetId(CUstream stream, unsigned long long *answer);
CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *answer);
CUresult cuStreamGetPriority(CUstream stream, int *answer);
CUresult cuStreamGetPriority_ptsz(CUstream stream, int *answer);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery_ptsz(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags);

#endif
