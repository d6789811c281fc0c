// control_path: where the control sockets of servers are, for the server and for `photon reload`.
#ifndef PHOTON_CONTROL_PATH_H
#define PHOTON_CONTROL_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { CONTROL_PATH = PATH_MAX + 32, CONTROL_FOLDERS = 2, CONTROL_KEYS = 2, CONTROL_KEY = 17 };

// The folders in which a user's sockets may be: $XDG_RUNTIME_DIR/photon, /tmp/photon-UID. False
// when there is no number `index`.
bool control_folder(unsigned index, char to[CONTROL_PATH]);

// The first of them that exists, or can be made, and is ours. False when there is none.
bool control_make_folder(char to[CONTROL_PATH]);

// Whether a server listens on the unix socket; a stale one is removed.
bool control_is_served(const char *path);

// Removes the sockets that killed servers have left in it.
void control_sweep(const char *folder);

// A real folder of this user, to which nobody else can write.
bool control_is_ours(const char *folder);

// 16 hex digits and NUL for an app as given to `photon serve`. The first key is made of its real
// path: the same for a directory, its app.lua, and links to them. The second is made of its path
// with links as they are, so that the app is found when they have been set to another place. False
// when there is no number `index`; a path without links has but one.
bool control_key(const char *app, unsigned index, char key[CONTROL_KEY]);

// Connects to the unix socket (blocking, close-on-exec). -1 when nobody answers; a stale socket is
// removed.
int control_connect(const char *path);

#endif
