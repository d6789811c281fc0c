#include "serve/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include "serve/config_settings.h"
#include "wire/listener.h"

// One value that somebody has given: a flag or a variable, by its own name.
struct config_given {
    struct config *config;
    const char *where; // "--workers", "PHOTON_WORKERS"
    const char *value;
    bool is_flag;
    char *error;
    size_t size;
};

// What is set besides the settings.
struct config_option {
    const char *name;
    bool is_switch; // as a flag it needs no value
    bool (*take)(const struct config_given *g);
};

// Values come from outside, and an error is one line.
static bool config_refuse_line(const struct config_given *g)
{
    for (char *at = g->error; *at; at++)
        if (iscntrl((unsigned char)*at)) *at = '?';
    return false;
}

static bool config_refuse(const struct config_given *g, const char *wanted)
{
    snprintf(g->error, g->size, "%s must be %s, not \"%.60s\"", g->where, wanted, g->value);
    return config_refuse_line(g);
}

static bool config_add_listen(const struct config_given *g, const char *address)
{
    struct config *c = g->config;
    if (!*address) return config_refuse(g, "an address like 127.0.0.1:8080");
    if (c->listen_count == CONFIG_MAX_LISTEN) {
        snprintf(g->error, g->size, "%s: at most %d addresses can be listened on", g->where,
                 CONFIG_MAX_LISTEN);
        return false;
    }
    const char *problem = listener_check_address(slice_of_text(address));
    if (problem) {
        snprintf(g->error, g->size, "%s: cannot listen on \"%.60s\": %s", g->where, address,
                 problem);
        return config_refuse_line(g);
    }
    c->listen[c->listen_count++] = address;
    return true;
}

// A variable holds a list; a flag holds one address and may be repeated.
static bool config_take_listen(const struct config_given *g)
{
    struct config *c = g->config;
    if (g->is_flag) {
        if (!c->has_listen_flag) c->listen_count = 0;
        c->has_listen_flag = true;
        return config_add_listen(g, g->value);
    }
    if (strlen(g->value) >= sizeof c->listen_text) {
        snprintf(g->error, g->size, "%s is longer than %d bytes", g->where, CONFIG_LISTEN_TEXT - 1);
        return false;
    }
    strcpy(c->listen_text, g->value);
    for (char *rest = NULL, *at = strtok_r(c->listen_text, ", ", &rest); at;
         at = strtok_r(NULL, ", ", &rest))
        if (!config_add_listen(g, at)) return false;
    return true;
}

static bool config_take_workers(const struct config_given *g)
{
    double value;
    if (!config_read_value(CONFIG_COUNT, g->value, &value) || value < 1 ||
        value > CONFIG_MAX_WORKERS)
        return config_refuse(g, "a whole number from 1 to 256");
    g->config->workers = (unsigned)value;
    return true;
}

static bool config_take_log(const struct config_given *g)
{
    static const char *const forms[] = {
        [LOG_TEXT] = "text", [LOG_JSON] = "json", [LOG_OFF] = "off"};
    for (int i = LOG_TEXT; i <= LOG_OFF; i++) {
        if (strcmp(g->value, forms[i]) != 0) continue;
        g->config->log_form = (enum log_form)i;
        return true;
    }
    return config_refuse(g, "text, json or off");
}

static bool config_take_pid(const struct config_given *g)
{
    if (!*g->value) return config_refuse(g, "the path of a file");
    g->config->pid_file = g->value;
    g->config->has_pid_file = true;
    return true;
}

static bool config_take_bool(const struct config_given *g, bool *to)
{
    double value;
    if (!config_read_value(CONFIG_FLAG, g->value, &value)) return config_refuse(g, "true or false");
    *to = value != 0;
    return true;
}

static bool config_take_watch(const struct config_given *g)
{
    return config_take_bool(g, &g->config->is_watching);
}

static bool config_take_access_log(const struct config_given *g)
{
    return config_take_bool(g, &g->config->logs_access);
}

static const struct config_option config_options[] = {
    {"listen", false, config_take_listen}, {"workers", false, config_take_workers},
    {"log", false, config_take_log},       {"pid", false, config_take_pid},
    {"watch", true, config_take_watch},    {"access_log", true, config_take_access_log},
};
enum { CONFIG_OPTIONS = sizeof config_options / sizeof config_options[0] };
_Static_assert((int)CONFIG_OPTIONS <= (int)CONFIG_MAX_OPTIONS, "room for every option");

void config_list_options(const char *names[CONFIG_MAX_OPTIONS + 1])
{
    for (int i = 0; i <= CONFIG_OPTIONS; i++)
        names[i] = i < CONFIG_OPTIONS ? config_options[i].name : NULL;
}

static bool config_take_trusted(const struct config_given *g)
{
    struct config *c = g->config;
    c->trusted_count = 0;
    c->has_trusted = true;
    for (const char *at = g->value; *at;) {
        size_t len = strcspn(at, ",");
        struct slice entry = slice_trim(slice_of(at, len));
        at += len + (at[len] == ',');
        if (entry.len == 0) continue;
        if (c->trusted_count == CONFIG_MAX_TRUSTED)
            return config_refuse(g, "a list of at most 32 addresses and networks");
        c->trusted[c->trusted_count++] = entry;
    }
    return true;
}

