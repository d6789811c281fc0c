#include "cmd.h"

static int test_run(int argc, char **argv)
{
    (void)argc, (void)argv;
    return cmd_fail(CMD_FAILED, "not yet");
}

const struct command cmd_test = {
    .name = "test",
    .summary = "run busted specs inside the server's runtime",
    .help = "usage: photon test [BUSTED OPTIONS] [SPEC]...\n",
    .run = test_run,
};
