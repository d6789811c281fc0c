#include <stdio.h>
#include "cmd.h"
#include "service.h"

static void serve_warn(const char *line)
{
    log_write(LOG_WARN, "%s", line);
}

static int serve_run(int argc, char **argv)
{
    struct cmd_args args = {0};
    if (!cmd_read(&args, &cmd_serve, argc, argv)) {
        const char *line;
        for (unsigned i = 0; args.code == CMD_OK && (line = config_setting_help(i)); i++)
            puts(line);
        return args.code;
    }
    if (!log_open(args.config.log_form, LOG_INFO))
        return cmd_fail(CMD_FAILED,
                        "no thread to write the log with: raise the limit of processes");
    config_each_unknown(serve_warn);
    int code = service_run(&args.config);
    log_close();
    return code;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "serve an app",
    .help =
        "usage: photon serve [APP] [FLAG]...\n"
        "\n"
        "APP is a directory that holds app.lua, or a .lua file; the current directory without it.\n"
        "\n"
        "  --listen ADDR   host:port, :port, [::1]:port or unix:/path.sock; may be repeated; port "
        "0\n"
        "                  takes a free one (127.0.0.1:8080)\n"
        "  --workers N     threads that serve (as many as processors may be used)\n"
        "  --watch         reload when a file of the app changes\n"
        "  --access-log    log every request\n"
        "  --log FORM      text, json or off (text)\n"
        "  --pid FILE      write the process id to FILE; its control socket is FILE.sock\n"
        "\n"
        "SIGHUP reloads. SIGTERM and SIGINT finish what runs, then end; a second one ends at "
        "once.\n"
        "Each flag can be given in the environment, too: --max-body as PHOTON_MAX_BODY.\n"
        "\n"
        "Settings (sizes also in KiB, MiB, GiB; times in seconds), with their defaults:\n",
    .run = serve_run,
};
