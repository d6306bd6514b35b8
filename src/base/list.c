/* The growing array of list.h. */
#include "base/list.h"

void list_init(struct list *list, struct arena *arena, size_t element_bytes)
{
    *list = (struct list){.arena = arena, .element_bytes = element_bytes};
}

void *list_reach(struct list *list, uint32_t index)
{
    if (index >= LIST_ELEMENTS_MAX)
        return NULL;
    if (index >= list->count) {
        uint64_t end = 0;
        for (int i = 0; i < LIST_CHUNKS && end <= index; i++) {
            uint64_t elements = (uint64_t)LIST_FIRST_CHUNK << i;
            if (list->chunks[i] == NULL)
                list->chunks[i] = arena_alloc(list->arena, elements * list->element_bytes);
            if (list->chunks[i] == NULL)
                return NULL;
            end += elements;
        }
        list->count = index + 1;
    }
    return list_at(list, index);
}
