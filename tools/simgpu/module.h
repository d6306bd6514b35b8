/* The end of a module or library, with everything found in it. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

void module_end(void *module);

/* What is read of a launch's description; the layout is the driver's. */
typedef struct CUlaunchConfig_st {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

#endif
