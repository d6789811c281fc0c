// Names, lives and ends of channels.
#include <assert.h>
#include <sys/random.h>
#include <time.h>
#include "base/mem.h"
#include "serve/channel_log.h"
#include "serve/channel_private.h"

enum {
    CHANNEL_TABLE = 64,
    CHANNEL_SWEEP = 4,       // idle channels looked at for each new one
    CHANNEL_SWEEP_FULL = 64, // and when there is no room
};

static uint64_t channel_scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct channel_registry *channel_registry_new(uint32_t max_channels)
{
    struct channel_registry *r = mem_zalloc(sizeof *r);
    struct channel **table = mem_zalloc(CHANNEL_TABLE * sizeof *table);
    if (!r || !table) {
        mem_free(r);
        mem_free(table);
        return NULL;
    }
    r->table = table;
    r->table_cap = CHANNEL_TABLE;
    r->max_channels = max_channels;
    r->max_event = CHANNEL_MAX_EVENT;
    if (getrandom(&r->seed, sizeof r->seed, GRND_NONBLOCK) != sizeof r->seed) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now); // early in boot: at least another one each time
        r->seed = channel_scramble((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    }
    pthread_mutex_init(&r->lock, NULL);
    list_init(&r->idle);
    list_init(&r->loose);
    return r;
}

void channel_registry_limit(struct channel_registry *r, uint32_t max_channels, uint32_t max_event)
{
    pthread_mutex_lock(&r->lock);
    r->max_channels = max_channels;
    pthread_mutex_unlock(&r->lock);
    atomic_store_explicit(&r->max_event, max_event, memory_order_relaxed);
}

struct channel_totals channel_registry_totals(struct channel_registry *r)
{
    pthread_mutex_lock(&r->lock);
    struct channel_totals totals = {.channels = r->count};
    pthread_mutex_unlock(&r->lock);
    totals.events = atomic_load_explicit(&r->events, memory_order_relaxed);
    totals.refused = atomic_load_explicit(&r->refused, memory_order_relaxed);
    totals.log_errors = atomic_load_explicit(&r->log_errors, memory_order_relaxed);
    return totals;
}

const char *channel_result_text(enum channel_result result)
{
    static const char *const texts[] = {
        [CHANNEL_OK] = "ok",
        [CHANNEL_BAD_NAME] = "a channel's name has 1 to 128 bytes and no control characters",
        [CHANNEL_CONFLICT] = "the channel has been given other options already",
        [CHANNEL_TOO_MANY] = "too many channels (max_channels)",
        [CHANNEL_NO_MEMORY] = "not enough memory",
        [CHANNEL_BAD_EVENT] = "event must not contain CR, LF or NUL",
        [CHANNEL_TOO_LARGE] = "the event is too large (max_event)",
        [CHANNEL_IS_FINISHED] = "the channel is finished",
        [CHANNEL_IS_DURABLE] = "the channel has a log",
        [CHANNEL_LOG_CHANGED] = "the channel lives already, with events that are in no log or with "
                                "another log; give the log to a "
                                "channel of another name, or restart the server",
        [CHANNEL_LOG_FAILED] = "the channel's log cannot be written",
        [CHANNEL_LOG_BUSY] = "too much waits for the disk",
    };
    return texts[result];
}

static uint32_t channel_hash(const struct channel_registry *r, struct slice name)
{
    uint64_t hash = r->seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 0x100000001b3u;
    return (uint32_t)channel_scramble(hash);
}

static bool channel_name_is_good(struct slice name)
{
    if (name.len == 0 || name.len > CHANNEL_MAX_NAME) return false;
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) return false;
    }
    return true;
}

static struct channel **channel_find(struct channel_registry *r, struct slice name, uint32_t hash)
{
    struct channel **at = &r->table[hash & (r->table_cap - 1)];
    while (*at && !((*at)->hash == hash && slice_equals(channel_name(*at), name)))
        at = &(*at)->chain;
    return at;
}

