// How a subscription begins: where, in one step with its registration.
#include "base/mem.h"
#include "serve/channel_private.h"
#include "serve/stream.h"

void channel_cursor_place(struct channel_cursor *c, const struct channel_terms *terms,
                          bool has_foreign)
{
    const struct channel *ch = c->link->channel;
    uint64_t first = ch->ring.first, next = ch->ring.next, sequence;
    struct slice id = terms->last_event_id;
    if (id.len && channel_parse_id(ch, id, &sequence)) {
        c->has_gap = sequence >= next || sequence + 1 < first;
        c->next = c->has_gap ? first : sequence + 1;
    } else if (id.len && has_foreign) {
        c->has_gap = true;
        c->next = first;
    } else if (terms->from == CHANNEL_LAST) {
        c->next = next - first > terms->last ? next - terms->last : first;
    } else {
        c->next = terms->from == CHANNEL_START ? first : next;
    }
}

// Registers the cursor and finds its place in one step: from then on nothing is missed.
static bool channel_cursor_enter(struct channel_cursor *c, struct channel_subscriber *s,
                                 struct channel *ch, const struct channel_terms *terms,
                                 bool has_foreign)
{
    struct channel_link *link = channel_link_get(s->worker, ch);
    if (!link) return false;
    *c = (struct channel_cursor){.link = link, .subscriber = s, .is_behind = true};
    channel_lock_trimmed(ch, s->worker->loop->now);
    channel_cursor_place(c, terms, has_foreign);
    ch->subscribers++;
    bool is_finished = ch->is_finished;
    uint64_t next = ch->ring.next;
    channel_unlock(ch);
    // The end may be known here before the link is looked at.
    if (is_finished) link->end = next;
    list_append(&link->behind, &c->node);
    link->cursors++;
    return true;
}

static bool channel_id_has_foreign(struct slice id, struct channel *const *list, size_t count)
{
    struct slice epoch;
    uint64_t sequence;
    bool is_good;
    while (channel_record_next_id(&id, &epoch, &sequence, &is_good)) {
        size_t at = 0;
        while (is_good && at < count && !slice_equals(channel_epoch(list[at]), epoch)) at++;
        if (!is_good || at == count) return true;
    }
    return false;
}

static bool channel_stands_before(struct channel *const *list, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (list[i] == list[at]) return true;
    }
    return false;
}

static struct channel_subscriber *channel_subscriber_new(struct channel_worker *w,
                                                         struct exchange *x,
                                                         struct channel *const *list, size_t count,
                                                         const struct channel_terms *terms)
{
    struct channel_subscriber *s = mem_zalloc(sizeof *s + count * sizeof *s->cursors);
    if (!s) return NULL;
    s->worker = w;
    s->x = x;
    s->format = (uint8_t)terms->format;
    s->heartbeat = (uint32_t)(terms->heartbeat < UINT32_MAX ? terms->heartbeat : UINT32_MAX);
    bool has_foreign = channel_id_has_foreign(terms->last_event_id, list, count);
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        struct channel_cursor *c = &s->cursors[s->count];
        if (channel_stands_before(list, i)) continue;
        ok = channel_cursor_enter(c, s, list[i], terms, has_foreign);
        if (!ok) break;
        s->count++;
        if (terms->member.len) {
            c->member = channel_join(list[i], terms->member, terms->info);
            ok = c->member != NULL;
        }
    }
    if (ok) return s;
    channel_subscriber_free(s);
    return NULL;
}

static bool channel_answer_early(struct channel_worker *w, struct exchange *x, size_t count,
                                 const struct channel_terms *terms)
{
    struct stream_spec spec = {
        .type = terms->format == CHANNEL_NDJSON ? STREAM_NDJSON : STREAM_SSE,
    };
    if (count == 0 || count > CHANNEL_MAX_JOINED)
        exchange_error(x, 500, "a connection carries 1 to 64 channels", NULL);
    else if (x->is_head_request)
        stream_answer_head(x, &spec, 200, terms->headers);
    else if (!stream_is_refused(w->total, x))
        return false;
    return true;
}

static void channel_tell_gaps(struct channel_subscriber *s, struct slice requested)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct channel_cursor *c = &s->cursors[i];
        if (!c->has_gap) continue;
        struct channel *ch = c->link->channel;
        pthread_mutex_lock(&ch->lock);
        uint64_t oldest = c->next < ch->ring.next ? c->next : 0;
        pthread_mutex_unlock(&ch->lock);
        channel_give_gap(c, requested, oldest);
    }
}

static void channel_subscriber_begin(struct channel_subscriber *s,
                                     const struct channel_terms *terms, const struct reply *reply)
{
    channel_subscriber_watch(s);
    exchange_head(s->x, reply);
    channel_write_retry(s, terms->retry);
    channel_tell_gaps(s, terms->last_event_id);
    exchange_flush(s->x);
    channel_subscriber_go_on(s);
}

bool channel_subscribe(struct channel_worker *w, struct exchange *x, struct channel *const *list,
                       size_t count, const struct channel_terms *terms)
{
    struct reply reply = {.status = 204};
    struct stream_spec spec = {
        .type = terms->format == CHANNEL_NDJSON ? STREAM_NDJSON : STREAM_SSE,
    };
    if (channel_answer_early(w, x, count, terms)) return false;
    struct channel_subscriber *s = channel_subscriber_new(w, x, list, count, terms);
    if (s && channel_subscriber_has_all(s)) {
        channel_subscriber_free(s);
        exchange_reply(x, &reply, (struct slice){0});
        return false;
    }
    if (!s || !stream_make_reply(x, &spec, 200, terms->headers, &reply)) {
        if (s) channel_subscriber_free(s);
        exchange_error(x, 503, NULL, NULL);
        return false;
    }
    channel_subscriber_begin(s, terms, &reply);
    return true;
}
