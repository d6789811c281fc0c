// channel_private: what the files of the room share; for them alone.
//
// Locks, in the order in which they may be held together: the registry's, a channel's, a
// channel_worker's. Lists of links and cursors in a worker belong to its thread.
#ifndef PHOTON_SERVE_CHANNEL_PRIVATE_H
#define PHOTON_SERVE_CHANNEL_PRIVATE_H

#include "serve/channel_record.h"
#include "serve/channel_ring.h"
#include "serve/channel_worker.h"

enum { CHANNEL_BUCKETS = 64, CHANNEL_BATCH_BYTES = 256 * 1024 };

struct channel_registry {
    _Atomic uint64_t events, refused, log_errors;
    _Atomic uint32_t max_event;
    pthread_mutex_t lock; // of what follows
    struct channel **table;
    uint32_t table_cap, count, max_channels;
    uint64_t seed, serial;
    struct channel_log *log;
    struct list idle;  // channels that nobody holds, kept for what replay promises
    struct list loose; // those that keep only a backlog: the first to go
};

struct channel {
    struct channel_registry *registry;
    struct channel_log_file *_Atomic log; // of a durable one; it stays
    char epoch[CHANNEL_EPOCH];
    _Atomic uint32_t refs; // from and to 0 only under the registry's lock, like what follows
    uint32_t hash;
    struct channel *chain;
    struct list node; // in idle or loose
    uint64_t load;
    pthread_mutex_t lock; // of what follows
    struct channel_options options;
    struct channel_ring ring;
    struct list links;
    struct list present;
    struct channel_member **members; // CHANNEL_BUCKETS chains, made for the first
    uint32_t subscribers;
    uint64_t finished_at;
    bool is_finished, is_claimed;
    uint8_t name_len;
    char name[];
};

static inline struct slice channel_epoch(const struct channel *ch)
{
    return slice_of(ch->epoch, CHANNEL_EPOCH);
}

// One member of one channel, however many cursors it has.
struct channel_member {
    struct list node; // in the order in which they came
    struct channel_member *chain;
    uint32_t hash, connections;
    uint32_t id_len, info_len;
    char text[];
};

static inline struct slice channel_member_id(const struct channel_member *m)
{
    return slice_of(m->text, m->id_len);
}

static inline struct slice channel_member_info(const struct channel_member *m)
{
    return slice_of(m->text + m->id_len, m->info_len);
}

// A piece of news of the members for one link.
enum channel_note_kind { CHANNEL_JOIN, CHANNEL_LEAVE, CHANNEL_KICK };

struct channel_note {
    struct list node;
    struct payload *text; // id and info, one after the other; shared by the links
    uint32_t id_len;
    uint8_t kind; // enum channel_note_kind
};

// A channel's presence in one worker.
struct channel_link {
    struct channel *channel; // held
    struct channel_worker *worker;
    struct list of_channel;            // under the channel's lock, like the next two
    struct list notes;                 // struct channel_note
    bool is_dirty;                     // stands in worker->dirty or worker->taken
    uint32_t watch_count;              // changed under the channel's lock, by this thread
    struct list dirty;                 // under the worker's lock, or in worker->taken
    struct list of_worker, walk;       //
    struct list live, walking, behind; // cursors
    struct list watches;
    uint32_t cursors;
    bool is_end_told;
    bool is_held;  // must not be freed now, whoever leaves
    uint64_t next; // where the next batch begins; live cursors stand there, or after it
    uint64_t told; // watches know of everything before it
    uint64_t end;  // of a finished channel: what comes after its last event; else 0
};

struct channel_cursor {
    struct list node; // in the link's live, walking or behind
    struct channel_link *link;
    struct channel_subscriber *subscriber;
    struct channel_member *member;
    uint64_t next;  // the sequence that it wants
    bool is_behind; // and goes on by itself
    bool has_gap;   // what it wanted is not there: it is to be told
};

