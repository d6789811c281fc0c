// How a worker hears of a channel: links, the list of those that were told of something, watches.
#include <assert.h>
#include "base/mem.h"
#include "serve/channel_log.h"
#include "serve/channel_private.h"

// Telling, from any thread -----------------------------------------------------------------------

static void channel_wake(struct channel_worker *w)
{
    if (pthread_equal(w->thread, pthread_self()))
        loop_next_turn(w->loop, &w->turn);
    else
        loop_wake(w->loop);
}

// The first of a burst wakes the worker; the others find the list begun.
void channel_tell_link(struct channel_link *link)
{
    struct channel_worker *w = link->worker;
    if (link->is_dirty) return;
    link->is_dirty = true;
    pthread_mutex_lock(&w->lock);
    bool is_first = list_is_empty(&w->dirty);
    list_append(&w->dirty, &link->dirty);
    pthread_mutex_unlock(&w->lock);
    if (is_first) channel_wake(w);
}

void channel_tell_links(struct channel *ch)
{
    for (struct list *at = ch->links.next; at != &ch->links; at = at->next)
        channel_tell_link(list_entry(at, struct channel_link, of_channel));
}

// Links ------------------------------------------------------------------------------------------

static struct channel_link *channel_link_new(struct channel_worker *w, struct channel *ch)
{
    struct channel_link *link = mem_zalloc(sizeof *link);
    if (!link) return NULL;
    link->channel = channel_retain(ch);
    link->worker = w;
    list_init(&link->notes);
    list_init(&link->live);
    list_init(&link->walking);
    list_init(&link->behind);
    list_init(&link->watches);
    list_append(&w->links, &link->of_worker);
    pthread_mutex_lock(&ch->lock);
    list_append(&ch->links, &link->of_channel);
    link->next = link->told = ch->ring.next;
    if (ch->is_finished) link->end = ch->ring.next;
    pthread_mutex_unlock(&ch->lock);
    return link;
}

struct channel_link *channel_link_get(struct channel_worker *w, struct channel *ch)
{
    if (!w->has_thread) {
        w->thread = pthread_self();
        w->has_thread = true;
    }
    // A channel has few links (one for each worker at most), a worker may have many.
    struct channel_link *found = NULL;
    pthread_mutex_lock(&ch->lock);
    for (struct list *at = ch->links.next; at != &ch->links && !found; at = at->next) {
        struct channel_link *link = list_entry(at, struct channel_link, of_channel);
        if (link->worker == w) found = link;
    }
    pthread_mutex_unlock(&ch->lock);
    return found ? found : channel_link_new(w, ch);
}

static void channel_link_free(struct channel_link *link)
{
    struct channel_worker *w = link->worker;
    if (w->batch_count && w->walks.next == &link->walk) channel_walk_release_batch(w);
    pthread_mutex_lock(&link->channel->lock);
    list_remove(&link->of_channel);
    pthread_mutex_unlock(&link->channel->lock);
    pthread_mutex_lock(&w->lock);
    list_remove(&link->dirty);
    pthread_mutex_unlock(&w->lock);
    list_remove(&link->of_worker);
    list_remove(&link->walk);
    channel_notes_free(&link->notes);
    channel_release(link->channel);
    mem_free(link);
}

void channel_link_drop(struct channel_link *link)
{
    if (link->cursors == 0 && link->watch_count == 0 && !link->is_held) channel_link_free(link);
}

// Watches ----------------------------------------------------------------------------------------

static void channel_link_count_watch(struct channel_link *link, int by)
{
    pthread_mutex_lock(&link->channel->lock);
    link->watch_count += (uint32_t)by;
    pthread_mutex_unlock(&link->channel->lock);
}

bool channel_watch(struct channel_worker *w, struct channel *ch, struct channel_watch *watch)
{
    struct channel_link *link = channel_link_get(w, ch);
    if (!link) return false;
    watch->link = link;
    list_append(&link->watches, &watch->node);
    channel_link_count_watch(link, 1);
    return true;
}

void channel_unwatch(struct channel_watch *watch)
{
    struct channel_link *link = watch->link;
    if (!link) return;
    watch->link = NULL;
    list_remove(&watch->node);
    channel_link_count_watch(link, -1);
    channel_link_drop(link);
}

// A member's connections in this worker end; they are taken off their lists on later turns.
static void channel_kick_list(struct list *cursors, struct slice id)
{
    for (struct list *at = cursors->next; at != cursors; at = at->next) {
        struct channel_cursor *c = list_entry(at, struct channel_cursor, node);
        if (c->member && slice_equals(channel_member_id(c->member), id))
            channel_subscriber_end(c->subscriber, -1);
    }
}