// Without memory the chains only grow longer.
static void channel_grow_table(struct channel_registry *r)
{
    uint32_t cap = r->table_cap * 2;
    struct channel **table = mem_zalloc(cap * sizeof *table);
    if (!table) return;
    for (uint32_t i = 0; i < r->table_cap; i++) {
        for (struct channel *ch = r->table[i], *next; ch; ch = next) {
            next = ch->chain;
            ch->chain = table[ch->hash & (cap - 1)];
            table[ch->hash & (cap - 1)] = ch;
        }
    }
    mem_free(r->table);
    r->table = table;
    r->table_cap = cap;
}

static void channel_free(struct channel *ch)
{
    assert(list_is_empty(&ch->links));
    for (uint64_t i = ch->ring.first; i != ch->ring.next; i++)
        payload_release(channel_ring_at(&ch->ring, i)->record);
    if (ch->log) channel_log_close(ch->log);
    mem_free(ch->ring.items);
    mem_free(ch->members);
    pthread_mutex_destroy(&ch->lock);
    mem_free(ch);
}

// Takes a channel that nobody holds out of the registry. Under its lock.
static void channel_remove(struct channel *ch)
{
    struct channel_registry *r = ch->registry;
    *channel_find(r, channel_name(ch), ch->hash) = ch->chain;
    list_remove(&ch->node);
    r->count--;
}

static bool channel_is_over(struct channel *ch, uint64_t now)
{
    uint64_t linger = ch->options.replay_age ? ch->options.replay_age : CHANNEL_LINGER;
    channel_lock_trimmed(ch, now);
    bool is_empty = channel_ring_count(&ch->ring) == 0 && !ch->is_finished;
    bool is_old = ch->is_finished && now > ch->finished_at && now - ch->finished_at > linger;
    channel_unlock(ch);
    return is_empty || is_old;
}

// Nobody holds it: it goes, or waits in the list that fits.
static void channel_settle(struct channel *ch, uint64_t now)
{
    struct channel_registry *r = ch->registry;
    const struct channel_options *o = &ch->options;
    if (channel_is_over(ch, now)) {
        channel_remove(ch);
        channel_free(ch);
    } else if (!o->replay && !o->replay_age && !ch->is_finished) {
        list_append(&r->loose, &ch->node);
    } else {
        list_append(&r->idle, &ch->node);
    }
}

static void channel_sweep(struct channel_registry *r, uint64_t now, unsigned count)
{
    struct list *node;
    while (count-- && (node = list_take(&r->idle)) != NULL)
        channel_settle(list_entry(node, struct channel, node), now);
}

static bool channel_make_room(struct channel_registry *r, uint64_t now)
{
    channel_sweep(r, now, CHANNEL_SWEEP);
    if (r->count >= r->max_channels && list_is_empty(&r->loose))
        channel_sweep(r, now, CHANNEL_SWEEP_FULL);
    if (r->count >= r->max_channels && !list_is_empty(&r->loose)) {
        struct channel *ch = list_entry(r->loose.next, struct channel, node);
        channel_remove(ch);
        channel_free(ch);
    }
    return r->count < r->max_channels;
}

