// config: flags, environment and an app's settings.
// `serve_config list` prints the settings for comparison with Lua's.
#include "serve/config.h"

#include <stdlib.h>
#include <unistd.h>
#include "report.h"
#include "serve/config_settings.h"

static struct config config;
static char error[512];

static void forget_environment(void)
{
    static const char *const others[] = {"LISTEN", "WORKERS", "LOG", "PID", "WATCH", "ACCESS_LOG"};
    char name[64];
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(name, sizeof name, "PHOTON_%s", others[i]);
        unsetenv(name);
    }
    for (int i = 0; i < CONFIG_SETTINGS; i++) {
        snprintf(name, sizeof name, "PHOTON_%s", config_settings[i].name);
        for (char *at = name; *at; at++) *at = (char)(*at >= 'a' && *at <= 'z' ? *at - 32 : *at);
        unsetenv(name);
    }
}

// A fresh config from the variables `name=value` of a NULL-terminated list.
static bool begin(char *const variables[])
{
    forget_environment();
    for (; variables && *variables; variables++) putenv(*variables);
    error[0] = '\0';
    return config_init(&config, error, sizeof error);
}

static int take(const char *flag, const char *value)
{
    char *argv[] = {(char *)flag, (char *)value, NULL};
    error[0] = '\0';
    return config_take_flag(&config, value ? 2 : 1, argv, error, sizeof error);
}

static bool says(const char *part)
{
    bool is_line = !strpbrk(error, "\r\n");
    if (!strstr(error, part)) fprintf(stderr, "the error is: %s\n", error);
    return is_line && strstr(error, part);
}

static void defaults_are_those_of_limits(void)
{
    struct limits defaults = LIMITS_DEFAULT;
    CHECK(begin(NULL));
    CHECK(memcmp(&config.limits, &defaults, sizeof defaults) == 0);
    EQUAL(config.listen_count, 0);
    EQUAL(config.workers, 0);
    EQUAL(config.fixed_settings, 0);
}

static void the_environment_is_read(void)
{
    char *variables[] = {"PHOTON_LISTEN=:1, unix:/a,[::1]:2",
                         "PHOTON_WORKERS=3",
                         "PHOTON_LOG=json",
                         "PHOTON_PID=/run/x",
                         "PHOTON_WATCH=1",
                         "PHOTON_ACCESS_LOG=true",
                         "PHOTON_MAX_BODY=2 MiB",
                         "PHOTON_LUA_SLOW=0.25",
                         "PHOTON_TRUSTED_PROXIES=10.0.0.0/8, ::1",
                         "PHOTON_SERVER_HEADER=true",
                         "PHOTON_MAX_TASKS=",
                         "PHOTON_UNKNOWN=1",
                         NULL};
    CHECK(begin(variables));
    EQUAL(config.listen_count, 3);
    CHECK(strcmp(config.listen[0], ":1") == 0 && strcmp(config.listen[1], "unix:/a") == 0 &&
          strcmp(config.listen[2], "[::1]:2") == 0);
    EQUAL(config.workers, 3);
    EQUAL(config.log_form, LOG_JSON);
    CHECK(config.has_pid_file && strcmp(config.pid_file, "/run/x") == 0);
    CHECK(config.is_watching && config.logs_access && config.limits.server_header);
    EQUAL(config.limits.max_body, 2 << 20);
    EQUAL(config.limits.lua_slow, 250);
    EQUAL(config.limits.max_tasks, 100000);
    CHECK(config.has_trusted);
    EQUAL(config.trusted_count, 2);
    CHECK(slice_equals(config.trusted[0], SLICE("10.0.0.0/8")));
    CHECK(slice_equals(config.trusted[1], SLICE("::1")));
}

