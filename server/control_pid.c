// The pid file, and the socket beside it.
#include "control_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// So that the socket's path is not too long.
enum { CONTROL_MOST_PATH = 107 - sizeof(".sock") + 1 };

static bool control_refuse_pid(const char *file, int code, char *error, size_t size)
{
    const char *advice = "";
    if (code == ENOENT || code == ENOTDIR) advice = "; make its folder, or name another --pid FILE";
    if (code == EISDIR) advice = "; --pid takes the path of a file";
    if (code == ENAMETOOLONG)
        advice = " for its control socket, FILE.sock; name a shorter --pid FILE";
    if (code == EACCES || code == EPERM || code == EROFS)
        advice = "; name a --pid FILE in a folder that may be written to";
    snprintf(error, size, "cannot write the pid file %s: %s%s", file, strerror(code), advice);
    return false;
}

// What would come out as an error of the socket beside it.
static int control_find_obstacle(const char *file)
{
    char folder[CONTROL_PATH];
    struct stat there;
    if (strlen(file) > CONTROL_MOST_PATH) return ENAMETOOLONG;
    if (stat(file, &there) == 0 && S_ISDIR(there.st_mode)) return EISDIR;
    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = '\0';
    return access(slash ? folder : ".", W_OK | X_OK) == 0 ? 0 : errno;
}

// Readers see the old file or the new one, never half of it.
static bool control_write_pid(const char *file, char *error, size_t size)
{
    char next[CONTROL_PATH + 8];
    snprintf(next, sizeof(next), "%s.new", file);
    FILE *f = fopen(next, "we");
    bool is_written = f && fprintf(f, "%ld\n", (long)getpid()) > 0;
    if (f && fclose(f) != 0) is_written = false;
    if (is_written && rename(next, file) == 0) return true;
    control_refuse_pid(file, errno, error, size);
    unlink(next);
    return false;
}

bool control_take_pid_file(struct control *c, const char *file, char *error, size_t size)
{
    char path[CONTROL_PATH];
    int obstacle = control_find_obstacle(file);
    if (obstacle) return control_refuse_pid(file, obstacle, error, size);
    snprintf(path, sizeof(path), "%s.sock", file);
    if (control_is_served(path)) {
        snprintf(error, size,
                 "the pid file %s belongs to a server that runs; stop that one, or "
                 "name another --pid FILE",
                 file);
        return false;
    }
    if (!control_listen(c, path, error, size)) return false;
    snprintf(c->pid_file, sizeof(c->pid_file), "%s", file);
    return control_write_pid(file, error, size);
}

void control_remove_pid(const char *file)
{
    char text[32] = "";
    FILE *f = fopen(file, "re");
    if (!f) return;
    bool is_ours = fgets(text, sizeof(text), f) && strtol(text, NULL, 10) == (long)getpid();
    fclose(f);
    if (is_ours) unlink(file);
}
