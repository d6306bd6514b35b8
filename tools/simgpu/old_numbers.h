/* Included before everything else: with glibc 2.38 and newer, strtoul and sscanf become functions that no
 * older C library has, since they read C23's "0b1" too; the simulated GPU goes into the same programs as the
 * library, also old ones (source: <features.h>, which calls the switch so up to 2.39, and thereafter). */
#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
