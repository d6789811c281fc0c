// memory: exchanges without a wire, for tests inside the process: a request is given as data, the
// reply is collected as data. The second implementer of exchange_ops, beside http1, with what a
// wire would add: bytes wait until flush, end or overflow; the client may read slowly or vanish.
//
// Nothing is ever told from inside a call that the exchange made: serving, news for the client and
// the end of the exchange come on turns of the loop (or by its timers). Everything belongs to one
// loop's thread.
#ifndef PHOTON_HTTP_MEMORY_H
#define PHOTON_HTTP_MEMORY_H

#include "http/exchange.h"

// What the clients of one handler share. Embedded; memory_host_init.
struct memory_host {
    struct loop *loop;
    const struct limits *limits;
    struct handler *handler;
    struct list open; // all exchanges, until they are freed
};

struct memory {
    struct exchange x; // first, so that one pointer is both
    struct memory_host *host;
    struct list node;
    struct loop_turn turn;
    struct timer timer; // of a slow reader, and write_timeout of one that does not read
    struct arena arena; // the request, and the head of the reply
    struct peer peer;
    struct slice upload;    // what of the request's body has not been taken yet
    uint64_t credit;        // bytes of it that were asked for
    struct headers headers; // of the reply
    int64_t content_length; // -1: the reply is chunked
    uint64_t left;          // what an announced length still owes
    struct buf staged;      // not flushed yet
    struct buf queue;       // flushed, and not read by a slow client yet
    struct buf received;    // what the client has; memory_take gives it out
    double rate;            // bytes a second that the client reads; below 0: at once
    double allowance;       // of a slow reader: parts of a byte
    uint64_t read_at;       // loop->now of its last read
    bool has_head;          // the client has the head
    bool is_bodyless, is_served, is_ended, is_aborted, is_dropped, was_full, is_closed;
    // Something has come: the head, bytes, the end. Never called after memory_close. May be NULL.
    void (*on_news)(struct memory *m);
    void *owner;
};

// What the client has got of the reply.
enum memory_state {
    MEMORY_OPEN,   // more may come
    MEMORY_DONE,   // it is complete and read to its end
    MEMORY_BROKEN, // it ended before it was complete
    MEMORY_LOST,   // the client itself has gone
};

// What is sent. Everything is copied. `serial` becomes the request id: it must not be used twice.
struct memory_request {
    struct slice method, target;
    struct headers headers; // lower-case names
    struct slice body;
    bool is_chunked; // the length of the body is not announced
    struct peer peer;
    uint64_t serial;
};

void memory_host_init(struct memory_host *host, struct loop *loop, const struct limits *limits,
                      struct handler *handler);

// Ends and frees all exchanges at once. Not from inside a handler.
void memory_host_close(struct memory_host *host);

// Sends a request: the handler is called on the next turn. NULL when there is no memory.
struct memory *memory_open(struct memory_host *host, const struct memory_request *request);

// The client hangs up: on the next turn the exchange is over (unless it is already).
void memory_drop(struct memory *m);

// The same, and m is freed soon: the caller must not use it again.
void memory_close(struct memory *m);

// From now on the client reads `rate` bytes a second; 0: nothing at all, below 0: at once.
void memory_slow(struct memory *m, double rate);

enum memory_state memory_state(const struct memory *m);

// Forgets the received bytes, after the caller has copied them.
void memory_take(struct memory *m);

#endif
