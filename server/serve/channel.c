#include "serve/channel_private.h"

#include "base/mem.h"
#include "serve/channel_log.h"
#include "text/sse.h"

enum { CHANNEL_FIRST_CAP = 8 };

void channel_release_all(struct payload **list, size_t count)
{
    for (size_t i = 0; i < count; i++) payload_release(list[i]);
}

void channel_lock_trimmed(struct channel *ch, uint64_t now)
{
    struct payload *dropped[CHANNEL_DROP];
    size_t count;
    pthread_mutex_lock(&ch->lock);
    while ((count = channel_ring_trim(&ch->ring, &ch->options, now, dropped)) > 0) {
        pthread_mutex_unlock(&ch->lock);
        channel_release_all(dropped, count);
        pthread_mutex_lock(&ch->lock);
    }
}

// Publishing -------------------------------------------------------------------------------------

// Locks, with room for `count` more events; the larger array is allocated and freed outside of the
// lock.
static bool channel_lock_with_room(struct channel *ch, size_t count)
{
    pthread_mutex_lock(&ch->lock);
    while (channel_ring_count(&ch->ring) + count > ch->ring.cap) {
        size_t cap = ch->ring.cap;
        pthread_mutex_unlock(&ch->lock);
        size_t wanted = cap ? 2 * cap : CHANNEL_FIRST_CAP;
        struct channel_entry *items = mem_alloc(wanted * sizeof *items);
        if (!items) return false;
        pthread_mutex_lock(&ch->lock);
        bool is_ours = ch->ring.cap == cap;
        if (is_ours) items = channel_ring_move(&ch->ring, items, wanted);
        pthread_mutex_unlock(&ch->lock);
        mem_free(items);
        pthread_mutex_lock(&ch->lock);
    }
    return true;
}

bool channel_reserve(struct channel *ch, size_t count)
{
    bool ok = channel_lock_with_room(ch, count);
    if (ok) channel_unlock(ch);
    return ok;
}

enum channel_result channel_check(struct channel *ch, struct slice event, struct slice data)
{
    uint32_t most = atomic_load_explicit(&ch->registry->max_event, memory_order_relaxed);
    if (sse_check(&(struct sse_event){.event = event})) return CHANNEL_BAD_EVENT;
    return event.len + data.len > most ? CHANNEL_TOO_LARGE : CHANNEL_OK;
}

enum channel_result channel_append(struct channel *ch, struct payload *record, bool is_last,
                                   uint64_t now, uint64_t *sequence)
{
    struct payload *dropped[CHANNEL_DROP];
    if (!channel_lock_with_room(ch, record ? 1 : 0)) return CHANNEL_NO_MEMORY;
    if (ch->is_finished) {
        channel_unlock(ch);
        return CHANNEL_IS_FINISHED;
    }
    if (record) {
        channel_record_seal(record, channel_epoch(ch), ch->ring.next);
        channel_ring_push(&ch->ring, record, now);
    }
    if (sequence) *sequence = ch->ring.next - 1;
    if (is_last) {
        ch->is_finished = true;
        ch->is_claimed = false;
        ch->finished_at = now;
    }
    size_t count = channel_ring_trim(&ch->ring, &ch->options, now, dropped);
    channel_tell_links(ch);
    channel_unlock(ch);
    channel_release_all(dropped, count);
    return CHANNEL_OK;
}

static enum channel_result channel_add(struct channel *ch, struct slice event, struct slice data,
                                       bool is_last, uint64_t now, uint64_t *sequence)
{
    enum channel_result result = channel_check(ch, event, data);
    if (result != CHANNEL_OK) return result;
    struct payload *record = channel_record_new(event, data);
    if (!record) return CHANNEL_NO_MEMORY;
    result = channel_append(ch, record, is_last, now, sequence);
    if (result != CHANNEL_OK) {
        payload_release(record);
        return result;
    }
    atomic_fetch_add_explicit(&ch->registry->events, 1, memory_order_relaxed);
    return CHANNEL_OK;
}

