// connector: opens connections to a peer, without blocking the loop. What comes of it is a
// descriptor, which conn_open takes.
#ifndef PHOTON_WIRE_CONNECTOR_H
#define PHOTON_WIRE_CONNECTOR_H

#include <sys/socket.h>
#include "wire/conn.h"

enum { CONNECTOR_ADDRESSES = 8 };

// Where to connect to: the addresses of one peer, in the order in which they are tried. One that
// worked is tried first from then on.
struct connector_target {
    struct connector_address {
        struct sockaddr_storage name;
        socklen_t len;
    } addresses[CONNECTOR_ADDRESSES];
    unsigned count, first;
};

struct connector;

// Looks up a host (a name, or an address without brackets) and a port; this blocks, so it is for a
// program's start. False with what is wrong in `error`.
bool connector_resolve(struct connector_target *to, const char *host, const char *port, char *error,
                       size_t size);

// The socket at a path; false when that is too long.
bool connector_set_path(struct connector_target *to, const char *path);

// Begins to connect. on_done is called once, on a later turn, with a descriptor that the callee
// owns (non-blocking, TCP_NODELAY), or with the negative errno of the last address that was tried
// (-ETIMEDOUT after `timeout` milliseconds for each). The connector is gone when on_done is called.
// NULL when there is no memory. The target must outlive the connector.
struct connector *connector_open(struct loop *loop, struct connector_target *target,
                                 uint32_t timeout, void (*on_done)(void *owner, int fd),
                                 void *owner);

// Gives it up; on_done is not called.
void connector_cancel(struct connector *c);

#endif
