// memory_private: what memory.c (requests, turns, the reading client) and memory_reply.c (the
// replies) share; for them alone.
#ifndef PHOTON_HTTP_MEMORY_PRIVATE_H
#define PHOTON_HTTP_MEMORY_PRIVATE_H

#include "http/memory.h"

extern const struct exchange_ops memory_ops;

// Goes on with the exchange on the next turn.
void memory_go_on(struct memory *m);

// Gives what is staged to the client, or to the queue of one that is slow.
void memory_send(struct memory *m);

#endif