enum channel_result channel_publish(struct channel *ch, struct slice event, struct slice data,
                                    uint64_t now, uint64_t *sequence)
{
    if (channel_is_durable(ch)) return CHANNEL_IS_DURABLE;
    return channel_add(ch, event, data, false, now, sequence);
}

enum channel_result channel_finish(struct channel *ch, bool has_event, struct slice event,
                                   struct slice data, uint64_t now, uint64_t *sequence)
{
    struct channel_log_job *job;
    if (channel_is_durable(ch)) {
        if (sequence) *sequence = 0;
        return channel_log_publish(ch, has_event ? CHANNEL_LOG_FINISH : CHANNEL_LOG_END, event,
                                   data, NULL, &job);
    }
    if (!has_event) return channel_append(ch, NULL, true, now, sequence);
    return channel_add(ch, event, data, true, now, sequence);
}

bool channel_is_finished(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    bool is_finished = ch->is_finished;
    pthread_mutex_unlock(&ch->lock);
    return is_finished;
}

bool channel_claim(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    bool is_free = !ch->is_claimed && !ch->is_finished;
    ch->is_claimed |= is_free;
    pthread_mutex_unlock(&ch->lock);
    return is_free;
}

void channel_unclaim(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    ch->is_claimed = false;
    pthread_mutex_unlock(&ch->lock);
}

// Reading ----------------------------------------------------------------------------------------

size_t channel_id(const struct channel *ch, uint64_t sequence, char to[CHANNEL_ID])
{
    return channel_record_id(channel_epoch(ch), sequence, to);
}

uint64_t channel_last(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    uint64_t next = ch->ring.next;
    pthread_mutex_unlock(&ch->lock);
    return next - 1;
}

size_t channel_kept(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    size_t count = (size_t)(ch->ring.next - ch->ring.first);
    pthread_mutex_unlock(&ch->lock);
    return count;
}

uint32_t channel_subscribers(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    uint32_t count = ch->subscribers;
    pthread_mutex_unlock(&ch->lock);
    return count;
}

bool channel_parse_id(const struct channel *ch, struct slice id, uint64_t *sequence)
{
    struct slice epoch;
    bool is_good;
    while (channel_record_next_id(&id, &epoch, sequence, &is_good)) {
        if (is_good && slice_equals(epoch, channel_epoch(ch))) return true;
    }
    return false;
}

size_t channel_snapshot(struct channel *ch, uint64_t from, uint64_t until, struct payload **to,
                        size_t max)
{
    const struct channel_ring *r = &ch->ring;
    size_t count = 0, bytes = 0;
    if (until > r->next) until = r->next;
    while (count < max && from < until && bytes < CHANNEL_BATCH_BYTES) {
        to[count] = payload_retain(channel_ring_at(r, from++)->record);
        bytes += to[count++]->len;
    }
    return count;
}

size_t channel_read(struct channel *ch, uint64_t from, uint64_t now, struct payload **to,
                    size_t max, uint64_t *first)
{
    channel_lock_trimmed(ch, now);
    if (from < ch->ring.first) from = ch->ring.first;
    if (from > ch->ring.next) from = ch->ring.next;
    *first = from;
    size_t count = channel_snapshot(ch, from, UINT64_MAX, to, max);
    channel_unlock(ch);
    return count;
}

size_t channel_read_last(struct channel *ch, uint64_t before, uint64_t now, struct payload **to,
                         size_t max, uint64_t *first)
{
    size_t count = 0;
    channel_lock_trimmed(ch, now);
    const struct channel_ring *r = &ch->ring;
    uint64_t until = before && before < r->next ? before : r->next;
    uint64_t from = until > r->first && until - r->first > max ? until - max : r->first;
    *first = from;
    // All that was asked for: `to` bounds it, and nothing is allocated.
    for (; from < until; from++) to[count++] = payload_retain(channel_ring_at(r, from)->record);
    channel_unlock(ch);
    return count;
}