static bool config_take_setting(const struct config_given *g, int index)
{
    const struct config_setting *s = &config_settings[index];
    double value;
    g->config->fixed_settings |= UINT64_C(1) << index;
    if (s->kind == CONFIG_LIST) return config_take_trusted(g);
    if (!config_read_value(s->kind, g->value, &value))
        return config_refuse(g, config_wanted(s->kind));
    return config_store_value(s, &g->config->limits, value, g->where, g->error, g->size);
}

// The variable of a name, NULL when it is unset or empty. `variable` becomes its name.
static const char *config_variable(const char *name, char variable[CONFIG_NAME + 8])
{
    snprintf(variable, CONFIG_NAME + 8, "PHOTON_%s", name);
    for (char *at = variable; *at; at++) *at = (char)toupper((unsigned char)*at);
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

bool config_init(struct config *c, char *error, size_t size)
{
    char variable[CONFIG_NAME + 8];
    struct config_given g = {.config = c, .where = variable, .error = error, .size = size};
    *c = (struct config){.limits = LIMITS_DEFAULT};
    for (int i = 0; i < CONFIG_OPTIONS; i++) {
        g.value = config_variable(config_options[i].name, variable);
        if (g.value && !config_options[i].take(&g)) return false;
    }
    for (int i = 0; i < CONFIG_SETTINGS; i++) {
        g.value = config_variable(config_settings[i].name, variable);
        if (g.value && !config_take_setting(&g, i)) return false;
    }
    return true;
}

static int config_find_option(struct slice name)
{
    for (int i = 0; i < CONFIG_OPTIONS; i++) {
        const char *known = config_options[i].name;
        size_t at = 0;
        while (at < name.len &&
               (name.ptr[at] == known[at] || (name.ptr[at] == '-' && known[at] == '_')))
            at++;
        if (at == name.len && !known[at]) return i;
    }
    return -1;
}

int config_take_flag(struct config *c, int argc, char **argv, char *error, size_t size)
{
    char where[CONFIG_NAME + 8];
    if (argc < 1 || strncmp(argv[0], "--", 2) != 0) return 0;
    struct slice name = slice_of(argv[0] + 2, strcspn(argv[0] + 2, "="));
    bool has_own_value = name.ptr[name.len] == '=';
    int option = config_find_option(name);
    int setting = option < 0 ? config_find_setting(name) : -1;
    if (option < 0 && setting < 0) return 0;
    snprintf(where, sizeof where, "--%.*s", (int)name.len, name.ptr);
    struct config_given g = {
        .config = c, .where = where, .is_flag = true, .error = error, .size = size};
    bool is_switch = setting < 0 ? config_options[option].is_switch
                                 : config_settings[setting].kind == CONFIG_FLAG;
    if (has_own_value)
        g.value = name.ptr + name.len + 1;
    else if (is_switch)
        g.value = "true";
    else if (argc > 1)
        g.value = argv[1];
    if (!g.value) {
        snprintf(error, size, "%s needs a value", where);
        return -1;
    }
    bool is_taken =
        setting < 0 ? config_options[option].take(&g) : config_take_setting(&g, setting);
    if (!is_taken) return -1;
    return has_own_value || is_switch ? 1 : 2;
}

void config_suggest_flag(const char *flag, char *to, size_t size)
{
    const char *more[CONFIG_MAX_OPTIONS + 1];
    config_list_options(more);
    flag += strspn(flag, "-");
    const char *best = config_nearest(slice_of(flag, strcspn(flag, "=")), more);
    snprintf(to, size, best ? "; did you mean --%s?" : "%s", best ? best : "");
    for (char *at = to; *at; at++)
        if (*at == '_') *at = '-';
}

bool config_apply_setting(const struct config *c, struct limits *limits, const char *name,
                          double value, char *error, size_t size)
{
    char where[CONFIG_NAME + 16];
    struct limits ignored = *limits;
    int index = config_find_setting(slice_of_text(name));
    if (index < 0) {
        const char *best = config_nearest(slice_of_text(name), NULL);
        snprintf(error, size, "there is no setting \"%.60s\"%s%s%s", name,
                 best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
        return false;
    }
    bool is_fixed = c->fixed_settings >> index & 1;
    snprintf(where, sizeof where, "setting %s", config_settings[index].name);
    return config_store_value(&config_settings[index], is_fixed ? &ignored : limits, value, where,
                              error, size);
}

const char *config_setting_help(unsigned index)
{
    static char line[256];
    static const char *const units[] = {"SIZE", "SECONDS", "N", "", "LIST"};
    char flag[64], shown[32] = "none";
    struct limits defaults = LIMITS_DEFAULT;
    if (index >= CONFIG_SETTINGS) return NULL;
    const struct config_setting *s = &config_settings[index];
    snprintf(flag, sizeof flag, "--%s %s", s->name, units[s->kind]);
    for (char *at = flag; *at; at++)
        if (*at == '_') *at = '-';
    if (s->kind != CONFIG_LIST)
        config_show_value(s->kind, config_load_value(s, &defaults), shown, sizeof shown);
    snprintf(line, sizeof line, "  %-28s %s (%s)", flag, s->help, shown);
    return line;
}
