// config: what the operator and the app have set. Precedence: flags, then PHOTON_* environment,
// then photon.app{…}. Names and kinds are those of lua/photon/settings.lua.
#ifndef PHOTON_SERVE_CONFIG_H
#define PHOTON_SERVE_CONFIG_H

#include "base/limits.h"
#include "base/log.h"
#include "base/slice.h"

enum {
    CONFIG_MAX_LISTEN = 16,
    CONFIG_MAX_TRUSTED = 32,
    CONFIG_MAX_WORKERS = 256,
    CONFIG_LISTEN_TEXT = 1024, // all of PHOTON_LISTEN
};

struct config {
    const char *app;                       // directory or .lua file
    const char *listen[CONFIG_MAX_LISTEN]; // addresses as given
    unsigned listen_count;
    unsigned workers; // 0: as many as processors may be used
    bool is_watching, logs_access, has_pid_file;
    enum log_form log_form;
    const char *pid_file;
    struct limits limits;    // what is in force now: defaults, app, environment, flags
    uint64_t fixed_settings; // bit i: setting i was given by flag or environment
    struct slice trusted[CONFIG_MAX_TRUSTED]; // trusted_proxies of a flag or the environment, which
    unsigned trusted_count;                   // then stand instead of the app's
    bool has_trusted;
    bool has_listen_flag; // the environment's addresses have been replaced
    char listen_text[CONFIG_LISTEN_TEXT];
};

// Defaults, then what the environment says: each setting as PHOTON_<NAME>, and PHOTON_LISTEN (a
// list with commas), PHOTON_WORKERS, PHOTON_LOG, PHOTON_PID, PHOTON_WATCH and PHOTON_ACCESS_LOG
// (true or false). Empty ones count as unset. False with one line in `error` (name, value, what is
// wanted) for a PHOTON_* variable of a known name with a bad value. `c` points into the
// environment, and into itself: it must not be moved.
bool config_init(struct config *c, char *error, size_t size);

// The PHOTON_* variables that nothing reads, probably misspelt: `tell` is called with one line for
// each, which names the variable and the one that was probably meant.
void config_each_unknown(void (*tell)(const char *line));

// One flag `--name value` or `--name=value` at argv[0]: --listen (may be repeated), --workers,
// --log,
// --pid, --watch, --access-log, and every setting, written with dashes (--max-body 1048576, also
// with KiB, MiB, GiB; times in seconds; --server-header alone or =false). Returns how many
// arguments it took, 0 when the flag is not one of config's, -1 with `error` for a bad value.
// Values are borrowed from argv.
int config_take_flag(struct config *c, int argc, char **argv, char *error, size_t size);

// For an unknown flag: "; did you mean --max-body?" into `to`, or "" when no known one is near.
void config_suggest_flag(const char *flag, char *to, size_t size);

// A setting of photon.app{…}: checked, then ignored when a flag or the environment has set it.
// `limits` is the generation's own copy. False with `error` when the name is unknown or the value
// is out of range. trusted_proxies is a list and not for here: it is left alone.
bool config_apply_setting(const struct config *c, struct limits *limits, const char *name,
                          double value, char *error, size_t size);

// The processors that this process may use: affinity, then cgroup quota, v2 or v1 (rounded up, at
// least 1).
unsigned config_processors(void);

// A setting's line for --help: its flag, meaning and default; NULL at the end. Valid until the next
// call.
const char *config_setting_help(unsigned index);

#endif
