// metrics: what is counted, and the text of it; server's answers.
#include "serve/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include "serve/server.h"
#include "serve_probe.h"

static struct counters sum;
static const struct metrics_gauges gauges = {12345678901, 2, 3, 4, 1.5, 0.25, "1.2\"3"};

static void count(struct metrics *m, unsigned worker, uint32_t number, int status)
{
    struct exchange x = {.status = status, .bytes_out = 10};
    metrics_count(m, worker, number, &x);
}

// The whole text as a string, for the caller to free.
static char *text_of(struct metrics *m)
{
    struct buf to = {0};
    CHECK(metrics_write(&to, m, &sum, &gauges));
    char *text = malloc(to.len + 2);
    text[0] = '\n';
    memcpy(text + 1, to.ptr, to.len);
    text[to.len + 1] = '\0';
    buf_reset(&to);
    return text;
}

// How many lines begin so.
static unsigned lines(const char *text, const char *start)
{
    char wanted[300];
    unsigned found = 0;
    snprintf(wanted, sizeof wanted, "\n%s", start);
    for (const char *at = text; (at = strstr(at, wanted)); at++) found++;
    return found;
}

static void has(const char *text, const char *line, const char *file, int at)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s\n", line);
    report_check(lines(text, wanted) == 1, line, file, at);
}

#define HAS(text, line) has(text, line, __FILE__, __LINE__)

static void requests_are_told_by_route(void)
{
    struct metrics *m = metrics_new(2);
    uint32_t users = metrics_route(m, SLICE("GET"), SLICE("/users/:id"));
    uint32_t post = metrics_route(m, SLICE("POST"), SLICE("/users/:id"));
    CHECK(users && post && users != post);
    count(m, 0, users, 200);
    count(m, 1, users, 204);
    count(m, 1, users, 500);
    count(m, 1, post, 302);
    count(m, 0, post, 0);
    count(m, 0, 0, 404);
    count(m, 0, UINT32_MAX, 400);
    count(m, 0, 77, 418);
    char *text = text_of(m);
    HAS(text, "photon_requests_total{method=\"GET\",route=\"/users/:id\",status=\"2xx\"} 2");
    HAS(text, "photon_requests_total{method=\"GET\",route=\"/users/:id\",status=\"5xx\"} 1");
    HAS(text, "photon_requests_total{method=\"POST\",route=\"/users/:id\",status=\"3xx\"} 1");
    HAS(text, "photon_requests_total{method=\"POST\",route=\"/users/:id\",status=\"gone\"} 1");
    HAS(text, "photon_requests_total{method=\"\",route=\"\",status=\"4xx\"} 3");
    HAS(text, "photon_reply_body_bytes_total 80");
    EQUAL(lines(text, "photon_requests_total"), 5);
    free(text);
    metrics_free(m);
}

static void labels_are_escaped(void)
{
    struct metrics *m = metrics_new(1);
    count(m, 0, metrics_route(m, SLICE("A"), SLICE("/\"x\\y\nz")), 200);
    char *text = text_of(m);
    HAS(text, "photon_requests_total{method=\"A\",route=\"/\\\"x\\\\y\\nz\",status=\"2xx\"} 1");
    HAS(text, "photon_build_info{version=\"1.2\\\"3\"} 1");
    free(text);
    metrics_free(m);
}

static uint32_t numbered(struct metrics *m, unsigned i)
{
    char pattern[32];
    int len = snprintf(pattern, sizeof pattern, "/route/%u", i);
    return metrics_route(m, SLICE("GET"), slice_of(pattern, (size_t)len));
}

static void routes_last(void)
{
    enum { ROUTES = 5000 };
    static uint32_t numbers[ROUTES];
    static bool is_seen[METRICS_ROUTES];
    struct metrics *m = metrics_new(3);
    for (unsigned i = 0; i < ROUTES; i++) numbers[i] = numbered(m, i);
    for (unsigned i = 0; i < ROUTES; i++) {
        if (!CHECK(numbers[i] > 0 && numbers[i] < METRICS_ROUTES)) break;
        if (!CHECK(!is_seen[numbers[i]] && numbered(m, i) == numbers[i])) break;
        is_seen[numbers[i]] = true;
        count(m, i % 3, numbers[i], 200);
    }
    char *text = text_of(m);
    EQUAL(lines(text, "photon_requests_total"), ROUTES);
    HAS(text, "photon_requests_total{method=\"GET\",route=\"/route/4321\",status=\"2xx\"} 1");
    free(text);
    metrics_free(m);
}

