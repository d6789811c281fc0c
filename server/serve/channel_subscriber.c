// A subscriber's life: how it reads on by itself when it is behind, its silence, its end.
#include <stdlib.h>
#include "base/mem.h"
#include "serve/channel_private.h"

enum { CHANNEL_ROUNDS = 4 }; // batches that one subscriber reads in a turn

// Reading on --------------------------------------------------------------------------------------

void channel_cursor_fall_behind(struct channel_cursor *c)
{
    struct channel_subscriber *s = c->subscriber;
    list_remove(&c->node);
    list_append(&c->link->behind, &c->node);
    c->is_behind = true;
    // With a backlog on_drain takes it further.
    if (!s->is_ended && exchange_backlog(s->x) == 0) channel_subscriber_soon(s);
}

bool channel_subscriber_has_all(const struct channel_subscriber *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct channel_cursor *c = &s->cursors[i];
        if (!c->link->end || c->next < c->link->end) return false;
    }
    return true;
}

void channel_cursor_catch_up(struct channel_cursor *c)
{
    list_remove(&c->node);
    list_append(&c->link->live, &c->node);
    c->is_behind = false;
    if (c->link->end && channel_subscriber_has_all(c->subscriber))
        channel_subscriber_end(c->subscriber, -1);
}

void channel_subscriber_lose(struct channel_subscriber *s)
{
    if (s->is_ended) return;
    counters_add(&s->worker->loop->counters->channel_slow_closed, 1);
    channel_subscriber_abort(s);
}

bool channel_cursor_skip(struct channel_cursor *c, uint64_t first, uint64_t oldest)
{
    char id[CHANNEL_ID];
    struct channel *ch = c->link->channel;
    pthread_mutex_lock(&ch->lock);
    bool closes = ch->options.slow == CHANNEL_CLOSE;
    pthread_mutex_unlock(&ch->lock);
    if (closes) {
        channel_subscriber_lose(c->subscriber);
        return false;
    }
    size_t len = channel_id(ch, c->next - 1, id);
    channel_give_gap(c, slice_of(id, len), oldest);
    c->next = first;
    return !c->subscriber->is_ended;
}

// One batch for a cursor that is behind.
static void channel_pull_batch(struct channel_cursor *c)
{
    struct channel_worker *w = c->subscriber->worker;
    struct channel *ch = c->link->channel;
    struct payload *list[CHANNEL_BATCH];
    channel_lock_trimmed(ch, w->loop->now);
    uint64_t first = ch->ring.first, oldest = first == ch->ring.next ? 0 : first;
    size_t count =
        channel_snapshot(ch, c->next < first ? first : c->next, c->link->next, list, CHANNEL_BATCH);
    channel_unlock(ch);
    bool goes_on = c->next >= first || channel_cursor_skip(c, first, oldest);
    if (goes_on && count == 0) exchange_flush(c->subscriber->x);
    if (goes_on) channel_give(c, list, count);
    channel_release_all(list, count);
}

// False when the subscriber can take no more now.
static bool channel_pull(struct channel_cursor *c)
{
    struct channel_subscriber *s = c->subscriber;
    for (int i = 0; c->next < c->link->next; i++) {
        if (s->is_ended || exchange_backlog(s->x) > 0 || i == CHANNEL_ROUNDS) return false;
        s->worker->scratch_of = NULL; // an event of another batch may have its address
        channel_pull_batch(c);
        s->worker->scratch_of = NULL;
    }
    channel_cursor_catch_up(c);
    return true;
}

void channel_subscriber_go_on(struct channel_subscriber *s)
{
    for (unsigned i = 0; i < s->count && !s->is_ended; i++) {
        unsigned at = (s->turn + i) % s->count;
        if (!s->cursors[at].is_behind || channel_pull(&s->cursors[at])) continue;
        s->turn = (uint8_t)((at + 1) % s->count);
        if (!s->is_ended && exchange_backlog(s->x) == 0) channel_subscriber_soon(s);
        return;
    }
}

void channel_subscriber_soon(struct channel_subscriber *s)
{
    if (!list_is_linked(&s->ready)) list_append(&s->worker->ready, &s->ready);
    channel_worker_soon(s->worker);
}

