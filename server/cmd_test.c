#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include "cmd.h"
#include "script/testing.h"

// PHOTON tells specs that start programs which one they belong to.
static void test_tell_program(void)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len <= 0) return;
    path[len] = '\0';
    setenv("PHOTON", path, 0);
}

// Specs run in one VM, which counts into counters of its own.
static int test_run(int argc, char **argv)
{
    static struct server server;
    static struct counters counters;
    static struct config config;
    char error[512];
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        cmd_print_help(&cmd_test);
        return CMD_OK;
    }
    if (!config_init(&config, error, sizeof(error))) return cmd_fail(CMD_USAGE, "%s", error);
    config.app = ".";
    test_tell_program();
    server = (struct server){
        .config = &config,
        .worker_count = 1,
        .generation = 1,
        .started = uv_hrtime(),
        .counters = {&counters},
        .metrics = metrics_new(1),
        .channels = channel_registry_new(config.limits.max_channels),
    };
    if (!server.metrics || !server.channels) return cmd_fail(CMD_FAILED, "not enough memory");
    int code = testing_run(&server, argc - 1, argv + 1);
    metrics_free(server.metrics);
    channel_registry_free(server.channels);
    return code;
}

const struct command cmd_test = {
    .name = "test",
    .summary = "run busted specs inside the server's runtime",
    .help =
        "usage: photon test [BUSTED OPTIONS] [SPEC]...\n"
        "\n"
        "Runs busted on the specs (files or folders; spec without any), each test as a task that\n"
        "may wait. require \"photon.test\" gives clients for apps. Exit code 0 when all pass,\n"
        "1 when not, 2 for wrong usage.\n"
        "The options are those of busted: --filter, --tags, --shuffle, --repeat, --output …\n"
        "(busted --help lists them). Specs find the path of this program in $PHOTON.\n",
    .run = test_run,
    .runs_lua = true,
};
