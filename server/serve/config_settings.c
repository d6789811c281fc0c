#include "serve/config_settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SETTING(field, kind_, least_, most_, help_)                                                \
    {                                                                                              \
        .name = #field, .help = help_, .least = least_, .most = most_,                             \
        .offset = offsetof(struct limits, field), .size = sizeof(((struct limits *)0)->field),     \
        .kind = kind_                                                                              \
    }

#define KIB       1024.0
#define MIB       (1024 * KIB)
#define MOST_SIZE 1125899906842624.0 // 2^50
#define MOST_TIME 4000000.0          // some 46 days: milliseconds must fit 32 bits
#define MOST      4294967295.0

// In the order of lua/photon/settings.lua.
const struct config_setting config_settings[CONFIG_SETTINGS] = {
    SETTING(max_header, CONFIG_BYTES, 256, 16 * MIB,
            "request line and header fields of a request together"),
    SETTING(max_headers, CONFIG_COUNT, 1, 65535, "header fields of a request"),
    SETTING(max_target, CONFIG_BYTES, 16, 16 * MIB, "the target of a request"),
    SETTING(max_body, CONFIG_BYTES, 0, MOST_SIZE,
            "the body of a request; a route's own max_body goes before it"),
    SETTING(header_timeout, CONFIG_SECONDS, 0.001, MOST_TIME, "for a whole request head to arrive"),
    SETTING(body_timeout, CONFIG_SECONDS, 0.001, MOST_TIME,
            "without progress while a body arrives"),
    SETTING(idle_timeout, CONFIG_SECONDS, 0.001, MOST_TIME,
            "for a connection between two requests"),
    SETTING(write_timeout, CONFIG_SECONDS, 0, MOST_TIME,
            "without progress while a client does not read; 0: for ever"),
    SETTING(max_connections, CONFIG_COUNT, 1, MOST, "open connections"),
    SETTING(max_streams, CONFIG_COUNT, 0, MOST, "open streams"),
    SETTING(max_streams_per_ip, CONFIG_COUNT, 0, MOST, "open streams of one address; 0: no limit"),
    SETTING(max_tasks, CONFIG_COUNT, 1, MOST, "living tasks of a worker"),
    SETTING(max_channels, CONFIG_COUNT, 0, MOST, "channels of the server"),
    SETTING(max_event, CONFIG_BYTES, 1, 1024 * MIB, "an event of a channel, with its name"),
    SETTING(shared_memory, CONFIG_BYTES, 0, MOST_SIZE,
            "what all photon.shared dictionaries hold together"),
    SETTING(lua_memory, CONFIG_BYTES, MIB, MOST_SIZE, "the heap of one worker's Lua state"),
    SETTING(lua_budget, CONFIG_SECONDS, 0, MOST_TIME,
            "for Lua to run without waiting, then it is stopped"),
    SETTING(lua_slow, CONFIG_SECONDS, 0, MOST_TIME,
            "for Lua to run without waiting, then it is logged"),
    SETTING(max_generations, CONFIG_COUNT, 1, MOST,
            "loads of the app that are alive at once after reloads"),
    SETTING(drain, CONFIG_SECONDS, 0, MOST_TIME,
            "for requests and streams to end when the server stops"),
    {.name = "trusted_proxies",
     .help = "addresses and networks whose x-forwarded-for is believed, with commas",
     .kind = CONFIG_LIST},
    SETTING(server_header, CONFIG_FLAG, 0, 1, "whether replies carry `server: photon`"),
};

static bool config_same_name(struct slice given, const char *name)
{
    size_t i = 0;
    for (; i < given.len && name[i]; i++)
        if (given.ptr[i] != name[i] && !(given.ptr[i] == '-' && name[i] == '_')) return false;
    return i == given.len && !name[i];
}

int config_find_setting(struct slice name)
{
    for (int i = 0; i < CONFIG_SETTINGS; i++)
        if (config_same_name(name, config_settings[i].name)) return i;
    return -1;
}

