// http1: HTTP/1.1 over a conn: drives one exchange after the other, in order.
#ifndef PHOTON_HTTP_HTTP1_H
#define PHOTON_HTTP_HTTP1_H

#include "http/exchange.h"

// What all connections of a worker share. Embedded in the worker; zeroed, then filled in.
struct http1_host {
    struct loop *loop;
    const struct limits *limits; // may be replaced by a reload; read at each request
    struct handler *handler;     // who serves
    struct header *scratch;      // header array for heads that are being read (http1_host_open)
    uint32_t scratch_cap;
    struct list conns; // all http1 connections
    uint64_t serial;
    void *spare; // a few free exchanges
    unsigned spare_count;
    bool is_draining; // connections close after their current reply
};

bool http1_host_open(struct http1_host *host, struct loop *loop, const struct limits *limits,
                     struct handler *handler);

// New limits after a reload; for connections accepted and requests begun from now on. The old
// limits must live as long as connections accepted under them. False when there is no memory.
bool http1_host_set_limits(struct http1_host *host, const struct limits *limits);

// Begins to drain: idle connections close now, busy ones after their reply, which says so.
void http1_host_drain(struct http1_host *host);

// True when every connection that is left has got everything, and we only wait for its peer to
// close.
bool http1_host_is_done(const struct http1_host *host);

// Closes every connection at once (their on_close comes on later turns).
void http1_host_abort(struct http1_host *host);

// Frees what is kept; all connections are gone.
void http1_host_close(struct http1_host *host);

// Serves a connected descriptor. False when there is no memory (it is closed then).
bool http1_accept(struct http1_host *host, int fd, const struct peer *peer);

#endif
