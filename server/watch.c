#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"

enum {
    WATCH_QUIET_MS = 100,    // of silence before a reload
    WATCH_LONGEST_MS = 2000, // a reload comes in the end, however much goes on
    WATCH_MISSING_MS = 2000, // how long a missing file is waited for
    WATCH_DEPTH = 32,
    WATCH_EVENTS = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                   IN_MODIFY | IN_MOVE_SELF,
    WATCH_ARRIVALS = IN_CREATE | IN_MOVED_TO,
};

static void watch_on_quiet(struct timer *timer);
static void watch_read(struct watch *w);
static bool watch_add_app(struct watch *w);

static void watch_stir(struct watch *w)
{
    uint64_t now = w->loop->now;
    if (!timer_is_running(&w->quiet)) w->first = now;
    uint64_t wait = WATCH_QUIET_MS;
    if (now - w->first + wait > WATCH_LONGEST_MS)
        wait = now - w->first < WATCH_LONGEST_MS ? WATCH_LONGEST_MS - (now - w->first) : 1;
    timer_start(w->loop, &w->quiet, wait, watch_on_quiet);
}

// Where the loop was held up, the silence is over with changes unread: they belong to this reload.
static bool watch_has_more(struct watch *w)
{
    uint64_t first = w->first;
    if (w->loop->now - first >= WATCH_LONGEST_MS) return false;
    watch_read(w);
    w->first = first;
    return timer_is_running(&w->quiet);
}

static void watch_on_done(struct reload_ask *ask, bool is_done, const char *message)
{
    (void)is_done, (void)message; // the reload has logged it
    list_entry(ask, struct watch, ask)->is_asking = false;
}

static void watch_on_quiet(struct timer *timer)
{
    struct watch *w = list_entry(timer, struct watch, quiet);
    uint64_t now = w->loop->now;
    if (watch_has_more(w)) return;
    bool is_missing = watch_names_lack(&w->loaded);
    if (!is_missing)
        w->missing_since = 0;
    else if (w->missing_since == 0)
        w->missing_since = now;
    if (is_missing && now - w->missing_since < WATCH_MISSING_MS) {
        timer_start(w->loop, timer, WATCH_QUIET_MS, watch_on_quiet);
        return;
    }
    if (w->is_asking) { // one that is begun now would be another
        timer_start(w->loop, timer, WATCH_QUIET_MS, watch_on_quiet);
        return;
    }
    w->is_asking = true;
    watch_add_app(w); // another folder may have taken its place
    reload_begin(w->reload, &w->ask);
}

static void watch_complain(struct watch *w, const char *path, int code)
{
    if (w->is_full || code == ENOENT || code == ENOTDIR) return;
    w->is_full = code == ENOSPC;
    log_write(LOG_WARN, "cannot watch %s: %s%s", path, strerror(code),
              w->is_full ? "; raise fs.inotify.max_user_watches" : "");
}

// The folder's entry; a folder that is watched already keeps its number.
static struct watch_folder *watch_add_events(struct watch *w, const char *path, bool is_tree,
                                             uint32_t events)
{
    int wd = inotify_add_watch(w->fd, path, events | IN_ONLYDIR | IN_MASK_ADD);
    if (wd < 0) {
        watch_complain(w, path, errno);
        return NULL;
    }
    for (unsigned i = 0; i < w->count; i++) {
        if (w->folders[i].wd != wd) continue;
        w->folders[i].is_tree |= is_tree;
        return &w->folders[i];
    }
    if (w->count == w->cap) {
        unsigned cap = w->cap ? 2 * w->cap : 16;
        struct watch_folder *folders = mem_realloc(w->folders, cap * sizeof(*folders));
        if (!folders) return NULL;
        w->folders = folders;
        w->cap = cap;
    }
    char *copy = mem_alloc(strlen(path) + 1);
    if (!copy) return NULL;
    w->folders[w->count] = (struct watch_folder){strcpy(copy, path), wd, is_tree};
    return &w->folders[w->count++];
}

static struct watch_folder *watch_add(struct watch *w, const char *path, bool is_tree)
{
    return watch_add_events(w, path, is_tree, WATCH_EVENTS);
}

// Links are not followed: they may lead in circles.
static void watch_add_tree(struct watch *w, const char *path, int depth)
{
    struct dirent *entry;
    char below[PATH_MAX];
    if (depth == WATCH_DEPTH || !watch_add(w, path, true)) return;
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_type != DT_DIR || !watch_names_is_entered(entry->d_name)) continue;
        if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) < (int)sizeof(below))
            watch_add_tree(w, below, depth + 1);
    }
    if (dir) closedir(dir);
}

// Whether the file behind an entry of /proc/self/fd is that one, and open for writing, which the
// mode of the entry tells. Other threads' descriptors are not touched.
static bool watch_is_written(int folder, const char *entry, const struct stat *file)
{
    struct stat link, own;
    return fstatat(folder, entry, &own, 0) == 0 && own.st_dev == file->st_dev &&
           own.st_ino == file->st_ino && fstatat(folder, entry, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
           (link.st_mode & S_IWUSR);
}

// What the server itself has open for writing in the folder: its output, its log, the logs of
// channels. A reload that is logged would ask for the next one.
static bool watch_is_own(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0) return false;
    DIR *dir = opendir("/proc/self/fd");
    bool is_own = false;
    for (struct dirent *entry; dir && !is_own && (entry = readdir(dir)) != NULL;)
        is_own = entry->d_name[0] != '.' && watch_is_written(dirfd(dir), entry->d_name, &file);
    if (dir) closedir(dir);
    return is_own;
}

