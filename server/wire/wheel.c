#include "wire/wheel.h"

#include <stdbool.h>

void wheel_init(struct wheel *w, uint64_t at)
{
    *w = (struct wheel){.at = at};
    for (unsigned level = 0; level < WHEEL_LEVELS; level++)
        for (unsigned slot = 0; slot < WHEEL_SLOTS; slot++) list_init(&w->slots[level][slot]);
    list_init(&w->far);
}

// The level is that of the highest digit (in base 64) in which the timer's time differs from the
// wheel's. So within a level the slots never wrap around, and every timer of a level comes before
// every timer of the next.
static void wheel_place(struct wheel *w, struct timer *timer)
{
    uint64_t apart = timer->at ^ w->at;
    unsigned level = apart ? (unsigned)(63 - __builtin_clzll(apart)) / WHEEL_BITS : 0;
    if (level >= WHEEL_LEVELS) {
        list_append(&w->far, &timer->node);
        return;
    }
    unsigned slot = timer->at >> (level * WHEEL_BITS) & (WHEEL_SLOTS - 1);
    w->occupied[level] |= UINT64_C(1) << slot;
    list_append(&w->slots[level][slot], &timer->node);
}

void wheel_add(struct wheel *w, struct timer *timer)
{
    if (timer->at <= w->at) timer->at = w->at + 1;
    wheel_place(w, timer);
}

// The first slot that holds timers, and when it begins. A timer that is stopped does not know its
// slot, so bits of empty slots are taken back here.
static struct list *wheel_first(struct wheel *w, uint64_t *at)
{
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        for (; w->occupied[level]; w->occupied[level] &= w->occupied[level] - 1) {
            unsigned slot = (unsigned)__builtin_ctzll(w->occupied[level]);
            if (list_is_empty(&w->slots[level][slot])) continue;
            unsigned shift = level * WHEEL_BITS, above = shift + WHEEL_BITS;
            *at = (w->at >> above << above) | (uint64_t)slot << shift;
            return &w->slots[level][slot];
        }
    }
    if (list_is_empty(&w->far)) return NULL;
    unsigned above = WHEEL_LEVELS * WHEEL_BITS;
    *at = ((w->at >> above) + 1) << above;
    return &w->far;
}

uint64_t wheel_next(struct wheel *w)
{
    uint64_t at;
    return wheel_first(w, &at) ? at : UINT64_MAX;
}

void wheel_fire(struct wheel *w, uint64_t now)
{
    struct list due, *slot, *node;
    uint64_t at;
    list_init(&due);
    while ((slot = wheel_first(w, &at)) && at <= now) {
        w->at = at;
        list_move_all(&due, slot);
        while ((node = list_take(&due))) {
            struct timer *timer = list_entry(node, struct timer, node);
            if (timer->at <= w->at)
                timer->on_time(timer);
            else
                wheel_place(w, timer); // a level further down
        }
    }
    if (w->at < now) w->at = now;
}
