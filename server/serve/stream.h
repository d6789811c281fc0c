// stream: a producer's event stream: what a handler writes, in its own time, as the body of one
// exchange. Owns the pending bytes, the heartbeat and the end; knows no Lua.
//
// Pending bytes go to the protocol at stream_push: when the producer's slice ends, when there are
// STREAM_FULL of them, or when the oldest is STREAM_OLD old. No timer ever delays a byte.
#ifndef PHOTON_SERVE_STREAM_H
#define PHOTON_SERVE_STREAM_H

#include "http/exchange.h"
#include "serve/compress.h"
#include "text/sse.h"
#include "wire/timer.h"

enum { STREAM_FULL = 16384, STREAM_OLD_NS = 1000000 };

enum stream_type { STREAM_SSE, STREAM_NDJSON, STREAM_BYTES };

struct stream_spec {
    enum stream_type type;
    struct slice content_type; // empty: the type's own
    uint64_t heartbeat;        // ms of silence before a comment; 0: none (SSE only)
    int64_t retry;             // ms, sent first; -1: none (SSE only)
    size_t buffer;             // high-water mark in bytes
    uint64_t max_duration;     // ms; 0: none
    bool compresses;           // gzip for clients that accept it, flushed at every push
    bool reconnects;           // at a reload it is ended cleanly, so that the client comes again
};

// All streams of one worker.
struct stream_host {
    struct list streams;
    uint32_t count;
    _Atomic uint32_t *total; // of the server, against max_streams
};

struct stream {
    struct list node;
    struct stream_host *host;
    struct exchange *x; // NULL once it is over
    struct exchange_watch watch;
    struct stream_spec spec;
    struct reply reply; // the head, until it is given; in the exchange's arena
    struct buf pending;
    struct compress *compress; // NULL: the bytes leave as they are
    struct buf compressed;
    uint64_t pending_since; // uv_hrtime of the oldest pending byte
    uint64_t pending_ticks; // when the clock was last asked
    size_t pending_most;    // bytes, before stream_append leaves it to stream_send
    uint64_t last_push;     // loop->now
    struct timer heartbeat, limit;
    bool is_headed, is_ended;
    void (*on_drain)(struct stream *s); // the socket has taken everything
    void (*on_over)(struct stream *s);  // the last call; the stream is freed after it
    void *owner;
};

// The beginning of a stream on the exchange. `headers` are added to (and win over) the stream's
// own. NULL when there is no memory or max_streams is reached: the exchange has been answered then.
struct stream *stream_open(struct stream_host *host, struct exchange *x,
                           const struct stream_spec *spec, int status,
                           const struct headers *headers);

// The head of a stream's reply, in the exchange's arena. False when there is no memory.
bool stream_make_reply(struct exchange *x, const struct stream_spec *spec, int status,
                       const struct headers *headers, struct reply *reply);

// True, and 503 has been answered, when `total` streams are max_streams.
bool stream_is_refused(_Atomic uint32_t *total, struct exchange *x);

// Only the head, for HEAD requests: nothing runs.
void stream_answer_head(struct exchange *x, const struct stream_spec *spec, int status,
                        const struct headers *headers);

// Append to what is pending; false when the stream is over or there is no memory (it is then
// aborted: a record is never sent in part).
bool stream_send(struct stream *s, struct slice event, struct slice data);
bool stream_send_event(struct stream *s, const struct sse_event *e);
bool stream_write(struct stream *s, struct slice bytes);     // as it is
bool stream_write_line(struct stream *s, struct slice line); // and a newline

// stream_send without an event's name, where that is no more than adding to what is pending, as it
// mostly is in a burst; nothing is pushed. False, and nothing was done: stream_send is to be
// called.
bool stream_append(struct stream *s, struct slice data);

// Gives what is pending to the socket; the head before it.
void stream_push(struct stream *s);

// True when the peer takes less than the producer makes: over the high-water mark.
bool stream_is_full(struct stream *s);

// A clean end, with `retry` (ms, -1: none) told before it; or a broken one, that the client
// notices.
void stream_end(struct stream *s, int64_t retry);
void stream_abort(struct stream *s);

// Ends every stream of the worker cleanly, with a retry spread over `spread` ms (shutdown).
void stream_host_end_all(struct stream_host *host, uint32_t spread);

#endif
