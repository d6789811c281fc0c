// channel_ring: the kept events of one channel, by sequence. Pure; whoever calls holds the
// channel's lock, and releases what is dropped after it.
#ifndef PHOTON_SERVE_CHANNEL_RING_H
#define PHOTON_SERVE_CHANNEL_RING_H

#include "base/payload.h"
#include "serve/channel.h"

enum {
    CHANNEL_ENTRY_COST = 64, // what an event costs beside its bytes
    CHANNEL_DROP = 64,       // most events dropped at a time
};

struct channel_entry {
    struct payload *record;
    uint64_t at; // when it was published, ms
};

struct channel_ring {
    struct channel_entry *items;
    size_t cap;           // a power of two, or 0
    uint64_t first, next; // the oldest kept sequence, the next to come (1 is the first of all)
    uint64_t bytes;
};

static inline size_t channel_ring_count(const struct channel_ring *r)
{
    return (size_t)(r->next - r->first);
}

static inline struct channel_entry *channel_ring_at(const struct channel_ring *r, uint64_t sequence)
{
    return &r->items[sequence & (r->cap - 1)];
}

// Moves to a larger array, which the ring then owns; the old one is the caller's to free.
struct channel_entry *channel_ring_move(struct channel_ring *r, struct channel_entry *items,
                                        size_t cap);

// Appends; there is room. The ring takes the reference.
void channel_ring_push(struct channel_ring *r, struct payload *record, uint64_t now);

// Drops the oldest events that the options do not keep, into `dropped`: how many, at most
// CHANNEL_DROP (then call again).
size_t channel_ring_trim(struct channel_ring *r, const struct channel_options *options,
                         uint64_t now, struct payload *dropped[CHANNEL_DROP]);

#endif