static void flags_are_taken(void)
{
    begin(NULL);
    EQUAL(take("--max-body", "1048577"), 2);
    EQUAL(config.limits.max_body, 1048577);
    EQUAL(take("--max-body=3KiB", "APP"), 1);
    EQUAL(config.limits.max_body, 3072);
    EQUAL(take("--max-body=1.5MiB", NULL), 1);
    EQUAL(config.limits.max_body, 1572864);
    EQUAL(take("--drain", "0.5"), 2);
    EQUAL(config.limits.drain, 500);
    EQUAL(take("--watch", "APP"), 1);
    EQUAL(take("--access-log", "APP"), 1);
    CHECK(config.is_watching && config.logs_access);
    EQUAL(take("--watch=false", NULL), 1);
    CHECK(!config.is_watching);
    EQUAL(take("--server-header", "APP"), 1);
    CHECK(config.limits.server_header);
    EQUAL(take("--workers", "2"), 2);
    EQUAL(config.workers, 2);
    EQUAL(take("--log", "off"), 2);
    EQUAL(config.log_form, LOG_OFF);
    EQUAL(take("--pid=/run/y", NULL), 1);
    CHECK(strcmp(config.pid_file, "/run/y") == 0);
    EQUAL(take("--trusted-proxies", "unix"), 2);
    EQUAL(config.trusted_count, 1);
}

static void other_arguments_are_left(void)
{
    static const char *const others[] = {"APP",         "-w",          "--", "--max",
                                         "--max-bodyy", "--supervise", ""};
    begin(NULL);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        report_equal(take(others[i], "1"), 0, others[i], __FILE__, __LINE__);
}

