/* The end of a module or library, with everything found in it. */
#ifndef SIMGPU_MODULE_H
#define SIMGPU_MODULE_H

void module_end(void *module);

#endif
