#include "cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CMD_ERROR = 512 };

int cmd_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("photon: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

void cmd_print_help(const struct command *command)
{
    printf("photon %s: %s\n%s", command->name, command->summary, command->help);
}

static bool cmd_end(struct cmd_args *a, int code)
{
    a->code = code;
    return false;
}

static bool cmd_take_app(struct cmd_args *a, const char *app)
{
    if (!a->config.app) {
        a->config.app = app;
        return true;
    }
    return cmd_end(a, cmd_fail(CMD_USAGE, "%s takes one APP, not also %s", a->command->name, app));
}

static bool cmd_refuse_flag(struct cmd_args *a, const char *flag)
{
    char advice[128];
    config_suggest_flag(flag, advice, sizeof(advice));
    return cmd_end(a, cmd_fail(CMD_USAGE, "%s does not know %s%s (photon %s --help)",
                               a->command->name, flag, advice, a->command->name));
}

bool cmd_read(struct cmd_args *a, const struct command *command, int argc, char **argv)
{
    char error[CMD_ERROR];
    a->command = command;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cmd_print_help(command);
            return cmd_end(a, CMD_OK);
        }
    }
    if (!config_init(&a->config, error, sizeof(error)))
        return cmd_end(a, cmd_fail(CMD_USAGE, "%s", error));
    for (int i = 1, taken; i < argc; i += taken) {
        taken = config_take_flag(&a->config, argc - i, argv + i, error, sizeof(error));
        if (taken < 0) return cmd_end(a, cmd_fail(CMD_USAGE, "%s: %s", command->name, error));
        if (taken > 0) continue;
        taken = 1;
        if (a->takes_json && strcmp(argv[i], "--json") == 0)
            a->wants_json = true;
        else if (argv[i][0] == '-')
            return cmd_refuse_flag(a, argv[i]);
        else if (!cmd_take_app(a, argv[i]))
            return false;
    }
    if (!a->config.app) a->config.app = ".";
    return true;
}
