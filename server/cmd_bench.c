#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "bench_compare.h"
#include "bench_report.h"
#include "bench_request.h"
#include "bench_run.h"
#include "cmd.h"

enum { BENCH_ERROR = 512, BENCH_MOST_CONNECTIONS = 100000 };

// What the command line says.
struct bench_args {
    struct bench_options options;
    struct bench_request request;
    const char *compare[2];
    bool has_seconds;
};

static int bench_usage(const char *flag, const char *wanted)
{
    return cmd_fail(CMD_USAGE, "bench %s wants %s (photon bench --help)", flag, wanted);
}

// A number from `least` on, with nothing after it. False else.
static bool bench_read_number(const char *text, double least, double most, double *to)
{
    char *end;
    errno = 0;
    *to = strtod(text, &end);
    return end != text && *end == 0 && errno == 0 && isfinite(*to) && *to >= least && *to <= most;
}

static bool bench_read_count(const char *text, double most, double *to)
{
    return bench_read_number(text, 1, most, to) && floor(*to) == *to;
}

static int bench_take_header(struct bench_args *a, const char *value)
{
    if (a->request.header_count == BENCH_MAX_HEADERS)
        return cmd_fail(CMD_USAGE, "bench takes at most %d headers", BENCH_MAX_HEADERS);
    a->request.headers[a->request.header_count++] = value;
    return CMD_OK;
}

static int bench_take_mode(struct bench_args *a, const char *value)
{
    static const char *const names[] = {"auto", "sse", "http"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        a->options.mode = (enum bench_mode)i;
        return CMD_OK;
    }
    return bench_usage("--mode", "auto, sse or http");
}

static int bench_take_number(struct bench_args *a, const char *flag, const char *value)
{
    struct bench_options *o = &a->options;
    double number;
    if (strcmp(flag, "-c") == 0) {
        if (!bench_read_count(value, BENCH_MOST_CONNECTIONS, &number))
            return bench_usage(flag, "a number of connections, from 1 to 100000");
        o->connections = (unsigned)number;
    } else if (strcmp(flag, "-n") == 0) {
        if (!bench_read_count(value, 1e15, &number))
            return bench_usage(flag, "a number of requests or streams");
        o->count = (uint64_t)number;
    } else {
        double *to = strcmp(flag, "-d") == 0        ? &o->seconds
                     : strcmp(flag, "--rate") == 0  ? &o->rate
                     : strcmp(flag, "--stall") == 0 ? &o->stall
                                                    : &o->timeout;
        if (!bench_read_number(value, 0.001, 1e6, to))
            return bench_usage(flag, to == &o->rate ? "requests or streams a second" : "seconds");
        a->has_seconds |= to == &o->seconds;
    }
    return CMD_OK;
}

// A flag with its value; -1 when there is no such flag.
static int bench_take_flag(struct bench_args *a, const char *flag, const char *value)
{
    static const char *const numbers[] = {"-c", "-d", "-n", "--rate", "--stall", "--timeout"};
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(flag, numbers[i]) == 0) return bench_take_number(a, flag, value);
    if (strcmp(flag, "-H") == 0) return bench_take_header(a, value);
    if (strcmp(flag, "--mode") == 0) return bench_take_mode(a, value);
    if (strcmp(flag, "-X") == 0)
        a->request.method = value;
    else if (strcmp(flag, "--body") == 0)
        a->request.body = value;
    else
        a->options.html = value;
    return CMD_OK;
}

static bool bench_is_flag(const char *word)
{
    static const char *const flags[] = {"-c",      "-d",        "-n",     "-X",
                                        "-H",      "--body",    "--mode", "--rate",
                                        "--stall", "--timeout", "--html"};
    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(word, flags[i]) == 0) return true;
    return false;
}

static int bench_take_compare(struct bench_args *a, int argc, char **argv, int at)
{
    if (at + 2 >= argc) return cmd_fail(CMD_USAGE, "bench --compare wants two files");
    a->compare[0] = argv[at + 1];
    a->compare[1] = argv[at + 2];
    return CMD_OK;
}

static int bench_take_url(struct bench_args *a, const char *word)
{
    if (word[0] == '-')
        return cmd_fail(CMD_USAGE, "bench does not know %s (photon bench --help)", word);
    if (a->options.url)
        return cmd_fail(CMD_USAGE, "bench takes one URL, not also %s%s", word,
                        a->options.json ? " (--json writes to standard output)" : "");
    a->options.url = word;
    return CMD_OK;
}

static int bench_read_args(struct bench_args *a, int argc, char **argv)
{
    int code = CMD_OK;
    for (int i = 1; i < argc && code == CMD_OK; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            a->options.json = true;
        } else if (strcmp(argv[i], "--compare") == 0) {
            code = bench_take_compare(a, argc, argv, i);
            i += 2;
        } else if (!bench_is_flag(argv[i])) {
            code = bench_take_url(a, argv[i]);
        } else if (i + 1 == argc) {
            code = cmd_fail(CMD_USAGE, "bench %s wants a value", argv[i]);
        } else {
            code = bench_take_flag(a, argv[i], argv[i + 1]);
            i++;
        }
    }
    if (code == CMD_OK && !a->options.url && !a->compare[0])
        return cmd_fail(CMD_USAGE, "bench wants a URL (photon bench --help)");
    return code;
}

