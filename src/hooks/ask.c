/* Where the driver's answers come from (ask.h). */
#include "hooks/ask.h"

#define AS_DEFINITION(name, parameters, arguments) CUresult(*_Atomic asked_##name) parameters;
ASKED(AS_DEFINITION)
#undef AS_DEFINITION

void ask_find_all(const struct elf_image *image)
{
#define FIND(name, parameters, arguments)                                                                    \
    atomic_store_explicit(&asked_##name, (CUresult(*) parameters)elf_image_address(image, #name),            \
                          memory_order_release);
    ASKED(FIND)
#undef FIND
}

void ask_forget_all(void)
{
#define FORGET(name, parameters, arguments) atomic_store_explicit(&asked_##name, NULL, memory_order_release);
    ASKED(FORGET)
#undef FORGET
}
