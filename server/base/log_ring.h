// log_ring: the bounded ring of the room `log` and the thread that writes it to standard error.
#ifndef PHOTON_BASE_LOG_RING_H
#define PHOTON_BASE_LOG_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

// Starts the writer; `is_json` is the form of its own notices about lost lines. Also sees to it
// that a forked child writes directly and that exit() writes out the ring. False when it cannot be.
bool log_ring_open(bool is_json);

// Writes out the ring and ends the thread; gives up when nobody reads for two seconds.
void log_ring_close(void);

// A finished line, from any thread: into the ring, lost when it is full, or written directly when
// there is no writer.
void log_ring_put(struct slice line);

// How many lines were lost since the start.
uint64_t log_ring_lost(void);

#endif
