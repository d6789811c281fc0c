// Loading without serving.
#include <string.h>
#include "cmd.h"
#include "script/guard.h"

enum { CMD_VMS = 2 }; // they tell whether all workers would register the same routes

static struct server cmd_server;
static struct counters cmd_counters[CMD_VMS];

static void cmd_warn(const char *line)
{
    cmd_fail(CMD_OK, "warning: %s", line);
}

struct generation *cmd_load(struct config *config)
{
    char error[APP_ERROR];
    struct guard guard = {0};
    struct app_load load = {
        .server = &cmd_server, .path = config->app, .count = CMD_VMS, .number = 1};
    cmd_server.config = config;
    config_each_unknown(cmd_warn);
    cmd_server.worker_count = CMD_VMS;
    cmd_server.channels = channel_registry_new(config->limits.max_channels);
    for (unsigned i = 0; i < CMD_VMS; i++)
        cmd_server.counters[i] = load.counters[i] = &cmd_counters[i];
    if (!cmd_server.channels) {
        cmd_fail(CMD_FAILED, "not enough memory");
        return NULL;
    }
    if (!guard_start()) {
        cmd_fail(CMD_FAILED, "threads cannot be started: raise the limit of processes");
        return NULL;
    }
    guard_join_thread(&guard);
    struct generation *g = app_load(&load, error);
    guard_leave_thread(&guard);
    guard_stop();
    if (!g) cmd_fail(CMD_FAILED, "%s", error);
    return g;
}

void cmd_unload(struct generation *g)
{
    app_discard(g);
    channel_registry_free(cmd_server.channels);
}
