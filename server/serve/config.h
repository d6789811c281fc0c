// config: what the operator and the app have set. Precedence: flags, then PHOTON_* environment, then
// photon.app{…}. Names and kinds are those of lua/photon/settings.lua.
#ifndef PHOTON_SERVE_CONFIG_H
#define PHOTON_SERVE_CONFIG_H

#include "base/limits.h"
#include "base/log.h"
#include "base/slice.h"

enum { CONFIG_MAX_LISTEN = 16, CONFIG_MAX_TRUSTED = 32 };

struct config {
    const char *app;                        // directory or .lua file
    const char *listen[CONFIG_MAX_LISTEN];  // addresses as given
    unsigned listen_count;
    unsigned workers;                       // 0: as many as processors may be used
    bool is_watching, logs_access, has_pid_file;
    enum log_form log_form;
    const char *pid_file;
    struct limits limits;                   // what is in force now: defaults, app, environment, flags
    uint64_t fixed_settings;                // bit i: setting i was given by flag or environment
};

// Defaults, then what the environment says. False with one line in `error` (name, value, what is
// wanted) for a PHOTON_* variable of a known name with a bad value.
bool config_init(struct config *c, char *error, size_t size);

// One flag `--name value` or `--name=value`; settings are written with dashes (--max-body 1048576, also
// with KiB, MiB, GiB; times in seconds). Returns how many arguments it took, 0 when the flag is not
// one of config's, -1 with `error` for a bad value.
int config_take_flag(struct config *c, int argc, char **argv, char *error, size_t size);

// A setting of photon.app{…}: ignored when a flag or the environment has set it. `limits` is the
// generation's own copy. False with `error` when the name is unknown or the value is out of range.
bool config_apply_setting(const struct config *c, struct limits *limits, const char *name,
                          double value, char *error, size_t size);

// The processors that this process may use: affinity, then cgroup v2 quota (rounded up, at least 1).
unsigned config_processors(void);

// The setting names with their defaults and meaning, for --help; NULL at the end.
const char *config_setting_help(unsigned index);

#endif
