/* libnvidia-ml.so.1 where there is none: PyTorch calls into it without looking whether it was found. It knows
 * of one device and supports nothing. */
enum { SUCCESS = 0, NOT_SUPPORTED = 3 };

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
    static char the_device;
    *device = &the_device;
    return id == 0;
}

#define UNSUPPORTED(name)                                                                                    \
    int name(void)                                                                                           \
    {                                                                                                        \
        return NOT_SUPPORTED;                                                                                \
    }
UNSUPPORTED(nvmlDeviceGetGpuFabricInfoV)
UNSUPPORTED(nvmlDeviceGetComputeRunningProcesses)
UNSUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
UNSUPPORTED(nvmlSystemGetCudaDriverVersion_v2)