static void channel_draw_epoch(struct channel *ch)
{
    uint64_t bits =
        channel_scramble(ch->registry->seed + ++ch->registry->serial * 0x9e3779b97f4a7c15u);
    for (int i = 0; i < CHANNEL_EPOCH; i++, bits /= 36)
        ch->epoch[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[bits % 36];
}

static struct channel *channel_new(struct channel_registry *r, struct slice name, uint32_t hash)
{
    struct channel *ch = mem_zalloc(sizeof *ch + name.len);
    if (!ch) return NULL;
    ch->registry = r;
    ch->hash = hash;
    ch->refs = 1;
    ch->options = CHANNEL_OPTIONS_DEFAULT;
    ch->ring.first = ch->ring.next = 1;
    ch->name_len = (uint8_t)name.len;
    memcpy(ch->name, name.ptr, name.len);
    pthread_mutex_init(&ch->lock, NULL);
    list_init(&ch->links);
    list_init(&ch->present);
    channel_draw_epoch(ch);
    if (r->count >= 2 * r->table_cap) channel_grow_table(r);
    ch->chain = r->table[hash & (r->table_cap - 1)];
    r->table[hash & (r->table_cap - 1)] = ch;
    r->count++;
    return ch;
}

static bool channel_options_equal(const struct channel_options *a, const struct channel_options *b)
{
    return a->replay == b->replay && a->replay_age == b->replay_age && a->backlog == b->backlog &&
           a->slow == b->slow;
}

static enum channel_result channel_set_options(struct channel *ch,
                                               const struct channel_options *options, uint64_t load)
{
    if (!options || load < ch->load) return CHANNEL_OK;
    if (load == ch->load) {
        return channel_options_equal(&ch->options, options) ? CHANNEL_OK : CHANNEL_CONFLICT;
    }
    ch->load = load;
    pthread_mutex_lock(&ch->lock);
    ch->options = *options;
    pthread_mutex_unlock(&ch->lock);
    return CHANNEL_OK;
}

static enum channel_result channel_open_locked(struct channel_registry *r, struct slice name,
                                               const struct channel_options *options, uint64_t load,
                                               uint64_t now, struct channel **to)
{
    uint32_t hash = channel_hash(r, name);
    struct channel *ch = *channel_find(r, name, hash);
    if (ch && atomic_load(&ch->refs) == 0 && channel_is_over(ch, now)) {
        channel_remove(ch);
        channel_free(ch);
        ch = NULL;
    }
    if (ch) {
        enum channel_result result = channel_set_options(ch, options, load);
        if (result != CHANNEL_OK) return result;
        list_remove(&ch->node);
        atomic_fetch_add(&ch->refs, 1);
    } else {
        if (!channel_make_room(r, now)) return CHANNEL_TOO_MANY;
        if (!(ch = channel_new(r, name, hash))) return CHANNEL_NO_MEMORY;
        if (options) ch->options = *options, ch->load = load;
    }
    *to = ch;
    return CHANNEL_OK;
}

enum channel_result channel_open(struct channel_registry *r, struct slice name,
                                 const struct channel_options *options, uint64_t load, uint64_t now,
                                 struct channel **to)
{
    if (!channel_name_is_good(name)) return CHANNEL_BAD_NAME;
    pthread_mutex_lock(&r->lock);
    enum channel_result result = channel_open_locked(r, name, options, load, now, to);
    pthread_mutex_unlock(&r->lock);
    if (result == CHANNEL_TOO_MANY) atomic_fetch_add_explicit(&r->refused, 1, memory_order_relaxed);
    return result;
}

struct channel *channel_retain(struct channel *ch)
{
    atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
    return ch;
}

// Whoever finds a channel by name does so under the registry's lock, so only there it may become
// unheld.
void channel_release(struct channel *ch)
{
    if (!ch) return;
    struct channel_registry *r = ch->registry;
    uint32_t refs = atomic_load_explicit(&ch->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak(&ch->refs, &refs, refs - 1)) return;
    }
    pthread_mutex_lock(&r->lock);
    if (atomic_fetch_sub(&ch->refs, 1) == 1) channel_settle(ch, 0);
    pthread_mutex_unlock(&r->lock);
}

static bool channel_registry_is_held(const struct channel_registry *r)
{
    for (uint32_t i = 0; i < r->table_cap; i++) {
        for (struct channel *ch = r->table[i]; ch; ch = ch->chain) {
            if (atomic_load(&ch->refs)) return true;
        }
    }
    return false;
}

// Whoever still holds a channel (a virtual machine that was given up) keeps the registry too.
void channel_registry_free(struct channel_registry *r)
{
    if (r) channel_log_drain(r->log); // what is still to be written holds its channel
    if (!r || channel_registry_is_held(r)) return;
    for (uint32_t i = 0; i < r->table_cap; i++) {
        for (struct channel *ch = r->table[i], *next; ch; ch = next) {
            next = ch->chain;
            channel_free(ch);
        }
    }
    channel_log_free(r->log);
    pthread_mutex_destroy(&r->lock);
    mem_free(r->table);
    mem_free(r);
}

struct slice channel_name(const struct channel *ch)
{
    return slice_of(ch->name, ch->name_len);
}
