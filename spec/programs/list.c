// Random work on lists beside a plain array that does the same; the first difference ends it.
#include <stdio.h>
#include <stdlib.h>
#include "base/list.h"

enum { NODES = 24, STEPS = 200000 };

struct item {
    int name;
    struct list node;
};

struct model {
    int names[NODES], count;
};

static struct item items[NODES];
static struct list heads[2];
static struct model models[2];
static unsigned random_state = 1;

static unsigned next_random(unsigned below)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 16) % below;
}

static void fail(int step, const char *what)
{
    printf("step %d: %s\n", step, what);
    exit(1);
}

static int model_remove(struct model *m, int name)
{
    for (int i = 0; i < m->count; i++) {
        if (m->names[i] != name) continue;
        m->count--;
        for (; i < m->count; i++) m->names[i] = m->names[i + 1];
        return 1;
    }
    return 0;
}

static void compare(int step, const struct list *head, const struct model *m)
{
    const struct list *node = head->next;
    for (int i = 0; i < m->count; i++, node = node->next) {
        if (node == head) fail(step, "a node is missing");
        if (list_entry(node, struct item, node)->name != m->names[i]) fail(step, "wrong order");
        if (node->next->prev != node || !list_is_linked(node)) fail(step, "broken links");
    }
    if (node != head) fail(step, "a node too many");
    if (list_is_empty(head) != (m->count == 0)) fail(step, "wrong about being empty");
}

static void append(int which)
{
    struct item *item = &items[next_random(NODES)];
    if (list_is_linked(&item->node)) return;
    list_append(&heads[which], &item->node);
    models[which].names[models[which].count++] = item->name;
}

static void take(int step, int which)
{
    struct model *m = &models[which];
    struct list *node = list_take(&heads[which]);
    if ((node == NULL) != (m->count == 0)) fail(step, "wrong about the first");
    if (!node) return;
    if (list_is_linked(node)) fail(step, "a taken node is still linked");
    if (list_entry(node, struct item, node)->name != m->names[0]) fail(step, "took the wrong one");
    model_remove(m, m->names[0]);
}

static void remove_any(int step)
{
    struct item *item = &items[next_random(NODES)];
    int was_linked = list_is_linked(&item->node);
    list_remove(&item->node);
    int in_model = model_remove(&models[0], item->name) + model_remove(&models[1], item->name);
    if (was_linked != in_model || list_is_linked(&item->node)) fail(step, "wrong about a node");
}

static void move_all(int which)
{
    struct model *from = &models[which], *to = &models[1 - which];
    list_move_all(&heads[1 - which], &heads[which]);
    for (int i = 0; i < from->count; i++) to->names[to->count++] = from->names[i];
    from->count = 0;
}

int main(void)
{
    struct list zero = {0};
    if (!list_is_empty(&zero) || list_is_linked(&zero) || list_take(&zero))
        fail(0, "zero is wrong");
    list_remove(&zero);
    for (int i = 0; i < NODES; i++) items[i].name = i;
    list_init(&heads[0]);
    list_init(&heads[1]);
    for (int step = 0; step < STEPS; step++) {
        unsigned work = next_random(20);
        int which = (int)next_random(2);
        if (work < 10)
            append(which);
        else if (work < 13)
            take(step, which);
        else if (work < 19)
            remove_any(step);
        else
            move_all(which);
        compare(step, &heads[0], &models[0]);
        compare(step, &heads[1], &models[1]);
    }
    puts("ok");
    return 0;
}