static void channel_on_drain(struct exchange_watch *watch)
{
    struct channel_subscriber *s = list_entry(watch, struct channel_subscriber, watch);
    channel_subscriber_go_on(s);
}

// Ends --------------------------------------------------------------------------------------------

void channel_write_retry(struct channel_subscriber *s, int64_t retry)
{
    char text[40];
    if (retry < 0 || s->format != CHANNEL_SSE) return;
    int len = snprintf(text, sizeof text, "retry: %lld\n\n", (long long)retry);
    exchange_body(s->x, slice_of(text, (size_t)len));
}

void channel_subscriber_end(struct channel_subscriber *s, int64_t retry)
{
    if (s->is_ended) return;
    channel_write_retry(s, retry);
    s->is_ended = true;
    exchange_end(s->x);
}

void channel_subscriber_abort(struct channel_subscriber *s)
{
    if (s->is_ended) return;
    s->is_ended = true;
    exchange_abort(s->x);
}

static void channel_cursor_leave(struct channel_cursor *c)
{
    struct channel_link *link = c->link;
    if (!link) return;
    list_remove(&c->node);
    channel_leave(link->channel, c->member);
    pthread_mutex_lock(&link->channel->lock);
    link->channel->subscribers--;
    pthread_mutex_unlock(&link->channel->lock);
    link->cursors--;
    channel_link_drop(link);
}

void channel_subscriber_free(struct channel_subscriber *s)
{
    for (unsigned i = 0; i < s->count; i++) channel_cursor_leave(&s->cursors[i]);
    list_remove(&s->ready);
    timer_stop(&s->beat);
    mem_free(s);
}

static void channel_on_over(struct exchange_watch *watch, enum exchange_end how)
{
    struct channel_subscriber *s = list_entry(watch, struct channel_subscriber, watch);
    struct channel_worker *w = s->worker;
    (void)how;
    list_remove(&s->node);
    w->count--;
    atomic_fetch_sub_explicit(w->total, 1, memory_order_relaxed);
    counters_add(&w->loop->counters->streams, -1);
    counters_add(&w->loop->counters->channel_subscribers, -1);
    channel_subscriber_free(s);
}

void channel_worker_end_all(struct channel_worker *w, uint32_t spread)
{
    struct list *next;
    for (struct list *at = w->subscribers.next; at != &w->subscribers; at = next) {
        struct channel_subscriber *s = list_entry(at, struct channel_subscriber, node);
        next = at->next;
        channel_subscriber_end(s, spread ? (int64_t)(random() % spread) : -1);
    }
}

// Silence -----------------------------------------------------------------------------------------

// Looks whether there was silence long enough; deliveries only note the time. A peer that has not
// taken the last bytes learns nothing from more of them.
static void channel_on_beat(struct timer *timer)
{
    struct channel_subscriber *s = list_entry(timer, struct channel_subscriber, beat);
    struct loop *loop = s->worker->loop;
    uint64_t due = s->last + s->heartbeat;
    if (s->is_ended) return;
    if (loop->now >= due) {
        due = loop->now + s->heartbeat;
        s->last = loop->now;
        if (exchange_backlog(s->x) == 0) {
            exchange_body(s->x, s->format == CHANNEL_SSE ? SLICE(":\n\n") : SLICE("\n"));
            exchange_flush(s->x);
        }
    }
    timer_start(loop, timer, due - loop->now, channel_on_beat);
}

void channel_subscriber_watch(struct channel_subscriber *s)
{
    struct channel_worker *w = s->worker;
    list_append(&w->subscribers, &s->node);
    w->count++;
    atomic_fetch_add_explicit(w->total, 1, memory_order_relaxed);
    counters_add(&w->loop->counters->streams, 1);
    counters_add(&w->loop->counters->streams_opened, 1);
    counters_add(&w->loop->counters->channel_subscribers, 1);
    s->watch.on_drain = channel_on_drain;
    s->watch.on_over = channel_on_over;
    exchange_watch(s->x, &s->watch);
    s->x->is_stream = true;
    s->last = w->loop->now;
    if (s->heartbeat) timer_start(w->loop, &s->beat, s->heartbeat, channel_on_beat);
}
