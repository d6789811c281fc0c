// The program: finds the command and runs it.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "script/guard_thread.h"
#include "script/library.h"

static const struct command *const main_commands[] = {
    &cmd_serve, &cmd_test, &cmd_routes, &cmd_check, &cmd_reload, &cmd_bench, &cmd_version};
struct main_call {
    const struct command *command;
    int argc;
    char **argv;
    int code;
};

enum { MAIN_COMMANDS = sizeof(main_commands) / sizeof(main_commands[0]), MAIN_WORD = 16 };

static int main_help(void)
{
    puts("photon: an application server for Lua\n\nusage: photon COMMAND [ARGUMENT]...\n");
    for (unsigned i = 0; i < MAIN_COMMANDS; i++)
        printf("  %-8s %s\n", main_commands[i]->name, main_commands[i]->summary);
    puts("\nphoton COMMAND --help tells more.");
    return CMD_OK;
}

// How many letters of `a` stand in `b` in the same order: the longest common subsequence.
static unsigned main_common(const char *a, const char *b)
{
    unsigned row[MAIN_WORD + 1] = {0};
    size_t width = strlen(b) < MAIN_WORD ? strlen(b) : MAIN_WORD;
    for (; *a; a++) {
        unsigned corner = 0;
        for (size_t j = 0; j < width; j++) {
            unsigned above = row[j + 1];
            if (*a == b[j])
                row[j + 1] = corner + 1;
            else if (row[j] > above)
                row[j + 1] = row[j];
            corner = above;
        }
    }
    return row[width];
}

static int main_refuse(const char *word)
{
    const char *best = NULL;
    unsigned most = 0;
    size_t len = strlen(word);
    for (unsigned i = 0; i < MAIN_COMMANDS; i++) {
        const char *name = main_commands[i]->name;
        unsigned common = main_common(word, name);
        size_t longest = len > strlen(name) ? len : strlen(name);
        if (common <= most || 3 * common < 2 * longest) continue;
        most = common;
        best = name;
    }
    return cmd_fail(CMD_USAGE, "there is no command %s%s%s%s (photon --help)", word,
                    best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

static void main_on_signal(int number)
{
    (void)number;
}

// Writing to a lost peer, or beyond the limit of a file's size, is an error like any other. Unlike
// SIG_IGN, a handler is not inherited by the programs that an app starts.
static void main_ignore_failed_writes(void)
{
    struct sigaction action = {.sa_handler = main_on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

// In a process that is started without one of them, a loop or a socket would get its number, and
// log lines would be written into that.
static bool main_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return false;
    }
    return true;
}

static void *main_call(void *data)
{
    struct main_call *call = data;
    call->code = call->command->run(call->argc, call->argv);
    return NULL;
}

// Without a thread recursion through C functions may end the process.
static int main_call_with_room(struct main_call *call)
{
    pthread_t thread;
    if (call->command->runs_lua && guard_thread_start(&thread, main_call, call, false))
        pthread_join(thread, NULL);
    else
        main_call(call);
    return call->code;
}

// What a command was to print and could not is a failure. Not of serve: its code tells how it
// stopped, and nobody need read the one line that it prints.
static int main_run(const struct command *command, int argc, char **argv)
{
    struct main_call call = {.command = command, .argc = argc, .argv = argv};
    int code = main_call_with_room(&call);
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (is_written || code != CMD_OK || command == &cmd_serve) return code;
    return cmd_fail(CMD_FAILED,
                    "%s: standard output cannot be written; is its disk full, or its reader gone?",
                    command->name);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    if (!main_hold_standard())
        return cmd_fail(CMD_FAILED, "standard input, output or error is closed, and /dev/null "
                                    "cannot take its place");
    if (argc < 2) {
        main_help();
        return CMD_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return main_help();
    if (strcmp(word, "--version") == 0) word = "version";
    main_ignore_failed_writes();
    library_locate();
    for (unsigned i = 0; i < MAIN_COMMANDS; i++) {
        if (strcmp(word, main_commands[i]->name) == 0)
            return main_run(main_commands[i], argc - 1, argv + 1);
    }
    return main_refuse(word);
}
