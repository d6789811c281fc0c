// Events on their way to one subscriber, in its form.
#include "serve/channel_private.h"
#include "text/json.h"

enum {
    CHANNEL_COPIED = 64 * 1024, // bytes copied for one subscriber at a time
    CHANNEL_ECHO = 256,         // of a client's id, told back in a gap
};

// The ids that the subscriber has now reached in each of its channels.
static bool channel_write_ids(struct buf *to, const struct channel_subscriber *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        const struct channel_cursor *c = &s->cursors[i];
        char *at = buf_reserve(to, CHANNEL_ID + 1);
        if (!at) return false;
        if (i) *at++ = ',', to->len++;
        to->len += channel_id(c->link->channel, c->next - 1, at);
    }
    return true;
}

static bool channel_write_record(struct buf *to, const struct channel_subscriber *s,
                                 const struct payload *record)
{
    return buf_append_slice(to, channel_record_body(record)) && buf_append(to, "id: ", 4) &&
           channel_write_ids(to, s) && buf_append(to, "\n\n", 2);
}

static bool channel_write_line(struct buf *to, const struct channel_subscriber *s,
                               const struct payload *record)
{
    struct channel_event e;
    struct buf joined = {0}, ids = {0};
    bool ok = channel_parse_event(record, &e, &joined);
    if (ok && s->count > 1) {
        ok = channel_write_ids(&ids, s);
        e.id = buf_slice(&ids);
    }
    ok = ok && channel_record_line(to, e.id, e.event, e.data);
    buf_reset(&joined);
    buf_reset(&ids);
    return ok;
}

// What many subscribers get alike is made once for a batch.
static bool channel_compose(struct channel_worker *w, const struct channel_subscriber *s,
                            const struct payload *record)
{
    bool is_shared = s->count == 1;
    if (is_shared && w->scratch_of == record) return true;
    w->scratch.len = 0;
    w->scratch_of = NULL;
    bool ok = s->format == CHANNEL_NDJSON ? channel_write_line(&w->scratch, s, record)
                                          : channel_write_record(&w->scratch, s, record);
    if (ok && is_shared) w->scratch_of = record;
    return ok;
}

// Composite ids and other forms are the subscriber's own, and are copied.
static size_t channel_give_copies(struct channel_cursor *c, struct payload *const *list,
                                  size_t count)
{
    struct channel_subscriber *s = c->subscriber;
    size_t taken = 0, bytes = 0;
    while (taken < count && bytes < CHANNEL_COPIED) {
        c->next++;
        if (!channel_compose(s->worker, s, list[taken])) {
            channel_subscriber_abort(s);
            return count;
        }
        exchange_body(s->x, buf_slice(&s->worker->scratch));
        bytes += s->worker->scratch.len;
        taken++;
    }
    exchange_flush(s->x);
    return taken;
}

size_t channel_give(struct channel_cursor *c, struct payload *const *list, size_t count)
{
    struct channel_subscriber *s = c->subscriber;
    size_t taken;
    if (count == 0) return 0;
    if (s->format == CHANNEL_SSE && s->count == 1) {
        taken = exchange_payloads(s->x, list, count);
        c->next += taken;
    } else {
        taken = channel_give_copies(c, list, count);
    }
    s->last = s->worker->loop->now;
    counters_add(&s->worker->loop->counters->channel_deliveries, (int64_t)taken);
    return taken;
}

// Text that is no UTF-8 cannot be said in JSON.
static bool channel_write_gap_data(struct buf *to, const struct channel *ch, struct slice requested,
                                   uint64_t oldest)
{
    char id[CHANNEL_ID];
    if (requested.len > CHANNEL_ECHO) requested.len = CHANNEL_ECHO;
    if (!buf_append_slice(to, SLICE("{\"requested\":"))) return false;
    enum json_result result = json_write_string(to, requested);
    if (result == JSON_NO_MEMORY) return false;
    if (result == JSON_BAD_UTF8 && !buf_append(to, "null", 4)) return false;
    if (!buf_append_slice(to, SLICE(",\"oldest\":"))) return false;
    if (!oldest) return buf_append_slice(to, SLICE("null}"));
    int len = (int)channel_id(ch, oldest, id);
    return buf_append_format(to, "\"%.*s\"}", len, id);
}

void channel_give_gap(struct channel_cursor *c, struct slice requested, uint64_t oldest)
{
    struct channel_subscriber *s = c->subscriber;
    struct buf *to = &s->worker->scratch;
    bool is_line = s->format == CHANNEL_NDJSON;
    to->len = 0;
    s->worker->scratch_of = NULL;
    bool ok = buf_append_slice(to, is_line ? SLICE("{\"event\":\"photon.gap\",\"data\":")
                                           : SLICE("event: photon.gap\ndata: ")) &&
              channel_write_gap_data(to, c->link->channel, requested, oldest) &&
              buf_append_slice(to, is_line ? SLICE("}\n") : SLICE("\n\n"));
    counters_add(&s->worker->loop->counters->channel_gaps, 1);
    if (ok)
        exchange_body(s->x, buf_slice(to));
    else
        channel_subscriber_abort(s);
}
