/* Marks what the library shows to the dynamic linker; everything else is hidden. */
#ifndef HOOKS_EXPORT_H
#define HOOKS_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