struct channel_subscriber {
    struct list node;  // worker->subscribers
    struct list ready; // worker->ready
    struct channel_worker *worker;
    struct exchange *x;
    struct exchange_watch watch;
    struct timer beat;
    uint64_t last; // loop->now of the last write
    uint32_t heartbeat;
    uint8_t format; // enum channel_format
    uint8_t count, turn;
    bool is_ended;
    struct channel_cursor cursors[];
};

// channel.c: locks the channel, when all that must go has gone (released outside of the lock).
void channel_lock_trimmed(struct channel *ch, uint64_t now);
static inline void channel_unlock(struct channel *ch)
{
    pthread_mutex_unlock(&ch->lock);
}

// What is wrong with an event; CHANNEL_OK: nothing.
enum channel_result channel_check(struct channel *ch, struct slice event, struct slice data);

// Appends the record (NULL: none), which it takes when all is well, and marks the end (`is_last`).
enum channel_result channel_append(struct channel *ch, struct payload *record, bool is_last,
                                   uint64_t now, uint64_t *sequence);

// Room for so many more events, as long as nobody else appends. False when there is no memory.
bool channel_reserve(struct channel *ch, size_t count);

// Retained events from `from` on, under the lock: at most `max`, none of or after `until`.
size_t channel_snapshot(struct channel *ch, uint64_t from, uint64_t until, struct payload **to,
                        size_t max);
void channel_release_all(struct payload **list, size_t count);

// channel_link.c: the link of the channel in the worker, made when there is none; NULL when there
// is no memory. channel_link_drop frees it when nothing needs it any more.
struct channel_link *channel_link_get(struct channel_worker *w, struct channel *ch);
void channel_link_drop(struct channel_link *link);

// Has every worker look at the channel. Under the channel's lock.
void channel_tell_links(struct channel *ch);
void channel_tell_link(struct channel_link *link);

// Has the worker call channel_worker_run again soon, and the subscriber go on then.
void channel_worker_soon(struct channel_worker *w);

// channel_walk.c: delivers batches, so many sends at most; false when there is more to do.
bool channel_walk(struct channel_worker *w);
void channel_walk_release_batch(struct channel_worker *w);

// channel_give.c: events to one cursor, in its form, with what is staged before them; returns how
// many were taken. The cursor moves on.
size_t channel_give(struct channel_cursor *c, struct payload *const *list, size_t count);

// Tells the subscriber of a gap, staged: what it `requested`, and the oldest kept sequence (0:
// none).
void channel_give_gap(struct channel_cursor *c, struct slice requested, uint64_t oldest);

// channel_subscriber.c: reads on for one that is behind.
void channel_subscriber_go_on(struct channel_subscriber *s);
bool channel_subscriber_has_all(const struct channel_subscriber *s); // and all is finished

void channel_subscriber_soon(struct channel_subscriber *s);

// Its place has fallen off the tail: it is told of the gap (staged) and goes on at `first`; or it
// is ended by policy, false.
bool channel_cursor_skip(struct channel_cursor *c, uint64_t first, uint64_t oldest);
void channel_subscriber_lose(struct channel_subscriber *s); // ended by that policy

// The cursor has what there was. It walks with the others; when all is finished, the end.
void channel_cursor_catch_up(struct channel_cursor *c);
void channel_cursor_fall_behind(struct channel_cursor *c);
void channel_subscriber_end(struct channel_subscriber *s, int64_t retry);
void channel_subscriber_abort(struct channel_subscriber *s);

void channel_subscriber_free(struct channel_subscriber *s);
void channel_subscriber_watch(struct channel_subscriber *s); // counts it, and hears of its end
void channel_write_retry(struct channel_subscriber *s, int64_t retry); // -1: none

// channel_subscribe.c: where a cursor begins, under the lock and after the trim. `has_foreign`: a
// part of the client's id belongs to none of its channels.
void channel_cursor_place(struct channel_cursor *c, const struct channel_terms *terms,
                          bool has_foreign);

// channel_member.c: a cursor takes part, or no longer does (NULL is harmless). NULL when there is
// no memory.
struct channel_member *channel_join(struct channel *ch, struct slice id, struct slice info);
void channel_leave(struct channel *ch, struct channel_member *member);

void channel_notes_free(struct list *notes);

#endif
