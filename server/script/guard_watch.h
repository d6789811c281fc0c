// guard_watch: the watchdog thread. It looks at every guarded thread and signals those whose slice
// is over its budget: guard's signal handler does the rest. For guard alone.
#ifndef PHOTON_SCRIPT_GUARD_WATCH_H
#define PHOTON_SCRIPT_GUARD_WATCH_H

#include "script/guard.h"

// Starts and ends the thread. False when it cannot be started.
bool guard_watch_start(void);
void guard_watch_stop(void);

// Between these two the guard's thread is alive and may be signalled.
void guard_watch_add(struct guard *g);
void guard_watch_remove(struct guard *g);

// The signal that is sent.
int guard_watch_signal(void);

#endif
