// sockets: the addresses to listen on: sockets that are inherited (LISTEN_FDS, as systemd and the
// supervisor give them), then those of the configuration.
#ifndef PHOTON_SOCKETS_H
#define PHOTON_SOCKETS_H

#include "serve/config.h"
#include "wire/listener.h"

enum { SOCKETS_INHERITED = 16, SOCKETS_MAX = CONFIG_MAX_LISTEN + SOCKETS_INHERITED };

struct sockets {
    struct listener listeners[SOCKETS_MAX];
    unsigned count;
};

// Opens them all, or none: false with one line in `error`. Inherited ones are marked close-on-exec
// and the variables are unset, so that no child takes them for its own. Without any, the default
// is 127.0.0.1:8080.
bool sockets_open(struct sockets *s, const struct config *c, uint32_t write_timeout, char *error,
                  size_t size);

void sockets_close(struct sockets *s);

#endif
