// testing: `photon test`: busted in a VM of its own, and what photon.test needs of C: apps that are
// served in that VM without a socket, clients for them, the clock, and the state of the whole, so
// that one spec leaves nothing behind for the next.
#ifndef PHOTON_SCRIPT_TESTING_H
#define PHOTON_SCRIPT_TESTING_H

#include "serve/server.h"

// Runs busted with the given arguments (options and specs) on a loop of its own, which counts into
// server->counters[0]. Returns the exit code: 0 when all specs have passed.
int testing_run(struct server *server, int argc, char **argv);

#endif
