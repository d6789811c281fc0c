// channel: broadcast logs. A channel is a ring of events under one name, shared by the whole
// process; publish formats an event once, as a payload that is framed once, and appends it with a
// sequence number. Readers are cursors (channel_worker); nothing is queued for any of them.
//
// An event's id is "<epoch>-<sequence>": the epoch is drawn at random for each life of a channel,
// so an id of another life, or of another channel, is known for what it is. A connection that
// carries several channels bears composite ids: one such id for each of its channels, joined by
// commas, in any order. A channel finds its own part by the epoch; nothing else can be read from
// it.
//
// What is kept is the larger of `replay` (events) and `backlog` (bytes); with replay_age nothing
// older than that. A channel lives while somebody holds it, and as long as it keeps events. When
// there is no room for another one, those that nobody holds go first if they keep nothing that
// replay promises; a finished one after replay_age, or CHANNEL_LINGER.
//
// Everything here may be called from every thread; locks are held for pointer work only. `now` is
// milliseconds of one monotonic clock for all callers (loop->now).
#ifndef PHOTON_SERVE_CHANNEL_H
#define PHOTON_SERVE_CHANNEL_H

#include "base/buf.h"
#include "base/payload.h"

enum {
    CHANNEL_MAX_NAME = 128,
    CHANNEL_EPOCH = 8,               // digits and lower-case letters
    CHANNEL_ID = CHANNEL_EPOCH + 21, // longest id of one channel
    CHANNEL_MAX_EVENT = 256 * 1024,  // registry->max_event's default, of event and data together
    CHANNEL_BACKLOG = 1 << 20,
    CHANNEL_LINGER = 5 * 60 * 1000, // ms that a finished channel without replay_age is kept
};

struct channel;
struct channel_registry;

enum channel_result {
    CHANNEL_OK,
    CHANNEL_BAD_NAME,  // empty, too long, or with control characters
    CHANNEL_CONFLICT,  // other options within one load
    CHANNEL_TOO_MANY,  // max_channels
    CHANNEL_NO_MEMORY, //
    CHANNEL_BAD_EVENT, // CR, LF or NUL in the event's name
    CHANNEL_TOO_LARGE, // max_event
    CHANNEL_IS_FINISHED,
    CHANNEL_IS_DURABLE,  // it has a log (channel_log)
    CHANNEL_LOG_CHANGED, // it has another log, or events that are in none
    CHANNEL_LOG_FAILED,  // its log cannot be opened, or written
    CHANNEL_LOG_BUSY,    // too much waits for the disk
};

// One line of English for users.
const char *channel_result_text(enum channel_result result);

enum channel_slow { CHANNEL_GAP, CHANNEL_CLOSE };

struct channel_options {
    uint32_t replay;        // events
    uint64_t replay_age;    // ms; 0: for ever
    uint64_t backlog;       // bytes
    enum channel_slow slow; // what becomes of a reader whose place has fallen off the tail
};

#define CHANNEL_OPTIONS_DEFAULT ((struct channel_options){.backlog = CHANNEL_BACKLOG})

// The registry of the process. NULL when there is no memory. max_channels and max_event may be
// changed at any time (a reload). channel_registry_free does nothing while a channel is still held.
struct channel_registry *channel_registry_new(uint32_t max_channels);
void channel_registry_free(struct channel_registry *r);
void channel_registry_limit(struct channel_registry *r, uint32_t max_channels, uint32_t max_event);

// What the registry counts for the metrics: living channels, and since the start the published
// events, the refusals at max_channels, and what went wrong with logs.
struct channel_totals {
    uint64_t channels, events, refused, log_errors;
};
struct channel_totals channel_registry_totals(struct channel_registry *r);

// The channel of that name, made when there is none, and held by the caller until channel_release.
// `options` NULL: whatever it has, or the defaults. `load` (from 1) numbers the load that says the
// options (a generation): other options of the same load are CHANNEL_CONFLICT, of a later one they
// win. CHANNEL_TOO_MANY may be the fault of handles that wait for a garbage collector: collect,
// then try once more.
enum channel_result channel_open(struct channel_registry *r, struct slice name,
                                 const struct channel_options *options, uint64_t load, uint64_t now,
                                 struct channel **to);
struct channel *channel_retain(struct channel *ch);
void channel_release(struct channel *ch); // NULL is harmless

struct slice channel_name(const struct channel *ch);

// Publishing -------------------------------------------------------------------------------------

// Appends an event (`event` may be empty) and has every worker with readers told. Its sequence
// comes in *sequence (which may be NULL). CHANNEL_IS_DURABLE: channel_log_publish does it.
enum channel_result channel_publish(struct channel *ch, struct slice event, struct slice data,
                                    uint64_t now, uint64_t *sequence);

// A last event (`has_event`), then the clean end: readers end when they have it all; nothing can be
// published any more. CHANNEL_IS_FINISHED the second time. A durable channel finishes when that is
// on the disk: CHANNEL_OK is then only that it is on its way, and the sequence 0.
enum channel_result channel_finish(struct channel *ch, bool has_event, struct slice event,
                                   struct slice data, uint64_t now, uint64_t *sequence);
bool channel_is_finished(struct channel *ch);

// For resumable producers: true for one caller, until channel_unclaim. A finished channel cannot be
// claimed.
bool channel_claim(struct channel *ch);
void channel_unclaim(struct channel *ch);

// Reading ----------------------------------------------------------------------------------------

// "<epoch>-<sequence>" into `to`; its length. channel_id of 0 is the id before the first event.
size_t channel_id(const struct channel *ch, uint64_t sequence, char to[CHANNEL_ID]);
uint64_t channel_last(struct channel *ch); // the newest event's sequence, 0 when there was none
size_t channel_kept(struct channel *ch);   // how many events there are to replay just now
uint32_t channel_subscribers(struct channel *ch);

// The sequence that an id (also a composite one) names; false when it is not of this channel.
bool channel_parse_id(const struct channel *ch, struct slice id, uint64_t *sequence);

// Up to `max` kept events from sequence `from` on, oldest first, each retained for the caller;
// *first is the sequence of to[0]. 0 is none: nothing newer (then *first is the next sequence to
// come). *first > from when the events between have fallen off the tail.
size_t channel_read(struct channel *ch, uint64_t from, uint64_t now, struct payload **to,
                    size_t max, uint64_t *first);

// The same for the last `max` events with sequences below `before` (0: no bound).
size_t channel_read_last(struct channel *ch, uint64_t before, uint64_t now, struct payload **to,
                         size_t max, uint64_t *first);

// What a kept event says: borrowed from the payload, `data` from `scratch` (the caller's, reusable)
// when it has several lines; CR and CRLF have become LF. False when there is no memory.
struct channel_event {
    struct slice id, event, data;
};
bool channel_parse_event(const struct payload *record, struct channel_event *to,
                         struct buf *scratch);

// Members ----------------------------------------------------------------------------------------

// Who is there: one entry for each member id, however many connections it has; `info` is that of
// its first connection. In the order in which they came, packed into `to` (emptied first), to be
// read one by one with channel_next_member: false at the end. False when there is no memory.
bool channel_members(struct channel *ch, struct buf *to);
bool channel_next_member(struct slice *rest, struct slice *id, struct slice *info);

// Ends the connections of a member, in all workers, cleanly. How many there are; they end soon.
uint32_t channel_kick(struct channel *ch, struct slice member);

#endif
