#include "watch_names.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"

bool watch_names_have(const struct watch_names *n, const char *path)
{
    for (unsigned i = 0; i < n->count; i++) {
        if (strcmp(n->paths[i], path) == 0) return true;
    }
    return false;
}

bool watch_names_add(struct watch_names *n, const char *path)
{
    char real[PATH_MAX];
    if (!realpath(path, real)) return false;
    if (watch_names_have(n, real)) return true;
    if (n->count == n->cap) {
        unsigned cap = n->cap ? 2 * n->cap : 32;
        char **paths = mem_realloc(n->paths, cap * sizeof(*paths));
        if (!paths) return false;
        n->paths = paths;
        n->cap = cap;
    }
    char *copy = mem_alloc(strlen(real) + 1);
    if (!copy) return false;
    n->paths[n->count++] = strcpy(copy, real);
    return true;
}

void watch_names_reset(struct watch_names *n)
{
    for (unsigned i = 0; i < n->count; i++) mem_free(n->paths[i]);
    mem_free(n->paths);
    *n = (struct watch_names){0};
}

bool watch_names_lack(const struct watch_names *n)
{
    for (unsigned i = 0; i < n->count; i++) {
        if (access(n->paths[i], F_OK) != 0) return true;
    }
    return false;
}

static bool watch_names_ends(const char *name, const char *end)
{
    size_t len = strlen(name), size = strlen(end);
    return len >= size && strcmp(name + len - size, end) == 0;
}

bool watch_names_is_source(const char *name)
{
    static const char *const others[] = {
        "~",        ".swp", ".swo", ".swx",     ".bak",  ".orig",        ".tmp",
        ".temp",    ".log", ".pid", ".sock",    ".lock", ".db",          ".sqlite",
        ".sqlite3", "-wal", "-shm", "-journal", ".new",  "___jb_tmp___", "___jb_old___"};
    if (name[0] == '.' || name[0] == '#') return false;
    if (strcmp(name, "4913") == 0) return false; // vim tries whether it may write
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (watch_names_ends(name, others[i])) return false;
    }
    return true;
}

bool watch_names_is_entered(const char *name)
{
    return name[0] != '.' && strcmp(name, "node_modules") != 0;
}
