#include "control_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

bool control_folder(unsigned index, char to[CONTROL_PATH])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool has_runtime = runtime && runtime[0] == '/';
    if (index == 0 && has_runtime)
        return snprintf(to, CONTROL_PATH, "%s/photon", runtime) < CONTROL_PATH;
    if (index > (has_runtime ? 1 : 0)) return false;
    snprintf(to, CONTROL_PATH, "/tmp/photon-%u", (unsigned)getuid());
    return true;
}

// In /tmp somebody else may have made the folder first.
bool control_is_ours(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool control_make_folder(char to[CONTROL_PATH])
{
    for (unsigned i = 0; control_folder(i, to); i++) {
        if (mkdir(to, 0700) != 0 && errno != EEXIST) continue;
        if (control_is_ours(to)) return true;
    }
    return false;
}

// A socket, not yet connected, and the address of a path. -1: no descriptor, or too long a path.
static int control_socket(const char *path, int flags, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(name->sun_path)) return -1;
    strcpy(name->sun_path, path);
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

static bool control_reach(int fd, const struct sockaddr_un *name)
{
    if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) == 0) return true;
    if (errno == ECONNREFUSED) unlink(name->sun_path);
    return false;
}

// Does not block: a server that is stuck must not hold whoever asks. Its full queue is an answer.
bool control_is_served(const char *path)
{
    struct sockaddr_un name;
    int fd = control_socket(path, SOCK_NONBLOCK, &name);
    if (fd < 0) return false;
    bool is_served = control_reach(fd, &name) || errno == EAGAIN;
    close(fd);
    return is_served;
}

void control_sweep(const char *folder)
{
    char path[2 * CONTROL_PATH];
    struct dirent *entry;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        control_is_served(path);
    }
    if (dir) closedir(dir);
}

// Absolute, without empty parts and dots, but with links as they are.
static void control_name_plainly(const char *file, char to[PATH_MAX])
{
    size_t len = 0;
    if (file[0] != '/' && getcwd(to, PATH_MAX) && to[1]) len = strlen(to);
    while (*file) {
        size_t part = strcspn(file, "/");
        bool counts = part && !(part == 1 && file[0] == '.');
        if (counts && len + part + 2 <= PATH_MAX)
            len += (size_t)snprintf(to + len, PATH_MAX - len, "/%.*s", (int)part, file);
        file += part + (file[part] == '/');
    }
    to[len] = '\0';
}

static uint64_t control_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); // FNV-1a
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

bool control_key(const char *app, unsigned index, char key[CONTROL_KEY])
{
    char file[PATH_MAX + 16], named[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(app);
    bool is_file = len > 4 && strcmp(app + len - 4, ".lua") == 0;
    snprintf(file, sizeof(file), is_file ? "%.4096s" : "%.4096s/app.lua", app);
    control_name_plainly(file, named);
    bool is_there = realpath(file, real) != NULL;
    if (index > 1 || (index == 1 && (!is_there || strcmp(named, real) == 0))) return false;
    const char *path = index == 0 && is_there ? real : named;
    snprintf(key, CONTROL_KEY, "%016llx", (unsigned long long)control_hash(path));
    return true;
}

int control_connect(const char *path)
{
    struct sockaddr_un name;
    int fd = control_socket(path, 0, &name);
    if (fd < 0 || control_reach(fd, &name)) return fd;
    close(fd);
    return -1;
}