static void watch_take_folder(struct watch *w, const struct watch_folder *parent, const char *path,
                              const struct inotify_event *event)
{
    bool is_new = event->mask & WATCH_ARRIVALS;
    bool is_app = is_new && strcmp(path, w->root) == 0;
    if (is_app)
        watch_add_app(w);
    else if (!parent->is_tree || !w->is_tree || !watch_names_is_entered(event->name))
        return;
    else if (is_new)
        watch_add_tree(w, path, 0);
    watch_stir(w);
}

static void watch_take_event(struct watch *w, const struct inotify_event *event)
{
    char path[PATH_MAX];
    unsigned i = 0;
    if (event->mask & IN_Q_OVERFLOW) watch_stir(w);
    while (i < w->count && w->folders[i].wd != event->wd) i++;
    if (i == w->count) return;
    struct watch_folder *folder = &w->folders[i];
    if (event->mask & IN_IGNORED) { // the folder is gone
        mem_free(folder->path);
        *folder = w->folders[--w->count];
        return;
    }
    if (event->mask & IN_MOVE_SELF) watch_stir(w);
    if (event->len == 0) return;
    bool is_top = strcmp(folder->path, "/") == 0;
    snprintf(path, sizeof(path), "%s/%s", is_top ? "" : folder->path, event->name);
    if (event->mask & IN_ISDIR) {
        watch_take_folder(w, folder, path, event);
        return;
    }
    bool counts = folder->is_tree && watch_names_is_source(event->name);
    if (counts && !w->is_tree) counts = strstr(event->name, ".lua") != NULL;
    if (watch_names_have(&w->loaded, path) || (counts && !watch_is_own(path))) watch_stir(w);
}

static void watch_read(struct watch *w)
{
    char bytes[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len;
    while ((len = read(w->fd, bytes, sizeof(bytes))) > 0) {
        for (char *at = bytes; at < bytes + len;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            at += sizeof(*event) + event->len;
            watch_take_event(w, event);
        }
    }
}

static void watch_on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = poll->data;
    (void)status, (void)events;
    loop_refresh(w->loop);
    watch_read(w);
}

static void watch_on_poll_closed(uv_handle_t *poll)
{
    mem_free(poll);
}

static bool watch_begin_poll(struct watch *w)
{
    uv_poll_t *poll = mem_zalloc(sizeof(*poll));
    if (!poll || uv_poll_init(&w->loop->uv, poll, w->fd) != 0) {
        mem_free(poll);
        return false;
    }
    w->poll = poll;
    poll->data = w;
    return uv_poll_start(poll, UV_READABLE, watch_on_poll) == 0;
}

// A folder that is deleted, or moved away, is seen when it comes again.
static void watch_add_parent(struct watch *w)
{
    char parent[PATH_MAX];
    char *slash = strrchr(strcpy(parent, w->root), '/');
    if (!slash) return;
    slash[slash == parent] = '\0';
    watch_add_events(w, parent, false, WATCH_ARRIVALS);
}

// A directory, or app.lua in it: the whole tree counts. Another file: its folder alone.
static bool watch_add_app(struct watch *w)
{
    char real[PATH_MAX];
    if (!realpath(w->app, real)) return false;
    size_t len = strlen(real);
    char *slash = strrchr(real, '/');
    bool is_file = len > 4 && strcmp(real + len - 4, ".lua") == 0;
    w->is_tree = !is_file || strcmp(slash, "/app.lua") == 0;
    if (is_file) slash[slash == real] = '\0';
    strcpy(w->root, real);
    if (w->is_tree)
        watch_add_tree(w, real, 0);
    else
        watch_add(w, real, true);
    watch_add_parent(w);
    return w->count > 0;
}

bool watch_open(struct watch *w, struct loop *loop, struct reload *reload, const char *app,
                char *error, size_t size)
{
    *w = (struct watch){.loop = loop, .reload = reload, .ask.on_done = watch_on_done, .app = app};
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd >= 0 && watch_begin_poll(w) && watch_add_app(w)) return true;
    snprintf(error, size, "cannot watch %s for changes: %s", app, strerror(errno));
    watch_close(w);
    return false;
}

static void watch_take_file(const char *path, void *data)
{
    struct watch *w = data;
    char folder[PATH_MAX];
    if (!watch_names_add(&w->loaded, path) || !realpath(path, folder)) return;
    char *slash = strrchr(folder, '/');
    if (slash > folder) *slash = '\0';
    watch_add(w, folder, false);
}

void watch_take_files(struct watch *w, const struct generation *g)
{
    if (!w->loop) return;
    watch_names_reset(&w->loaded);
    app_each_file(g, watch_take_file, w);
}

void watch_close(struct watch *w)
{
    if (!w->loop) return;
    timer_stop(&w->quiet);
    list_remove(&w->ask.node);
    if (w->poll) uv_close((uv_handle_t *)w->poll, watch_on_poll_closed);
    if (w->fd >= 0) close(w->fd);
    for (unsigned i = 0; i < w->count; i++) mem_free(w->folders[i].path);
    mem_free(w->folders);
    watch_names_reset(&w->loaded);
    *w = (struct watch){0};
}
