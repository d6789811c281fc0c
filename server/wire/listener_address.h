// listener_address: addresses as people write them, for listener.c alone.
#ifndef PHOTON_WIRE_LISTENER_ADDRESS_H
#define PHOTON_WIRE_LISTENER_ADDRESS_H

#include <netdb.h>
#include <sys/socket.h>
#include "wire/conn.h"

enum { LISTENER_HOST_ROOM = 256, LISTENER_PORT_ROOM = 6, LISTENER_PATH_ROOM = 108 };

struct listener_address {
    char path[LISTENER_PATH_ROOM]; // of a unix socket; empty else
    char host[LISTENER_HOST_ROOM]; // empty: every interface
    char port[LISTENER_PORT_ROOM];
};

// Reads "host:port", ":port", "[::1]:port", "unix:/path.sock". NULL, or what is wrong with it.
const char *listener_address_read(struct listener_address *to, struct slice text);

// The addresses that host and port stand for, in the order in which they are to be tried; the
// caller frees them with freeaddrinfo. 0 or the error of getaddrinfo.
int listener_address_resolve(const struct listener_address *address, struct addrinfo **found);

// "http://127.0.0.1:8080", "http://[::1]:8080" or "unix:/path.sock" of a bound descriptor. False
// when it has no such name.
bool listener_address_url(int fd, char *url, size_t size);

void listener_address_peer(struct peer *to, const struct sockaddr_storage *from);

#endif
