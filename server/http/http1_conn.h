// http1_conn: what http1.c (the driver), http1_reply.c (the replies), http1_wait.c (the timers) and
// http1_host.c share; for them alone.
#ifndef PHOTON_HTTP_HTTP1_CONN_H
#define PHOTON_HTTP_HTTP1_CONN_H

#include "http/http1.h"
#include "text/http1_read.h"

enum http1_wait { // what the connection's timer stands for
    HTTP1_WAIT_NONE,
    HTTP1_WAIT_IDLE,
    HTTP1_WAIT_HEADER,
    HTTP1_WAIT_BODY,
};

struct http1 {
    struct conn *conn;
    struct http1_host *host;
    struct http1_exchange *current;
    struct list node; // host->conns
    struct http1_reader reader;
    struct timer timer;
    struct loop_turn turn; // goes on after an exchange that ended outside of on_bytes
    uint64_t since;        // when the present wait began or last made progress, loop->now
    uint8_t wait;          // enum http1_wait
    bool is_running;       // inside http1_run: no recursion
    bool is_last;          // close after the current reply
    bool is_broken;        // the rest of the input cannot be understood
    bool is_closing;
};

struct http1_exchange {
    struct exchange x; // first, so that one pointer is both
    struct http1 *h;
    struct list node;   // host->spare
    uint64_t credit;    // bytes of the request's body that may still be read
    uint64_t left;      // bytes that the announced content-length still owes
    uint64_t discarded; // request bytes read and dropped after the end of the reply
    bool is_chunked;
    bool is_bodyless; // HEAD, 204, 304: body bytes are dropped
    bool is_ended;    // the reply is complete
    bool is_aborted;
    bool has_request_end; // the whole request has been read
    bool has_continued;   // 100 was sent, or is not called for
};

extern const struct exchange_ops http1_ops;

// A stream that goes on while its peer sends no more: a browser or a client that has closed looks
// so, and nobody reads it.
static inline bool http1_is_unread(const struct http1_exchange *e)
{
    const struct conn *c = e->h->conn;
    return e->x.is_stream && !e->is_ended && (c->is_eof || c->is_hung_up);
}

// Goes on with the connection on the next turn (an exchange has ended, or wants body).
void http1_go_on(struct http1 *h);

// Closes gracefully, once.
void http1_close(struct http1 *h);

// The current exchange is over; the connection goes on or ends.
void http1_finish(struct http1 *h, enum exchange_end how);

// Answers a request that cannot be served, through an exchange of its own. False when there is no
// memory (the connection is closed then).
bool http1_refuse(struct http1 *h, const struct http1_found *found);

// Looks what the connection waits for now, and sees that its timer runs.
void http1_arm(struct http1 *h, bool has_rest);

#endif
