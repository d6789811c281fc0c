// cmd: the commands of the program, one file each, and how they read their arguments. Each returns
// the exit code: 0, 1 (the app or the run failed), 2 (wrong usage).
#ifndef PHOTON_CMD_H
#define PHOTON_CMD_H

#include "script/app.h"
#include "serve/config.h"

enum { CMD_OK, CMD_FAILED, CMD_USAGE };

struct command {
    const char *name;
    const char *summary;               // one line
    const char *help;                  // all lines but the first
    int (*run)(int argc, char **argv); // argv[0] is the command's name
    bool runs_lua;                     // itself: on a thread that has room for that
};

extern const struct command cmd_serve, cmd_test, cmd_routes, cmd_check, cmd_reload, cmd_bench,
    cmd_version;

// What commands that take an APP read from their arguments.
struct cmd_args {
    const struct command *command;
    struct config config;
    bool wants_json; // --json, where `takes_json` is set
    bool takes_json;
    int code; // what to return at once when cmd_read has said no
};

// Reads flags (config's, and --help) and one APP. False when the command ends here: help has been
// printed, or an error.
bool cmd_read(struct cmd_args *a, const struct command *command, int argc, char **argv);

// One line on standard error, "photon: …". Returns the code.
int cmd_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cmd_print_help(const struct command *command);

// An app that is only loaded, for check and routes: by two VMs, which must agree. NULL after an
// error has been printed.
struct generation *cmd_load(struct config *config);
void cmd_unload(struct generation *g);

#endif