// Watches may take themselves off while they are told, and others with them.
static void channel_tell_watches(struct channel_link *link, const struct channel_note *note)
{
    struct list told, *node;
    struct slice id = {0}, info = {0};
    if (note) {
        struct slice text = payload_slice(note->text);
        id = slice_of(text.ptr, note->id_len);
        info = slice_from(text, note->id_len);
    }
    list_init(&told);
    list_move_all(&told, &link->watches);
    while ((node = list_take(&told)) != NULL) {
        struct channel_watch *watch = list_entry(node, struct channel_watch, node);
        list_append(&link->watches, node);
        if (!note) {
            if (watch->on_news) watch->on_news(watch);
        } else if (note->kind == CHANNEL_JOIN) {
            if (watch->on_join) watch->on_join(watch, id, info);
        } else if (watch->on_leave) {
            watch->on_leave(watch, id, info);
        }
    }
}

static void channel_tell_notes(struct channel_link *link, struct list *notes)
{
    for (struct list *at = notes->next; at != notes; at = at->next) {
        struct channel_note *note = list_entry(at, struct channel_note, node);
        struct slice id = slice_of(payload_data(note->text), note->id_len);
        if (note->kind != CHANNEL_KICK) {
            channel_tell_watches(link, note);
            continue;
        }
        channel_kick_list(&link->live, id);
        channel_kick_list(&link->walking, id);
        channel_kick_list(&link->behind, id);
    }
    channel_notes_free(notes);
}

// The worker's turn ------------------------------------------------------------------------------

static void channel_link_look(struct channel_link *link)
{
    struct channel *ch = link->channel;
    struct list notes;
    list_init(&notes);
    link->is_held = true; // whatever the watches do
    pthread_mutex_lock(&ch->lock);
    link->is_dirty = false;
    list_move_all(&notes, &link->notes);
    uint64_t next = ch->ring.next;
    bool has_ended = ch->is_finished && !link->is_end_told;
    if (ch->is_finished) link->end = next;
    link->is_end_told = ch->is_finished;
    pthread_mutex_unlock(&ch->lock);
    bool has_news = next != link->told || has_ended;
    link->told = next;
    channel_tell_notes(link, &notes);
    if (has_news) channel_tell_watches(link, NULL);
    link->is_held = false;
    // Also without cursors: `next` must not stay behind.
    if (has_news && !list_is_linked(&link->walk)) list_append(&link->worker->walks, &link->walk);
    channel_link_drop(link);
}

static void channel_worker_look(struct channel_worker *w)
{
    struct list *node;
    pthread_mutex_lock(&w->lock);
    list_move_all(&w->taken, &w->dirty);
    pthread_mutex_unlock(&w->lock);
    while ((node = list_take(&w->taken)) != NULL)
        channel_link_look(list_entry(node, struct channel_link, dirty));
}

void channel_worker_soon(struct channel_worker *w)
{
    loop_next_turn(w->loop, &w->turn);
}

void channel_worker_run(struct channel_worker *w)
{
    struct list ready, *node;
    if (!w->is_open) return;
    channel_log_tell(w);
    channel_worker_look(w);
    list_init(&ready);
    list_move_all(&ready, &w->ready);
    while ((node = list_take(&ready)) != NULL)
        channel_subscriber_go_on(list_entry(node, struct channel_subscriber, ready));
    if (!channel_walk(w)) channel_worker_soon(w);
}

static void channel_worker_on_turn(struct loop_turn *turn)
{
    channel_worker_run(list_entry(turn, struct channel_worker, turn));
}

void channel_worker_open(struct channel_worker *w, struct loop *loop, _Atomic uint32_t *total)
{
    *w = (struct channel_worker){.loop = loop, .total = total};
    w->turn.on_turn = channel_worker_on_turn;
    list_init(&w->subscribers);
    list_init(&w->links);
    list_init(&w->taken);
    list_init(&w->walks);
    list_init(&w->ready);
    list_init(&w->dirty);
    list_init(&w->done);
    pthread_mutex_init(&w->lock, NULL);
    w->is_open = true;
}

void channel_worker_close(struct channel_worker *w)
{
    if (!w->is_open) return;
    assert(list_is_empty(&w->links) && list_is_empty(&w->subscribers));
    loop_forget(&w->turn);
    channel_log_settle(w);
    buf_reset(&w->scratch);
    pthread_mutex_destroy(&w->lock);
    w->is_open = false;
}
