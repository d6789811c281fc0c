// list: an intrusive, circular, doubly linked list. A zeroed node is a node that stands in no list.
#ifndef PHOTON_BASE_LIST_H
#define PHOTON_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

// The struct that holds `node` as its `member`.
#define list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *head)
{
    head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head || head->next == NULL;
}

static inline bool list_is_linked(const struct list *node)
{
    return node->next != NULL;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

// Harmless on a node that stands in no list.
static inline void list_remove(struct list *node)
{
    if (node->next == NULL) return;
    node->next->prev = node->prev;
    node->prev->next = node->next;
    node->next = node->prev = NULL;
}

// The first node, taken out; NULL when the list is empty.
static inline struct list *list_take(struct list *head)
{
    struct list *node = head->next;
    if (list_is_empty(head)) return NULL;
    list_remove(node);
    return node;
}

// All nodes of `from` move to the end of `to`; `from` is empty afterwards. Walking a list whose
// nodes may vanish under the walk is done by moving it to a local head and taking one by one.
static inline void list_move_all(struct list *to, struct list *from)
{
    if (list_is_empty(from)) return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#endif