static void routes_are_bounded(void)
{
    struct metrics *m = metrics_new(1);
    for (unsigned i = 1; i < METRICS_ROUTES; i++)
        if (!CHECK(numbered(m, i) == i)) break;
    unsigned long before = mem_count();
    CHECK(numbered(m, METRICS_ROUTES) == UINT32_MAX);
    EQUAL(numbered(m, 5), 5);
    EQUAL(mem_count(), before);
    metrics_free(m);
}

static void durations_fall_into_buckets(void)
{
    struct metrics *m = metrics_new(2);
    struct exchange x = {.status = 200};
    metrics_count(m, 0, 0, &x); // not timed
    x.started = uv_hrtime() - UINT64_C(3000000000);
    metrics_count(m, 0, 0, &x);
    metrics_count(m, 1, 0, &x);
    x.started = uv_hrtime() - UINT64_C(3600000000000);
    metrics_count(m, 1, 0, &x);
    x.is_stream = true;
    metrics_count(m, 1, 0, &x);
    char *text = text_of(m);
    HAS(text, "photon_request_seconds_bucket{le=\"0.0001\"} 1");
    HAS(text, "photon_request_seconds_bucket{le=\"2.5\"} 1");
    HAS(text, "photon_request_seconds_bucket{le=\"10\"} 3");
    HAS(text, "photon_request_seconds_bucket{le=\"+Inf\"} 4");
    HAS(text, "photon_request_seconds_count 4");
    EQUAL(lines(text, "photon_request_seconds_bucket"), METRICS_BUCKETS + 1);
    char *total = strstr(text, "photon_request_seconds_sum ");
    CHECK(total && strtod(strchr(total, ' '), NULL) >= 3606);
    HAS(text, "photon_requests_total{method=\"\",route=\"\",status=\"2xx\"} 5");
    free(text);
    metrics_free(m);
}

