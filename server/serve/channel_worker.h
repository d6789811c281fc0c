// channel_worker: the readers of channels on one worker: its subscribers (an exchange with a cursor
// in each of its channels) and watchers. Everything here belongs to the worker's thread; publishers
// reach it through channel_worker's dirty list and one wake of the loop for each burst.
//
// A subscriber is only a cursor. Those that are up to date walk together: each gets what is new in
// one gathered write of shared bytes. One whose socket is full stays behind, holds at most one
// event in part, and goes on by itself when the socket has drained. No Lua anywhere.
#ifndef PHOTON_SERVE_CHANNEL_WORKER_H
#define PHOTON_SERVE_CHANNEL_WORKER_H

#include <pthread.h>
#include "http/exchange.h"
#include "serve/channel.h"

enum {
    CHANNEL_MAX_JOINED = 64, // channels over one connection
    CHANNEL_BATCH = 64,      // events in one gathered write
};

struct channel_worker {
    struct loop *loop;
    _Atomic uint32_t *total; // open streams of the server, against max_streams
    struct list subscribers; // all of this worker
    struct list links;       // channels that have readers here
    struct list taken;       // links out of `dirty`, to be looked at
    struct list walks;       // links with something to deliver; the first has the batch
    struct list ready;       // subscribers that go on on the next turn
    struct loop_turn turn;
    struct payload *batch[CHANNEL_BATCH];
    size_t batch_count;               // 0: none is being delivered
    uint64_t batch_first;             // sequence of batch[0]
    struct buf scratch;               // an event in another form
    const struct payload *scratch_of; // the event of the batch that `scratch` holds as a line
    uint32_t count;                   // of subscribers
    bool is_open, has_thread;         // `thread` is known
    pthread_t thread;                 // the worker's own
    _Atomic uint32_t jobs;            // that are with the thread of a channel_log
    pthread_mutex_t lock;             // of `dirty` and `done`
    struct list dirty;                // links that were told of something
    struct list done;                 // jobs that have come back
};

// Embedded. The owner calls channel_worker_run in its loop's on_wake. `total`: the server's count
// of open streams.
void channel_worker_open(struct channel_worker *w, struct loop *loop, _Atomic uint32_t *total);

// Delivers what is new. Also called by itself, on the loop's turns, for publishes of this thread.
void channel_worker_run(struct channel_worker *w);

// Ends every subscriber cleanly, with a retry spread over `spread` ms (0: none told). Harmless to
// repeat; those that have not ended yet are asked again.
void channel_worker_end_all(struct channel_worker *w, uint32_t spread);

// All exchanges are over and all watches are off.
void channel_worker_close(struct channel_worker *w);

// Subscribing ------------------------------------------------------------------------------------

enum channel_format {
    CHANNEL_SSE,
    CHANNEL_NDJSON, // {"id":…,"event":…,"data":…}: data as it is when it is JSON, else as a string
};

enum channel_from { CHANNEL_NOW, CHANNEL_START, CHANNEL_LAST };

struct channel_terms {
    enum channel_format format;
    struct slice last_event_id; // as the client says it (header or query); empty: none
    enum channel_from from;     // where it begins without one
    uint32_t last;              // CHANNEL_LAST: so many events
    uint64_t heartbeat;         // ms of silence before a comment (NDJSON: an empty line); 0: none
    int64_t retry;              // ms, told first; -1: none
    struct slice member, info;  // presence; an empty member takes no part
    const struct headers *headers; // of the reply, over the stream's own
};

// Answers the exchange with the events of the channels from where the terms say, until it is over.
// Between replay and live nothing is lost or doubled: the first thing read is already under the
// registration. All is copied or retained; the exchange must have been held (exchange_hold) or be
// in its handler. HEAD gets only the head. When every channel is finished and has nothing more for
// this client, it gets 204; over max_streams, 503; for too many channels, 500.
// False when no subscription stands (the exchange has been answered).
//
// Nothing of the subscriber belongs to a generation: whoever counts exchanges by generation lets
// this one go after the call.
bool channel_subscribe(struct channel_worker *w, struct exchange *x, struct channel *const *list,
                       size_t count, const struct channel_terms *terms);

// Watching ---------------------------------------------------------------------------------------

// Told on this worker's thread, on a turn of its own, about one channel. Intrusive; members that
// are NULL are not called. It may be removed from inside its own calls.
struct channel_watch {
    struct list node;
    struct channel_link *link;
    void (*on_news)(struct channel_watch *w); // events were published, or it was finished
    void (*on_join)(struct channel_watch *w, struct slice member, struct slice info);
    void (*on_leave)(struct channel_watch *w, struct slice member, struct slice info);
};

// Holds the channel while it watches. False when there is no memory. To wait for news without a
// race: watch first, then channel_read, then wait.
bool channel_watch(struct channel_worker *w, struct channel *ch, struct channel_watch *watch);
void channel_unwatch(struct channel_watch *watch); // harmless when it does not watch

#endif