static void bench_complete(struct bench_args *a)
{
    struct bench_options *o = &a->options;
    if (!a->has_seconds && !o->count) o->seconds = 10;
    if (o->count && o->count < o->connections) o->connections = (unsigned)o->count;
}

static int bench_refuse_file(const char *path)
{
    const char *advice = errno == ENOENT ? "; make its folder, or name another --html FILE" : "";
    return cmd_fail(CMD_FAILED, "cannot write the report %s: %s%s", path, strerror(errno), advice);
}

// A run is not made in vain for a report that cannot be written. errno tells why not.
static bool bench_can_write(const char *path)
{
    FILE *file = fopen(path, "ab");
    return file && fclose(file) == 0;
}

static int bench_save(const char *path, struct slice text)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(text.ptr, 1, text.len, file) == text.len;
    if (file && fclose(file) != 0) ok = false;
    return ok ? CMD_OK : bench_refuse_file(path);
}

// A run in which nothing at all succeeded has failed.
static int bench_judge(const struct bench_result *r)
{
    if (r->responses || r->events || r->streams_open) return CMD_OK;
    if (!bench_errors(r)) return cmd_fail(CMD_FAILED, "bench: no response came");
    for (unsigned i = 0; i < BENCH_ERRORS; i++)
        if (r->errors[i])
            return cmd_fail(CMD_FAILED, "bench: nothing succeeded: %s", r->examples[i]);
    return CMD_FAILED;
}

static int bench_tell(const struct bench_options *o, const struct bench_result *r)
{
    struct buf text = {0};
    int code = CMD_OK;
    if (!(o->json ? bench_json_write(&text, o, r) : bench_report_write(&text, o, r)))
        code = cmd_fail(CMD_FAILED, "not enough memory");
    else
        fwrite(text.ptr, 1, text.len, stdout);
    fflush(stdout);
    text.len = 0;
    if (code == CMD_OK && o->html)
        code = bench_html_write(&text, o, r) ? bench_save(o->html, buf_slice(&text))
                                             : cmd_fail(CMD_FAILED, "not enough memory");
    buf_reset(&text);
    if (code == CMD_OK && o->json && bench_is_limit(r))
        fputs("photon: bench: the client was the limit, the server may be able to do more\n",
              stderr);
    return code == CMD_OK ? bench_judge(r) : code;
}

static int bench_measure(struct bench_args *a)
{
    char error[BENCH_ERROR];
    struct bench_result *r = mem_zalloc(sizeof(*r));
    int code;
    bench_complete(a);
    if (!r)
        code = cmd_fail(CMD_FAILED, "not enough memory");
    else if (!bench_request_make(&a->options, &a->request, error, sizeof(error)))
        code = cmd_fail(CMD_USAGE, "bench: %s", error);
    else if (a->options.html && !bench_can_write(a->options.html))
        code = bench_refuse_file(a->options.html);
    else if (!bench_run(&a->options, r, error, sizeof(error)))
        code = cmd_fail(CMD_FAILED, "bench: %s", error);
    else
        code = bench_tell(&a->options, r);
    buf_reset(&a->options.request);
    mem_free(r);
    return code;
}

static int bench_compare(const char *const files[2])
{
    char error[BENCH_ERROR];
    struct buf text = {0};
    bool ok = bench_compare_write(&text, files[0], files[1], error, sizeof(error));
    if (ok) fwrite(text.ptr, 1, text.len, stdout);
    buf_reset(&text);
    return ok ? CMD_OK : cmd_fail(CMD_FAILED, "bench: %s", error);
}

static int bench_command(int argc, char **argv)
{
    struct bench_args a = {.options = {.connections = 10, .stall = 5, .timeout = 10}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        cmd_print_help(&cmd_bench);
        return CMD_OK;
    }
    int code = bench_read_args(&a, argc, argv);
    if (code != CMD_OK) return code;
    return a.compare[0] ? bench_compare(a.compare) : bench_measure(&a);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure any SSE or HTTP endpoint",
    .help =
        "usage: photon bench URL [options]\n"
        "       photon bench --compare A.json B.json\n"
        "\n"
        "URL is http://HOST:PORT/PATH or unix:/PATH.sock:/PATH. An event stream is measured by "
        "its\n"
        "events, anything else by its requests.\n"
        "\n"
        "  -c N             connections (10)\n"
        "  -d SECONDS       how long (10, or no limit when -n is given)\n"
        "  -n N             how many requests or streams in all\n"
        "  -X METHOD        GET, or POST when there is a body\n"
        "  -H 'NAME: VALUE' a header of the request; may be repeated\n"
        "  --body TEXT      the body of the request; @FILE reads it from a file\n"
        "  --mode MODE      auto (by the content type), sse, http\n"
        "  --rate R         begin R requests (or streams) a second; latency then counts from\n"
        "                   when each was due, so that waiting behind a slow one is not left out\n"
        "  --stall SECONDS  count silences of a stream that are longer (5)\n"
        "  --timeout SECONDS  for connecting, and for a response (of a stream: its head) (10)\n"
        "  --json           the result as JSON on standard output\n"
        "  --html FILE      a report with plots\n"
        "\n"
        "The exit code is 0 when something succeeded, 1 when nothing did, 2 for wrong usage.\n",
    .run = bench_command,
};
