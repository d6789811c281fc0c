// control_private: what control.c (clients), control_listen.c and control_pid.c share; for them
// alone.
#ifndef PHOTON_CONTROL_PRIVATE_H
#define PHOTON_CONTROL_PRIVATE_H

#include "control.h"

// Serves a client; owns its descriptor from now on.
void control_accept(struct control *c, int fd, const struct peer *peer);

// Opens the descriptor that is kept for a client, unless it is there, or none is left.
void control_keep_spare(struct control *c);

// Listens on a unix socket to which only the user may connect. False with `error`.
bool control_listen(struct control *c, const char *path, char *error, size_t size);

// Listens where the app's servers are looked for; warns when that cannot be.
void control_listen_by_app(struct control *c, const char *app);

void control_stop_listening(struct control *c);

// Listens beside the pid file and writes it. False with `error`: it cannot be written, or belongs
// to a server that lives.
bool control_take_pid_file(struct control *c, const char *file, char *error, size_t size);

// Unless it is another's by now.
void control_remove_pid(const char *file);

#endif
