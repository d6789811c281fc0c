#include <stdio.h>
#include "cmd.h"

static int check_run(int argc, char **argv)
{
    struct cmd_args args = {0};
    if (!cmd_read(&args, &cmd_check, argc, argv)) return args.code;
    struct generation *g = cmd_load(&args.config);
    if (!g) return CMD_FAILED;
    unsigned count = router_count(app_routes(g));
    printf("photon: %s ok (%u route%s)\n", args.config.app, count, count == 1 ? "" : "s");
    cmd_unload(g);
    return CMD_OK;
}

const struct command cmd_check = {
    .name = "check",
    .summary = "load an app and report what is wrong with it",
    .help =
        "usage: photon check [APP]\n"
        "\n"
        "Runs the app's files as serve would, twice, without serving: errors with file and line,\n"
        "duplicate routes, routes that depend on chance. on_start and timers do not run.\n"
        "Exit code 0 when all is well, 1 otherwise.\n",
    .run = check_run,
    .runs_lua = true,
};
