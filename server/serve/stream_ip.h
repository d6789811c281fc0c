// stream_ip: how many streams each client address has open, for max_streams_per_ip; one count for
// the whole process. An IPv6 client is its /64: it has the rest of the address for the choosing.
#ifndef PHOTON_SERVE_STREAM_IP_H
#define PHOTON_SERVE_STREAM_IP_H

#include "http/exchange.h"

// Counts the exchange as a stream of the address (IPv4 as ::ffff:a.b.c.d) until it is over. False,
// and 429 (503: no memory) has been answered, when the address has as many as it may. Any worker.
bool stream_ip_enter(struct exchange *x, const uint8_t ip[16]);

#endif
