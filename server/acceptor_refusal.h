// acceptor_refusal: connections that are refused with a short 503. A refused descriptor is kept
// open for a moment, because a reset would take the answer from a client that has sent its request.
#ifndef PHOTON_ACCEPTOR_REFUSAL_H
#define PHOTON_ACCEPTOR_REFUSAL_H

#include "wire/timer.h"

enum { REFUSALS = 64 };

struct refusals {
    int fds[REFUSALS]; // a ring
    unsigned first, count;
    struct timer timer;
};

// Answers the connected, non-blocking descriptor and takes it over.
void refusals_add(struct refusals *r, struct loop *loop, int fd);

// Closes all.
void refusals_reset(struct refusals *r);

#endif
