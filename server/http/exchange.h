// exchange: one request and its reply in time. Knows no wire format: a protocol (http1, the test
// transport) makes exchanges and implements exchange_ops; handlers and whoever must know the end
// see only this. Everything belongs to one loop's thread.
#ifndef PHOTON_HTTP_EXCHANGE_H
#define PHOTON_HTTP_EXCHANGE_H

#include "base/arena.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/payload.h"
#include "text/message.h"
#include "wire/conn.h"

struct exchange;
struct route;

enum exchange_end {
    EXCHANGE_DONE,    // the reply is complete and has been handed to the protocol
    EXCHANGE_GONE,    // the peer went away
    EXCHANGE_ABORTED, // by us: an error after the head had left
};

// Seam: exchange to protocol. Nothing leaves before flush, overflow or end.
struct exchange_ops {
    void (*head)(struct exchange *x, const struct reply *reply); // staged; borrowed for the call
    void (*body)(struct exchange *x, struct slice piece);        // borrowed for the call
    void (*body_payload)(struct exchange *x, struct payload *p); // its inner slice; shared
    // As exchange_payloads; NULL: one by one, then flush.
    size_t (*payloads)(struct exchange *x, struct payload *const *list, size_t count);
    void (*flush)(struct exchange *x);
    void (*end)(struct exchange *x);
    void (*abort)(struct exchange *x); // the reply cannot be completed: the peer must notice
    size_t (*backlog)(const struct exchange *x);
    void (*inform)(struct exchange *x, int status);    // an interim reply (1xx)
    void (*want)(struct exchange *x, uint64_t credit); // read that much more of the request's body
};

enum exchange_phase {
    EXCHANGE_OPEN,   // no head yet
    EXCHANGE_HEADED, // head given to the protocol, maybe still staged
    EXCHANGE_OVER,   // ended, aborted or gone: operations are harmless and do nothing
};

// Seam: whoever must know. Intrusive; zero members are not called. on_over is the last call.
struct exchange_watch {
    struct list node;
    void (*on_drain)(struct exchange_watch *w); // backlog has become 0
    void (*on_body)(struct exchange_watch *w);  // more of the body, or its end
    void (*on_over)(struct exchange_watch *w, enum exchange_end how);
};

struct exchange {
    const struct exchange_ops *ops;
    struct request request;
    struct loop *loop;
    const struct limits *limits;
    const struct peer *peer;
    struct arena arena;
    struct list watches;
    const struct route *route; // once routed
    struct slice *params;      // route->param_count values, decoded
    struct buf body;           // what has arrived of the request's body and was not taken
    uint64_t max_body;
    uint64_t body_received;
    uint64_t serial;  // of this process; the request id is made of it
    uint64_t started; // uv_hrtime, nanoseconds
    uint64_t bytes_out;
    int status;     // of the reply, 0 before
    int body_error; // 400, 408, 413: the body could not be read
    uint8_t phase;  // enum exchange_phase
    bool is_held;   // request bytes have been copied into the arena
    bool is_body_complete;
    bool is_head_request;                   // reply's body is dropped by the protocol
    bool is_stream;                         // counted as an open stream
    bool wants_close;                       // the connection must not be used again
    bool is_draining;                       // the server is stopping: say connection: close
    void (*on_release)(struct exchange *x); // the server's: called once when it is over
    void *generation;                       // what serves it
};

// Seam: exchange to handler.
struct handler {
    void (*serve)(struct handler *self, struct exchange *x);
};

// For protocols: before and after. exchange_over fires on_over of every watch and on_release.
void exchange_init(struct exchange *x, const struct exchange_ops *ops, struct loop *loop,
                   const struct limits *limits);
void exchange_over(struct exchange *x, enum exchange_end how);
void exchange_notify_drain(struct exchange *x);
// Adds a piece of the request's body to x->body (or its end, or its error) and tells the watches.
// False when there is no memory or x->max_body is passed (body_error is then set).
bool exchange_take_body(struct exchange *x, struct slice piece, bool is_last);
void exchange_fail_body(struct exchange *x, int status);

// Copies the request into the arena, so that it outlives the read buffer. Must be called before
// the handler waits. False when there is no memory.
bool exchange_hold(struct exchange *x);

void exchange_watch(struct exchange *x, struct exchange_watch *w);
void exchange_unwatch(struct exchange_watch *w);

// The reply. Each is harmless when the exchange is over.
void exchange_head(struct exchange *x, const struct reply *reply);
void exchange_body(struct exchange *x, struct slice piece);
void exchange_body_payload(struct exchange *x, struct payload *p);
void exchange_flush(struct exchange *x);

// Gives several payloads and flushes: one gathered write of as many as the peer takes now. Returns
// how many were taken; the last of them may still wait in part. When it is 0, or the backlog is not
// 0 afterwards, the others are to be given after on_drain; else at once. An exchange that is over
// takes them all.
size_t exchange_payloads(struct exchange *x, struct payload *const *list, size_t count);
void exchange_end(struct exchange *x);
void exchange_abort(struct exchange *x);
size_t exchange_backlog(const struct exchange *x);

// Asks for more of the request's body; it comes through on_body. An announced length over max_body
// sets body_error at once.
void exchange_want(struct exchange *x, uint64_t credit);

// A whole reply at once: head, body, end. content_length is set from the body.
void exchange_reply(struct exchange *x, struct reply *reply, struct slice body);

// An error that the server itself makes: application/problem+json (RFC 9457) with type, title,
// status, detail (may be NULL) and request_id; x-request-id. `extra` may add header fields. Aborts
// instead when the head has already been given.
void exchange_error(struct exchange *x, int status, const char *detail,
                    const struct headers *extra);

// The request id: 16 hex digits, the same each time for one exchange.
enum { EXCHANGE_ID = 16 };
void exchange_id(const struct exchange *x, char to[EXCHANGE_ID]);

#endif