static void bad_values_are_refused(void)
{
    static const struct {
        const char *flag, *value, *message;
    } cases[] = {
        {"--max-body", "many",
         "--max-body must be a whole number of bytes, or a size like 1MiB, not \"many\""},
        {"--max-body", "-1", "not \"-1\""},
        {"--max-body", "1e3", "not \"1e3\""},
        {"--max-body", "0x10", "not \"0x10\""},
        {"--max-body", "1.5", "not \"1.5\""},
        {"--max-body", "1MB", "not \"1MB\""},
        {"--max-body", "1.", "not \"1.\""},
        {"--max-body", "99999999999999999999", "--max-body must be from 0 to 1073741824MiB"},
        {"--max-header", "3", "--max-header must be from 256 to 16MiB, not 3"},
        {"--header-timeout", "0", "--header-timeout must be from 0.001 to 4000000, not 0"},
        {"--drain", "inf", "--drain must be a number of seconds, not \"inf\""},
        {"--drain", "1s", "not \"1s\""},
        {"--max-tasks", "1.5", "--max-tasks must be a whole number, not \"1.5\""},
        {"--max-tasks", "5000000000", "from 1 to 4294967295, not 5000000000"},
        {"--server-header=maybe", NULL, "--server-header must be true or false, not \"maybe\""},
        {"--workers", "0", "--workers must be a whole number from 1 to 256, not \"0\""},
        {"--workers", "257", "not \"257\""},
        {"--log", "xml", "--log must be text, json or off, not \"xml\""},
        {"--listen=", NULL, "--listen must be an address"},
        {"--pid=", NULL, "--pid must be the path of a file"},
        {"--watch=perhaps", NULL, "--watch must be true or false"},
        {"--max-body", NULL, "--max-body needs a value"},
        {"--log", "a\nb", "not \"a?b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(NULL);
        report_equal(take(cases[i].flag, cases[i].value), -1, cases[i].message, __FILE__, __LINE__);
        report_check(says(cases[i].message), cases[i].message, __FILE__, __LINE__);
    }
}

static void bad_variables_are_refused(void)
{
    char *settings[] = {"PHOTON_MAX_BODY=x", NULL}, *workers[] = {"PHOTON_WORKERS=all", NULL};
    char many[2 * CONFIG_LISTEN_TEXT] = "PHOTON_LISTEN=";
    char *listen[] = {many, NULL};
    CHECK(!begin(settings) && says("PHOTON_MAX_BODY must be a whole number of bytes"));
    CHECK(!begin(workers) &&
          says("PHOTON_WORKERS must be a whole number from 1 to 256, not \"all\""));
    for (int i = 0; i <= CONFIG_MAX_LISTEN; i++) strcat(many, ":1,");
    CHECK(!begin(listen) && says("PHOTON_LISTEN: at most 16 addresses"));
    memset(many + strlen("PHOTON_LISTEN="), 'x', CONFIG_LISTEN_TEXT);
    CHECK(!begin(listen) && says("PHOTON_LISTEN is longer than"));
    forget_environment();
}

static void flags_go_before_the_environment(void)
{
    char *variables[] = {"PHOTON_LISTEN=:1,:2", "PHOTON_MAX_BODY=5", NULL};
    CHECK(begin(variables));
    EQUAL(take("--listen", ":3"), 2);
    EQUAL(take("--listen=:4", NULL), 1);
    EQUAL(config.listen_count, 2);
    CHECK(strcmp(config.listen[0], ":3") == 0 && strcmp(config.listen[1], ":4") == 0);
    EQUAL(take("--max-body", "6"), 2);
    EQUAL(config.limits.max_body, 6);
    for (int i = 2; i < CONFIG_MAX_LISTEN; i++) EQUAL(take("--listen", ":5"), 2);
    CHECK(take("--listen", ":6") == -1 && says("--listen: at most 16 addresses"));
}

static bool apply(struct limits *limits, const char *name, double value)
{
    error[0] = '\0';
    return config_apply_setting(&config, limits, name, value, error, sizeof error);
}

static void both_go_before_the_app(void)
{
    char *variables[] = {"PHOTON_MAX_BODY=5", NULL};
    CHECK(begin(variables));
    EQUAL(take("--drain", "1"), 2);
    struct limits limits = config.limits;
    CHECK(apply(&limits, "max_body", 77) && apply(&limits, "drain", 9));
    CHECK(apply(&limits, "max_tasks", 8) && apply(&limits, "server_header", 1));
    CHECK(apply(&limits, "trusted_proxies", 1));
    EQUAL(limits.max_body, 5);
    EQUAL(limits.drain, 1000);
    EQUAL(limits.max_tasks, 8);
    CHECK(limits.server_header);
    EQUAL(config.limits.max_tasks, 100000);
    CHECK(!apply(&limits, "max_body", -1) && says("setting max_body must be from 0"));
    forget_environment();
}

static void an_apps_mistakes_are_named(void)
{
    begin(NULL);
    struct limits limits = config.limits, before = limits;
    CHECK(!apply(&limits, "max_bdoy", 1) &&
          says("there is no setting \"max_bdoy\"; did you mean max_body?"));
    CHECK(!apply(&limits, "colour", 1) && says("there is no setting \"colour\""));
    CHECK(!strstr(error, "mean"));
    CHECK(!apply(&limits, "max_tasks", 0.0 / 0.0) && says("setting max_tasks must be"));
    CHECK(!apply(&limits, "max_tasks", 1.5) &&
          says("setting max_tasks must be a whole number, not 1.5"));
    CHECK(!apply(&limits, "server_header", 2) && says("setting server_header must be"));
    CHECK(!apply(&limits, "lua_memory", 1) && says("setting lua_memory must be from 1MiB to"));
    CHECK(memcmp(&limits, &before, sizeof limits) == 0);
}

static void values_come_back(void)
{
    for (int i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *s = &config_settings[i];
        struct limits limits = LIMITS_DEFAULT, before = limits;
        double values[] = {s->least, s->most, s->kind == CONFIG_SECONDS ? 12.345 : s->most};
        for (int v = 0; v < 3 && s->kind != CONFIG_LIST; v++) {
            report_check(config_store_value(s, &limits, values[v], "", error, sizeof error) &&
                             config_load_value(s, &limits) == values[v],
                         s->name, __FILE__, __LINE__);
        }
        // Nothing beside the field has been written.
        memcpy((char *)&limits + s->offset, (char *)&before + s->offset, s->size);
        report_check(memcmp(&limits, &before, sizeof limits) == 0, s->name, __FILE__, __LINE__);
    }
    struct limits limits = LIMITS_DEFAULT;
    CHECK(apply(&limits, "lua_slow", 0.0001));
    EQUAL(limits.lua_slow, 1); // not 0, which would mean something else
}

static char told[512];

static void tell(const char *line)
{
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", line);
}

static void unknown_variables_are_told(void)
{
    char *bad[] = {"PHOTON_MAX_BODDY=1", "PHOTON_max_body=1", "PHOTON_FROBNICATE",
                   "PHOTON_ACESS_LOG=", "PHOTON_A\nB=1"};
    char *good[] = {"PHOTON_MAX_BODY=1", "PHOTON_ACCESS_LOG=true",
                    "PHOTON_SEED=1",     "PHOTON_LIBRARY=x",
                    "PHOTON=x",          "PHOTONS=x"};
    char *given[16] = {0}, **own = environ;
    size_t count = 0;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) given[count++] = good[i];
    environ = given;
    told[0] = '\0';
    config_each_unknown(tell);
    bool is_silent = !told[0];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) given[count++] = bad[i];
    config_each_unknown(tell);
    environ = own;
    CHECK(is_silent);
    CHECK(strcmp(told,
                 "nothing reads the variable PHOTON_MAX_BODDY; did you mean PHOTON_MAX_BODY?\n"
                 "nothing reads the variable PHOTON_max_body; did you mean PHOTON_MAX_BODY?\n"
                 "nothing reads the variable PHOTON_FROBNICATE\n"
                 "nothing reads the variable PHOTON_ACESS_LOG; did you mean PHOTON_ACCESS_LOG?\n"
                 "nothing reads the variable PHOTON_A?B\n") == 0);
}

