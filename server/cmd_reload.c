#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "cmd.h"
#include "control_path.h"

// What the servers that were found have answered.
struct reload_tally {
    unsigned asked, failed;
};

static bool reload_talk(int fd, struct buf *answer)
{
    ssize_t len = write(fd, "reload\n", 7);
    while (len > 0) {
        char *to = buf_reserve(answer, 4096);
        if (!to) return false;
        do len = read(fd, to, 4096);
        while (len < 0 && errno == EINTR);
        if (len > 0) answer->len += (size_t)len;
    }
    return len == 0;
}

static void reload_report(struct reload_tally *tally, struct slice answer, const char *path)
{
    if (answer.len && answer.ptr[answer.len - 1] == '\n') answer.len--;
    if (answer.len > 3 && memcmp(answer.ptr, "ok ", 3) == 0) {
        printf("photon: %.*s\n", (int)answer.len - 3, answer.ptr + 3);
        return;
    }
    tally->failed++;
    if (answer.len > 7 && memcmp(answer.ptr, "failed ", 7) == 0)
        cmd_fail(CMD_FAILED, "reload failed: %.*s", (int)answer.len - 7, answer.ptr + 7);
    else
        cmd_fail(CMD_FAILED, "reload failed: the server behind %s ended before it answered", path);
}

static void reload_ask_server(struct reload_tally *tally, const char *path)
{
    struct buf answer = {0};
    int fd = control_connect(path);
    if (fd < 0) return;
    tally->asked++;
    if (!reload_talk(fd, &answer)) answer.len = 0;
    reload_report(tally, buf_slice(&answer), path);
    buf_reset(&answer);
    close(fd);
}

// Whether a server is asked by its app's first key already.
static bool reload_is_double(const char *folder, const char *first, const char *socket)
{
    char path[2 * CONTROL_PATH];
    snprintf(path, sizeof(path), "%s/%s%s", folder, first, socket + CONTROL_KEY - 1);
    return access(path, F_OK) == 0;
}

static void reload_ask_in_folder(struct reload_tally *tally, const char *folder, const char *key,
                                 const char *first)
{
    char path[2 * CONTROL_PATH];
    struct dirent *entry;
    DIR *dir = control_is_ours(folder) ? opendir(folder) : NULL;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, key, CONTROL_KEY - 1) != 0) continue;
        if (first && reload_is_double(folder, first, entry->d_name)) continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        reload_ask_server(tally, path);
    }
    if (dir) closedir(dir);
}

static void reload_ask_by_app(struct reload_tally *tally, const char *app)
{
    char folder[CONTROL_PATH], keys[CONTROL_KEYS][CONTROL_KEY];
    for (unsigned k = 0; k < CONTROL_KEYS && control_key(app, k, keys[k]); k++) {
        for (unsigned i = 0; control_folder(i, folder); i++)
            reload_ask_in_folder(tally, folder, keys[k], k ? keys[0] : NULL);
    }
}

static int reload_run(int argc, char **argv)
{
    struct cmd_args args = {0};
    struct reload_tally tally = {0};
    char path[CONTROL_PATH];
    if (!cmd_read(&args, &cmd_reload, argc, argv)) return args.code;
    const struct config *c = &args.config;
    if (c->has_pid_file) {
        snprintf(path, sizeof(path), "%s.sock", c->pid_file);
        reload_ask_server(&tally, path);
    } else {
        reload_ask_by_app(&tally, c->app);
    }
    if (tally.asked > 0) return tally.failed ? CMD_FAILED : CMD_OK;
    if (c->has_pid_file)
        return cmd_fail(CMD_FAILED, "no server answers at %s; is it running with --pid %s?", path,
                        c->pid_file);
    return cmd_fail(CMD_FAILED, "no server of %s is running; start it with photon serve %s", c->app,
                    c->app);
}

const struct command cmd_reload = {
    .name = "reload",
    .summary = "reload the app of a running server",
    .help =
        "usage: photon reload [APP | --pid FILE]\n"
        "\n"
        "Asks every running server of the app (of this user), or the one that was started with\n"
        "--pid FILE, to load the app anew, and waits until it serves the new code. When the new\n"
        "code cannot be loaded the old one serves on; the error is shown and the exit code is 1.\n",
    .run = reload_run,
};
