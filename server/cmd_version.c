#include <stdio.h>
#include <string.h>
#include <uv.h>
#include "cmd.h"

static int version_run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        cmd_print_help(&cmd_version);
        return CMD_OK;
    }
    if (argc > 1) return cmd_fail(CMD_USAGE, "version takes no arguments, not %s", argv[1]);
    printf("photon 0.1.0 (libuv %s)\n", uv_version_string());
    return CMD_OK;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .help = "usage: photon version\n",
    .run = version_run,
};
