/* Names and short descriptions of error codes. The names are NVIDIA's; the descriptions are made from them.
 */
#include "entry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define AS_NAME(name, value) {value, #name},
static const struct {
    int value;
    const char *name;
} errors[] = {CUDA_DRIVER_ERRORS(AS_NAME)};

static const char *name_of(CUresult error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].value == (int)error)
            return errors[i].name;
    return NULL;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = name_of(error);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* "CUDA_ERROR_OUT_OF_MEMORY" becomes "out of memory"; kept for each thread until its next question. */
EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
    static __thread char text[80];
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    const char *name = name_of(error);
    *out = name ? text : NULL;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, sizeof text, "%s", error == CUDA_SUCCESS ? "no error" : name + strlen("CUDA_ERROR_"));
    for (char *at = text; *at; at++)
        *at = *at == '_' ? ' ' : (char)tolower((unsigned char)*at);
    return CUDA_SUCCESS;
}
