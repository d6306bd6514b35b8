/* Graphs as structures: nodes, what comes before what, copies, ends. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct graph *graph_get(CUgraph handle)
{
    return handle_get(handle, HANDLE_GRAPH);
}

/* ---- lists ---- */

bool list_add(struct node_list *list, struct node *node)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 4;
        struct node **nodes = realloc(list->nodes, room * sizeof *nodes);
        if (!nodes)
            return false;
        list->nodes = nodes;
        list->room = room;
    }
    list->nodes[list->count++] = node;
    return true;
}

bool list_has(const struct node_list *list, const struct node *node)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->nodes[i] == node)
            return true;
    return false;
}

void list_remove(struct node_list *list, const struct node *node)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->nodes[i] == node) {
            memmove(&list->nodes[i], &list->nodes[i + 1], (--list->count - i) * sizeof *list->nodes);
            return;
        }
}

void list_end(struct node_list *list)
{
    free(list->nodes);
    *list = (struct node_list){0};
}

/* ---- objects of the program's ---- */

struct held_object {
    struct user_object *object;
    unsigned count;
    struct held_object *next;
};

bool graph_hold_object(struct graph *graph, struct user_object *object, unsigned count)
{
    struct held_object *held = graph->objects;
    while (held && held->object != object)
        held = held->next;
    if (!held) {
        held = calloc(1, sizeof *held);
        if (!held)
            return false;
        held->object = object;
        held->next = graph->objects;
        graph->objects = held;
    }
    held->count += count;
    return true;
}

bool graph_drop_object(struct graph *graph, const struct user_object *object, unsigned count)
{
    for (struct held_object **link = &graph->objects, *held; (held = *link); link = &held->next) {
        if (held->object != object)
            continue;
        if (held->count < count)
            return false;
        held->count -= count;
        if (!held->count) {
            *link = held->next;
            free(held);
        }
        return true;
    }
    return false;
}

static void drop_all_objects(struct graph *graph)
{
    while (graph->objects) {
        struct held_object *held = graph->objects;
        graph->objects = held->next;
        user_object_release(held->object, held->count);
        free(held);
    }
}

/* ---- life ---- */

struct graph *graph_new(void)
{
    return handle_new(HANDLE_GRAPH, sizeof(struct graph), NULL);
}

void node_end(struct node *node)
{
    if (node->work.child)
        graph_end(node->work.child);
    if (node->work.memory) {
        if (graph_memory_freed_in(node->work.memory) == node->graph &&
            node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            graph_memory_set_freed_in(node->work.memory, NULL);
        graph_memory_release(node->work.memory);
    }
    list_end(&node->behind);
    handle_end(node, sizeof *node);
}

void graph_end(struct graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        node_end(graph->nodes.nodes[i]);
    list_end(&graph->nodes);
    execs_forget(graph);
    drop_all_objects(graph);
    handle_end(graph, sizeof *graph);
}

CUresult graph_add(struct graph *graph, const struct work *work, struct node *const *behind, size_t count,
                   struct node **out)
{
    if (count && !behind)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct node *before = handle_get(behind[i], HANDLE_NODE);
        if (!before || before->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t other = 0; other < i; other++)
            if (behind[other] == before)
                return CUDA_ERROR_INVALID_VALUE;
    }
    struct node *node = handle_new(HANDLE_NODE, sizeof *node, NULL);
    bool room = node && list_add(&graph->nodes, node);
    for (size_t i = 0; room && i < count; i++)
        room = list_add(&node->behind, behind[i]);
    if (!room) {
        if (node && list_has(&graph->nodes, node))
            graph->nodes.count--;
        if (node)
            handle_end(node, sizeof *node);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->graph = graph;
    node->work = *work;
    if (work->child)
        work->child->parent = node;
    if (work->memory)
        graph->has_memory = true;
    *out = node;
    return CUDA_SUCCESS;
}

static struct node *clone_of(const struct graph *copy, const struct node *original)
{
    for (size_t i = 0; i < copy->nodes.count; i++)
        if (copy->nodes.nodes[i]->origin == original)
            return copy->nodes.nodes[i];
    return NULL;
}

static bool copy_node(struct graph *copy, struct node *original)
{
    struct work work = original->work;
    struct node_list behind = {0};
    struct node *node = NULL;
    bool good = true;
    if (work.child)
        good = (work.child = graph_copy(work.child)) != NULL;
    for (size_t i = 0; good && i < original->behind.count; i++)
        good = list_add(&behind, clone_of(copy, original->behind.nodes[i]));
    good = good && graph_add(copy, &work, behind.nodes, behind.count, &node) == CUDA_SUCCESS;
    if (good)
        node->origin = original;
    else if (work.child)
        graph_end(work.child);
    list_end(&behind);
    return good;
}

/* Only for graphs without memory of their own. Edges may point to nodes added later, so those are made first.
 */
struct graph *graph_copy(const struct graph *graph)
{
    struct graph *copy = graph_new();
    struct node_list order = {0};
    bool good = copy && graph_order(graph, &order);
    for (size_t i = 0; good && i < order.count; i++)
        good = copy_node(copy, order.nodes[i]);
    list_end(&order);
    if (good)
        return copy;
    if (copy)
        graph_end(copy);
    return NULL;
}

/* ---- order ---- */

bool graph_order(const struct graph *graph, struct node_list *order)
{
    for (size_t placed = 0; placed < graph->nodes.count; placed = order->count) {
        for (size_t i = 0; i < graph->nodes.count; i++) {
            struct node *node = graph->nodes.nodes[i];
            bool ready = !list_has(order, node);
            for (size_t k = 0; ready && k < node->behind.count; k++)
                ready = list_has(order, node->behind.nodes[k]);
            if (ready && !list_add(order, node))
                return false;
        }
        if (order->count == placed)
            return false; /* a circle */
    }
    return true;
}
