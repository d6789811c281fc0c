// listener: a listening socket. Binding and accepting; who accepts (a worker's loop or the acceptor
// thread) is the caller's business.
#ifndef PHOTON_WIRE_LISTENER_H
#define PHOTON_WIRE_LISTENER_H

#include "wire/conn.h"

struct listener {
    int fd;
    char url[160];  // "http://127.0.0.1:8080" or "unix:/path.sock", with the real port
    char path[108]; // of a unix socket, removed by listener_close; empty else, or when inherited
    bool is_unix;
    uv_poll_t *poll; // when watched; freed by its close callback
    struct loop *loop;
    void (*on_readable)(struct listener *l);
    void *owner;
};

// What is wrong with an address as people write them, NULL: nothing. Whether it can be listened on
// only listener_bind finds out.
const char *listener_check_address(struct slice address);

// Binds and listens on `address`: "host:port", ":port", "[::1]:port", "unix:/path.sock". Sets
// SO_REUSEADDR, TCP_NODELAY, TCP_NOTSENT_LOWAT 16 KiB and TCP_USER_TIMEOUT = write_timeout (which
// accepted sockets inherit), close-on-exec and non-blocking. A stale unix socket (nobody answers)
// is replaced, a live one is not. False with one line in `error` that says what, where, what to do.
bool listener_bind(struct listener *l, struct slice address, uint32_t write_timeout, char *error,
                   size_t size);

// Takes over an inherited descriptor (LISTEN_FDS). False when it is not a listening stream socket.
bool listener_adopt(struct listener *l, int fd, char *error, size_t size);

// One connection: fills in the peer (an IPv4 address mapped into IPv6 becomes IPv4), returns its
// non-blocking, close-on-exec descriptor, -1 when none waits, -2 at an error (errno says which:
// EMFILE and the like).
int listener_accept(struct listener *l, struct peer *peer);

// Calls on_readable on the loop whenever connections wait; stop is harmless when not watched.
bool listener_watch(struct listener *l, struct loop *loop, void (*on_readable)(struct listener *l));
void listener_unwatch(struct listener *l);

void listener_close(struct listener *l);

// Relieves EMFILE: gives up *spare, a descriptor kept for it, accepts one connection and closes it,
// so that an accept loop does not spin on a queue it cannot take from; then reserves *spare again.
// *spare is -1 at first; a first call only reserves it. True when a connection was shed.
bool listener_shed(struct listener *l, int *spare);

#endif