// Digits with at most one point among them: no sign, exponent, hexadecimal or "inf" as strtod has.
static const char *config_read_decimal(const char *text, double *value)
{
    size_t len = strspn(text, "0123456789"), fraction = 0;
    if (len == 0) return NULL;
    if (text[len] == '.') {
        fraction = strspn(text + len + 1, "0123456789");
        if (fraction == 0) return NULL;
        fraction++;
    }
    *value = strtod(text, NULL);
    return text + len + fraction;
}

static bool config_read_bytes(const char *text, double *value)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1}, {"B", 1}, {"KiB", KIB}, {"MiB", MIB}, {"GiB", 1024 * MIB}};
    const char *unit = config_read_decimal(text, value);
    if (!unit) return false;
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) != 0) continue;
        *value *= units[i].factor;
        return *value == floor(*value);
    }
    return false;
}

static bool config_read_flag(const char *text, double *value)
{
    bool is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    *value = is_true;
    return is_true || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

bool config_read_value(enum config_kind kind, const char *text, double *value)
{
    const char *end;
    switch (kind) {
    case CONFIG_BYTES: return config_read_bytes(text, value);
    case CONFIG_FLAG: return config_read_flag(text, value);
    case CONFIG_SECONDS: return (end = config_read_decimal(text, value)) && !*end;
    case CONFIG_COUNT:
        return (end = config_read_decimal(text, value)) && !*end && *value == floor(*value);
    case CONFIG_LIST: break;
    }
    return false;
}

const char *config_wanted(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_BYTES: return "a whole number of bytes, or a size like 1MiB";
    case CONFIG_SECONDS: return "a number of seconds";
    case CONFIG_COUNT: return "a whole number";
    case CONFIG_FLAG: return "true or false";
    case CONFIG_LIST: break;
    }
    return "a list with commas";
}

void config_show_value(enum config_kind kind, double value, char *to, size_t size)
{
    if (kind == CONFIG_FLAG)
        snprintf(to, size, "%s", value != 0 ? "true" : "false");
    else if (kind == CONFIG_BYTES && value >= MIB && fmod(value, MIB) == 0)
        snprintf(to, size, "%.0fMiB", value / MIB);
    else
        snprintf(to, size, "%.10g", value);
}

static void config_put(const struct config_setting *s, struct limits *limits, uint64_t value)
{
    char *to = (char *)limits + s->offset;
    uint32_t narrow = (uint32_t)value;
    bool flag = value != 0;
    if (s->kind == CONFIG_FLAG)
        memcpy(to, &flag, sizeof flag);
    else if (s->size == sizeof narrow)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &value, sizeof value);
}

bool config_store_value(const struct config_setting *s, struct limits *limits, double value,
                        const char *where, char *error, size_t size)
{
    char given[32], least[32], most[32];
    bool is_whole = s->kind == CONFIG_SECONDS || value == floor(value);
    if (s->kind == CONFIG_LIST) return true;
    if (is_whole && value >= s->least && value <= s->most) {              // a NaN is not
        if (s->kind == CONFIG_SECONDS) value = ceil(value * 1000 - 1e-6); // 0.0001 is not never
        config_put(s, limits, (uint64_t)value);
        return true;
    }
    config_show_value(s->kind == CONFIG_FLAG ? CONFIG_COUNT : s->kind, value, given, sizeof given);
    config_show_value(s->kind, s->least, least, sizeof least);
    config_show_value(s->kind, s->most, most, sizeof most);
    if (!is_whole)
        snprintf(error, size, "%s must be %s, not %s", where, config_wanted(s->kind), given);
    else
        snprintf(error, size, "%s must be from %s to %s, not %s", where, least, most, given);
    return false;
}

double config_load_value(const struct config_setting *s, const struct limits *limits)
{
    const char *from = (const char *)limits + s->offset;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    bool flag = false;
    if (s->kind == CONFIG_LIST) return 0;
    if (s->kind == CONFIG_FLAG) {
        memcpy(&flag, from, sizeof flag);
        return flag;
    }
    if (s->size == sizeof narrow) {
        memcpy(&narrow, from, sizeof narrow);
        return s->kind == CONFIG_SECONDS ? narrow / 1000.0 : narrow;
    }
    memcpy(&wide, from, sizeof wide);
    return (double)wide;
}
