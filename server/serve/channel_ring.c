#include "serve/channel_ring.h"

static uint64_t channel_entry_cost(const struct payload *record)
{
    return record->len + CHANNEL_ENTRY_COST;
}

struct channel_entry *channel_ring_move(struct channel_ring *r, struct channel_entry *items,
                                        size_t cap)
{
    struct channel_entry *old = r->items;
    for (uint64_t i = r->first; i != r->next; i++) items[i & (cap - 1)] = *channel_ring_at(r, i);
    r->items = items;
    r->cap = cap;
    return old;
}

void channel_ring_push(struct channel_ring *r, struct payload *record, uint64_t now)
{
    *channel_ring_at(r, r->next++) = (struct channel_entry){record, now};
    r->bytes += channel_entry_cost(record);
}

// Without an age, the larger of `replay` and `backlog`.
static bool channel_ring_keeps(const struct channel_ring *r, const struct channel_options *options,
                               uint64_t now)
{
    const struct channel_entry *oldest = channel_ring_at(r, r->first);
    if (options->replay_age && now > oldest->at && now - oldest->at > options->replay_age)
        return false;
    return channel_ring_count(r) <= options->replay || r->bytes <= options->backlog;
}

size_t channel_ring_trim(struct channel_ring *r, const struct channel_options *options,
                         uint64_t now, struct payload *dropped[CHANNEL_DROP])
{
    size_t count = 0;
    while (count < CHANNEL_DROP && r->first != r->next && !channel_ring_keeps(r, options, now)) {
        struct payload *record = channel_ring_at(r, r->first++)->record;
        r->bytes -= channel_entry_cost(record);
        dropped[count++] = record;
    }
    return count;
}
