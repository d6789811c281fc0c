// Live delivery: a batch of new events is taken out of the ring once, and given to all cursors of
// the link that stand there. A long walk goes on on later turns, so that the loop's other work is
// not held up.
#include "serve/channel_private.h"

enum { CHANNEL_SENDS = 1024 }; // cursors in one turn

void channel_walk_release_batch(struct channel_worker *w)
{
    channel_release_all(w->batch, w->batch_count);
    w->batch_count = 0;
    w->scratch_of = NULL;
}

// With the policy `close`, readers whose place has gone are not waited for.
static void channel_close_lost(struct channel_link *link, uint64_t first)
{
    struct list *next;
    for (struct list *at = link->behind.next; at != &link->behind; at = next) {
        struct channel_cursor *c = list_entry(at, struct channel_cursor, node);
        next = at->next;
        if (c->next < first) channel_subscriber_lose(c->subscriber);
    }
}

// Nothing new is left. Ends those that have everything of a finished channel; those whose events
// were dropped before they were delivered are told so.
static void channel_walk_settle(struct channel_link *link)
{
    struct list *next;
    for (struct list *at = link->live.next; at != &link->live; at = next) {
        struct channel_cursor *c = list_entry(at, struct channel_cursor, node);
        next = at->next;
        if (c->next < link->next)
            channel_cursor_fall_behind(c);
        else if (link->end && channel_subscriber_has_all(c->subscriber))
            channel_subscriber_end(c->subscriber, -1);
    }
}

// Takes the next batch for the first link of the walks. False when there is none.
static bool channel_walk_begin(struct channel_worker *w, struct channel_link *link)
{
    struct channel *ch = link->channel;
    bool is_lost = false;
    channel_lock_trimmed(ch, w->loop->now);
    uint64_t first = ch->ring.first, next = ch->ring.next;
    bool closes = ch->options.slow == CHANNEL_CLOSE;
    uint64_t from = link->next < first ? first : link->next;
    if (!list_is_empty(&link->live))
        w->batch_count = channel_snapshot(ch, from, UINT64_MAX, w->batch, CHANNEL_BATCH);
    channel_unlock(ch);
    if (closes) channel_close_lost(link, first);
    if (w->batch_count) {
        w->batch_first = from;
        link->next = from + w->batch_count;
        list_move_all(&link->walking, &link->live);
        return true;
    }
    is_lost = link->next < next;
    link->next = next;
    if (is_lost || link->end) channel_walk_settle(link);
    return false;
}

static void channel_walk_cursor(struct channel_worker *w, struct channel_cursor *c)
{
    if (c->next < w->batch_first && !channel_cursor_skip(c, w->batch_first, w->batch_first)) return;
    size_t at = (size_t)(c->next - w->batch_first);
    channel_give(c, w->batch + at, w->batch_count - at);
    if (c->next < c->link->next) channel_cursor_fall_behind(c);
}

// True when the batch has been given to all.
static bool channel_walk_on(struct channel_worker *w, struct channel_link *link, unsigned *sends)
{
    struct list *node;
    while (*sends && (node = list_take(&link->walking)) != NULL) {
        struct channel_cursor *c = list_entry(node, struct channel_cursor, node);
        list_append(&link->live, node);
        if (c->subscriber->is_ended || c->next >= link->next) continue;
        --*sends;
        if (exchange_backlog(c->subscriber->x) > 0)
            channel_cursor_fall_behind(c);
        else
            channel_walk_cursor(w, c);
    }
    return list_is_empty(&link->walking);
}

bool channel_walk(struct channel_worker *w)
{
    unsigned sends = CHANNEL_SENDS;
    while (sends && !list_is_empty(&w->walks)) {
        struct channel_link *link = list_entry(w->walks.next, struct channel_link, walk);
        if (w->batch_count || channel_walk_begin(w, link)) {
            if (!channel_walk_on(w, link, &sends)) break;
            channel_walk_release_batch(w);
            list_remove(&link->walk); // the others have their turn
            list_append(&w->walks, &link->walk);
        } else {
            list_remove(&link->walk);
        }
    }
    return list_is_empty(&w->walks);
}
