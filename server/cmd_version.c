#include <stdio.h>
#include <string.h>
#include <uv.h>
#include "cmd.h"

// What a build for tests does differently, for whoever runs specs in it.
static const char *version_kind(void)
{
#if defined(PHOTON_HOSTILE)
    return ", hostile";
#elif defined(__SANITIZE_ADDRESS__)
    return ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    return ", thread sanitizer";
#else
    return "";
#endif
}

static int version_run(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        cmd_print_help(&cmd_version);
        return CMD_OK;
    }
    if (argc > 1) return cmd_fail(CMD_USAGE, "version takes no arguments, not %s", argv[1]);
    printf("photon 0.1.0 (libuv %s%s)\n", uv_version_string(), version_kind());
    return CMD_OK;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .help = "usage: photon version\n",
    .run = version_run,
};
