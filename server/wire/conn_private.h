// conn_private: what conn.c (life), conn_read.c, conn_write.c and conn_progress.c share; for them
// alone.
#ifndef PHOTON_WIRE_CONN_PRIVATE_H
#define PHOTON_WIRE_CONN_PRIVATE_H

#include "wire/conn.h"

// How many bytes the next read may take; 0: reading is stopped.
size_t conn_read_room(const struct conn *c);

// Polls for what the state calls for; costs nothing when that has not changed.
void conn_watch(struct conn *c);

// Begins the close; the first reason stays.
void conn_end(struct conn *c, enum conn_end how);

// The socket has failed with that errno.
void conn_fail(struct conn *c, int error);

// The socket is readable; the peer hung up while reading is stopped; kept bytes are due again.
void conn_read(struct conn *c);
void conn_hang_up(struct conn *c);
void conn_deliver_kept(struct conn *c);

// The socket takes bytes again.
void conn_write_on(struct conn *c);

// The socket is full; it has taken some bytes before that, or the watch is to begin. A peer that
// takes nothing for write_timeout is stalled then.
void conn_watch_progress(struct conn *c);

// From now on the kernel alone looks, also when the conn has ended: what it still holds for a peer
// that takes nothing would stay for ever.
void conn_end_watch(struct conn *c);

// Nothing is left to write: half-closes and waits for the peer's end of file.
void conn_linger(struct conn *c);

// Frees everything unsent.
void conn_drop_output(struct conn *c);

#endif