static void every_counter_is_told(void)
{
    struct metrics *m = metrics_new(1);
    uint64_t n = 1000;
    char line[256];
#define SET(name, kind, help) atomic_store(&sum.name, ++n);
    COUNTERS_EACH(SET)
    char *text = text_of(m);
    n = 1000;
#define TOLD(name, kind, help)                                                                     \
    n++;                                                                                           \
    snprintf(line, sizeof line, "photon_%s%s %d", #name, #kind[0] == 'c' ? "_total" : "", (int)n); \
    if (strcmp(#name, "requests")) HAS(text, line);                                                \
    snprintf(line, sizeof line, "# TYPE photon_%s%s %s", #name, #kind[0] == 'c' ? "_total" : "",   \
             #kind);                                                                               \
    HAS(text, line);
    COUNTERS_EACH(TOLD)
    HAS(text, "photon_lua_heap_bytes 12345678901");
    HAS(text, "photon_workers 2");
    HAS(text, "photon_generations 3");
    HAS(text, "photon_generation 4");
    HAS(text, "photon_uptime_seconds 1.5");
    HAS(text, "photon_reload_pause_seconds 0.25");
    free(text);
    metrics_free(m);
    sum = (struct counters){0};
}

// A sample stands after the type of its metric, and has a number.
static void the_text_is_well_formed(void)
{
    struct metrics *m = metrics_new(1);
    char type[128] = "", *rest = NULL;
    unsigned samples = 0;
    count(m, 0, metrics_route(m, SLICE("GET"), SLICE("/a b")), 200);
    char *text = text_of(m);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char start[200], *end;
        if (strncmp(line, "# HELP ", 7) == 0) continue;
        if (sscanf(line, "# TYPE %127s", type) == 1) {
            snprintf(start, sizeof start, "# TYPE %s ", type);
            report_check(rest && lines(rest - 1, start) == 0, line, __FILE__, __LINE__);
            continue;
        }
        samples++;
        report_check(strncmp(line, type, strlen(type)) == 0, line, __FILE__, __LINE__);
        strtod(strrchr(line, ' '), &end);
        report_check(*end == '\0', line, __FILE__, __LINE__);
    }
    CHECK(samples > 40);
    free(text);
    metrics_free(m);
}

static struct metrics *busy;
static atomic_bool is_over;

static void *count_always(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; !atomic_load(&is_over); i++) count(busy, 1, i % 3000, 200);
    return NULL;
}

static void counting_goes_on_beside(void)
{
    pthread_t thread;
    busy = metrics_new(2);
    atomic_store(&is_over, false);
    CHECK(pthread_create(&thread, NULL, count_always, NULL) == 0);
    for (unsigned i = 0; i < 2000; i++) {
        CHECK(numbered(busy, i) == i + 1);
        if (i % 500 == 0) free(text_of(busy));
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    metrics_free(busy);
}

static void every_allocation_may_fail(void)
{
    for (long n = 0; n < 200; n++) {
        struct buf to = {0};
        mem_fail_after(n);
        struct metrics *m = metrics_new(2);
        uint32_t number = UINT32_MAX;
        for (unsigned i = 0; m && i < 300; i++) number = numbered(m, i);
        bool is_written = m && metrics_write(&to, m, &sum, &gauges);
        mem_fail_after(-1);
        if (m) {
            count(m, 0, number, 200);
            for (unsigned i = 0; i < 300; i++) CHECK(numbered(m, i) != UINT32_MAX);
        }
        buf_reset(&to);
        metrics_free(m);
        CHECK(n < 199 || is_written);
    }
}

static struct config config;
static struct counters counters[2];
static struct server server = {
    .config = &config, .worker_count = 2, .counters = {&counters[0], &counters[1]}};

static void the_server_sums_up(void)
{
    server.metrics = metrics_new(2);
    counters_add(&counters[0].bytes_in, 5);
    counters_add(&counters[1].bytes_in, 6);
    counters_add(&server.own.bytes_in, 7);
    counters_add(&counters[0].streams, 3);
    counters_add(&counters[1].streams, -1); // opened by one, ended by another
    server_serve_metrics(&server, probe_begin(METHOD_GET));
    EQUAL(probe.x.status, 200);
    EQUAL(probe.ends, 1);
    CHECK(probe_has(probe_head_text(), "text/plain; version=0.0.4"));
    CHECK(probe_has(probe_body_text(), "\nphoton_bytes_in_total 18\n"));
    CHECK(probe_has(probe_body_text(), "\nphoton_streams 2\n"));
    probe_finish();
    metrics_free(server.metrics);
}

static void health_ends_with_the_drain(void)
{
    server_serve_health(&server, probe_begin(METHOD_GET));
    EQUAL(probe.x.status, 200);
    CHECK(probe_has(probe_body_text(), "{\"status\":\"ok\","));
    CHECK(probe_has(probe_head_text(), "content-type: application/json\r\n"));
    probe_finish();
    atomic_store(&server.is_draining, true);
    server_serve_health(&server, probe_begin(METHOD_GET));
    EQUAL(probe.x.status, 503);
    CHECK(probe_has(probe_body_text(), "{\"status\":\"draining\","));
    probe_finish();
    atomic_store(&server.is_draining, false);
}

int main(void)
{
    static const struct report_case cases[] = {
        {"requests are told by route and class", requests_are_told_by_route},
        {"labels are escaped", labels_are_escaped},
        {"routes keep their numbers", routes_last},
        {"routes are bounded", routes_are_bounded},
        {"durations fall into buckets", durations_fall_into_buckets},
        {"every counter is told", every_counter_is_told},
        {"the text is well formed", the_text_is_well_formed},
        {"counting goes on beside registering and reading", counting_goes_on_beside},
        {"every allocation may fail", every_allocation_may_fail},
        {"the server sums up", the_server_sums_up},
        {"health ends with the drain", health_ends_with_the_drain},
        {0},
    };
    return report_run(cases);
}
