// watch: reloads when files change (--watch): the tree of an app's directory, and the files that
// the app has loaded from elsewhere. For an app that is a single file: its directory's Lua files.
// Watches directories, never files, so that it survives every way of saving; and the directory that
// the app's stands in, so that it may be deleted, or moved, and come again. Belongs to the boss's
// thread.
//
// A reload comes when nothing has happened for a moment; and, for a while after it has gone, not as
// long as a file that the app has loaded is missing, for then somebody is about to write it anew.
#ifndef PHOTON_WATCH_H
#define PHOTON_WATCH_H

#include <limits.h>
#include "reload.h"
#include "watch_names.h"
#include "wire/timer.h"

struct watch_folder {
    char *path;
    int wd;
    bool is_tree; // every file in it counts, and its folders are watched, too
};

struct watch {
    struct loop *loop;
    struct reload *reload;
    struct reload_ask ask;
    const char *app;
    char root[PATH_MAX]; // the real path of the app's folder
    uv_poll_t *poll;     // freed by its close callback
    int fd;
    struct watch_folder *folders;
    unsigned count, cap;
    struct watch_names loaded; // files that the app has loaded
    struct timer quiet;
    uint64_t first, missing_since; // loop->now of the first event, and of a file's first absence
    bool is_tree, is_full;         // the kernel has no more watches
    bool is_asking;                // a reload that we began has not ended
};

// Begins to watch the app's directory. False with `error` when the kernel gives no watches.
bool watch_open(struct watch *w, struct loop *loop, struct reload *reload, const char *app,
                char *error, size_t size);

// A generation has been loaded: its files are watched from now on.
void watch_take_files(struct watch *w, const struct generation *g);

// Harmless on a watch that was not opened.
void watch_close(struct watch *w);

#endif
