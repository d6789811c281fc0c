// service_stop: how the boss follows its threads, and how a service ends. For service.c alone.
#ifndef PHOTON_SERVICE_STOP_H
#define PHOTON_SERVICE_STOP_H

#include "service.h"

// Something has changed in a worker or the loader.
void service_on_wake(struct loop *loop);

// All workers have started well (service.c).
void service_serve(struct service *s);

// The first time: drains. The second: stops at once.
void service_stop(struct service *s);

// The start has failed, or cannot go on.
void service_give_up(struct service *s, const char *why);

// Ends all threads and frees everything, whatever has been opened.
void service_close(struct service *s);

#endif
