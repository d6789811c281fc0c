#include "serve/config.h"

#include <ctype.h>
#include <stdio.h>
#include <unistd.h>
#include "serve/config_settings.h"

enum { ENVIRONMENT_LINE = 256 };

static const char ENVIRONMENT_PREFIX[] = "PHOTON_";

// What is read elsewhere: where the library is, how often a hostile build fails, and what the suite
// tells its specs.
static const char *const environment_others[] = {"LIBRARY", "FAIL_RATE", "BUILD", "TEST_LIB",
                                                 "CASES",   "SOAK",      "SEED"};

// Whether the name is that of the option, in upper case.
static bool environment_same(struct slice name, const char *option)
{
    size_t i = 0;
    while (i < name.len && name.ptr[i] == toupper((unsigned char)option[i])) i++;
    return i == name.len && !option[i];
}

static bool environment_knows(struct slice name, const char *const options[])
{
    for (size_t i = 0; i < sizeof environment_others / sizeof environment_others[0]; i++)
        if (environment_same(name, environment_others[i])) return true;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++)
        if (environment_same(name, config_settings[i].name)) return true;
    for (; *options; options++)
        if (environment_same(name, *options)) return true;
    return false;
}

// The name comes from outside, and a warning is one line.
static void environment_tell(struct slice name, const char *nearest, void (*tell)(const char *line))
{
    char line[ENVIRONMENT_LINE], meant[CONFIG_NAME + 32] = "", upper[CONFIG_NAME] = "";
    for (size_t i = 0; nearest && nearest[i]; i++)
        upper[i] = (char)toupper((unsigned char)nearest[i]);
    if (nearest) snprintf(meant, sizeof meant, "; did you mean %s%s?", ENVIRONMENT_PREFIX, upper);
    snprintf(line, sizeof line, "nothing reads the variable %s%.*s%s", ENVIRONMENT_PREFIX,
             name.len > 60 ? 60 : (int)name.len, name.ptr, meant);
    for (char *at = line; *at; at++)
        if (iscntrl((unsigned char)*at)) *at = '?';
    tell(line);
}

void config_each_unknown(void (*tell)(const char *line))
{
    const char *options[CONFIG_MAX_OPTIONS + 1];
    size_t skip = sizeof ENVIRONMENT_PREFIX - 1;
    config_list_options(options);
    for (char **at = environ; at && *at; at++) {
        if (strncmp(*at, ENVIRONMENT_PREFIX, skip) != 0) continue;
        struct slice name = slice_of(*at + skip, strcspn(*at + skip, "="));
        if (!environment_knows(name, options))
            environment_tell(name, config_nearest(name, options), tell);
    }
}
