// control: how others reach a running server: its pid file and its control socket, over which
// `photon reload` asks and is answered. Belongs to the boss's thread.
//
// The socket of `--pid FILE` is FILE.sock. Besides, every server has one that is found by its app:
// KEY-PID.sock in a folder of the user, KEY being made of the app's real path, and another one when
// its name leads through links; several servers of one app are all found. A socket nobody listens
// on is stale and is removed by whoever meets it.
//
// When descriptors run out one is left for a client; the next ones wait until there are some.
//
// A client sends one line, "reload", and reads until the end: "ok " or "failed ", then the message.
#ifndef PHOTON_CONTROL_H
#define PHOTON_CONTROL_H

#include "control_path.h"
#include "reload.h"
#include "wire/listener.h"

struct control {
    struct loop *loop;
    struct reload *reload;
    struct listener listeners[1 + CONTROL_KEYS];
    unsigned count;
    struct list clients;
    int spare;                   // a descriptor kept for a client, -1: given up
    struct timer retry;          // until descriptors may be there again
    char pid_file[CONTROL_PATH]; // empty: none written
};

// Writes the pid file and listens. Without a pid file, a server that cannot have a control socket
// runs all the same (with a warning). False with `error` when the pid file cannot be written, or
// belongs to a server that lives.
bool control_open(struct control *c, struct loop *loop, struct reload *reload,
                  const struct config *config, char *error, size_t size);

// No new clients; the sockets' files are removed.
void control_stop(struct control *c);

// Also ends the connections that are left (the loop must then run until they are closed), and
// removes the pid file if it is still ours.
void control_close(struct control *c);

#endif
