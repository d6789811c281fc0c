#include <stdio.h>
#include <uv.h>
#include "cmd.h"

static int version_run(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("photon 0.1.0 (libuv %s)\n", uv_version_string());
    return CMD_OK;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .help = "usage: photon version\n",
    .run = version_run,
};
