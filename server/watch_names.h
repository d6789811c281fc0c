// watch_names: the paths of the files that an app has loaded, and which names of files count at
// all.
#ifndef PHOTON_WATCH_NAMES_H
#define PHOTON_WATCH_NAMES_H

#include <stdbool.h>

struct watch_names {
    char **paths;
    unsigned count, cap;
};

// Adds the real path. False when there is no such file or no memory.
bool watch_names_add(struct watch_names *n, const char *path);
bool watch_names_have(const struct watch_names *n, const char *path);
void watch_names_reset(struct watch_names *n);

// True when one of the files is not there (now).
bool watch_names_lack(const struct watch_names *n);

// Files that editors and databases make in passing do not count: hidden ones, swap and backup
// files, logs, locks, pid files, databases.
bool watch_names_is_source(const char *name);

// Folders that are not entered: hidden ones, node_modules.
bool watch_names_is_entered(const char *name);

#endif