static void unknown_flags_get_a_suggestion(void)
{
    char to[64];
    config_suggest_flag("--max-bdy=3", to, sizeof to);
    CHECK(strcmp(to, "; did you mean --max-body?") == 0);
    config_suggest_flag("--worker", to, sizeof to);
    CHECK(strcmp(to, "; did you mean --workers?") == 0);
    config_suggest_flag("--acess-log", to, sizeof to);
    CHECK(strcmp(to, "; did you mean --access-log?") == 0);
    config_suggest_flag("--frobnicate", to, sizeof to);
    CHECK(strcmp(to, "") == 0);
    config_suggest_flag("--an-option-that-is-longer-than-any-name-there-is", to, sizeof to);
    CHECK(strcmp(to, "") == 0);
}

static void help_names_every_setting(void)
{
    for (unsigned i = 0; i < CONFIG_SETTINGS; i++) {
        const char *line = config_setting_help(i);
        report_check(line && strncmp(line, "  --", 4) == 0 &&
                         !strchr(line, '_') == !strchr(config_settings[i].help, '_') &&
                         strstr(line, config_settings[i].help),
                     config_settings[i].name, __FILE__, __LINE__);
    }
    CHECK(strstr(config_setting_help(3), "--max-body SIZE") &&
          strstr(config_setting_help(3), "(1MiB)"));
    CHECK(!config_setting_help(CONFIG_SETTINGS));
}

static int list(void)
{
    static const char *const kinds[] = {"bytes", "seconds", "count", "flag", "list"};
    struct limits defaults = LIMITS_DEFAULT;
    for (int i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *s = &config_settings[i];
        printf("setting %s %s %.10g\n", s->name, kinds[s->kind], config_load_value(s, &defaults));
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct report_case cases[] = {
        {"defaults are those of limits", defaults_are_those_of_limits},
        {"the environment is read", the_environment_is_read},
        {"flags are taken", flags_are_taken},
        {"other arguments are left", other_arguments_are_left},
        {"bad values are refused", bad_values_are_refused},
        {"bad variables are refused", bad_variables_are_refused},
        {"flags go before the environment", flags_go_before_the_environment},
        {"both go before the app", both_go_before_the_app},
        {"an app's mistakes are named", an_apps_mistakes_are_named},
        {"values come back", values_come_back},
        {"unknown flags get a suggestion", unknown_flags_get_a_suggestion},
        {"unknown variables are told", unknown_variables_are_told},
        {"help names every setting", help_names_every_setting},
        {0},
    };
    if (argc > 1 && strcmp(argv[1], "list") == 0) return list();
    return report_run(cases);
}
