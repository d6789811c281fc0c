// config_settings: the table of all settings, and how their values are read from text. For config
// alone.
#ifndef PHOTON_SERVE_CONFIG_SETTINGS_H
#define PHOTON_SERVE_CONFIG_SETTINGS_H

#include "base/limits.h"
#include "base/slice.h"

enum config_kind { CONFIG_BYTES, CONFIG_SECONDS, CONFIG_COUNT, CONFIG_FLAG, CONFIG_LIST };

struct config_setting {
    const char *name; // with underscores
    const char *help;
    double least, most; // in the user's unit
    uint16_t offset;    // in struct limits, where its default stands too
    uint8_t size;       // of the field: 1, 4 or 8; seconds are kept as milliseconds
    uint8_t kind;       // enum config_kind
};

// How many; room for what can be set besides; room for a name.
enum { CONFIG_SETTINGS = 22, CONFIG_MAX_OPTIONS = 8, CONFIG_NAME = 32 };

extern const struct config_setting config_settings[CONFIG_SETTINGS];

// The setting of that name, with underscores or dashes. -1 when there is none.
int config_find_setting(struct slice name);

// The names of what can be set besides the settings ("listen", "access_log"), NULL at the end.
void config_list_options(const char *names[CONFIG_MAX_OPTIONS + 1]);

// A text as a value of that kind: "1048576", "1MiB", "0.5", "true". False when it is none.
bool config_read_value(enum config_kind kind, const char *text, double *value);

// What a value of that kind looks like, for error messages.
const char *config_wanted(enum config_kind kind);

// Puts a value into its field; a setting of kind CONFIG_LIST has none. False with one line in
// `error` when it is out of range; `where` names its origin ("--max-body").
bool config_store_value(const struct config_setting *s, struct limits *limits, double value,
                        const char *where, char *error, size_t size);

// The field's value in the user's unit.
double config_load_value(const struct config_setting *s, const struct limits *limits);

// The setting or other name of the NULL-terminated `more` that was probably meant; NULL when none
// is near. Dashes count as underscores.
const char *config_nearest(struct slice name, const char *const more[]);

// A value as people write it.
void config_show_value(enum config_kind kind, double value, char *to, size_t size);

#endif
