#include "bench_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include "base/mem.h"
#include "bench_client.h"
#include "bench_live.h"

enum { BENCH_CONNECTING = 256, BENCH_OTHER_FILES = 32 };

struct bench_slot *bench_run_slot(struct bench_run *run, uint64_t now)
{
    struct bench_slot *slot = bench_series_at(&run->result->series, now - run->begun);
    uint64_t bytes = atomic_load_explicit(&run->counters.bytes_in, memory_order_relaxed);
    slot->bytes += bytes - run->bytes_told;
    run->bytes_told = bytes;
    return slot;
}

bool bench_run_take_ticket(struct bench_run *run)
{
    if (run->is_over || run->left == 0) return false;
    run->left--;
    return true;
}

void bench_run_park(struct bench_run *run)
{
    if (--run->busy == 0) loop_stop(&run->loop);
}

void bench_run_connect(struct bench_run *run, struct bench_client *c)
{
    if (run->connecting == BENCH_CONNECTING) {
        list_append(&run->queue, &c->node);
        return;
    }
    run->connecting++;
    bench_client_connect(c);
}

void bench_run_connected(struct bench_run *run)
{
    struct list *node = list_take(&run->queue);
    run->connecting--;
    if (node) bench_run_connect(run, list_entry(node, struct bench_client, node));
}

static void bench_run_on_due(struct bench_pace *pace)
{
    struct bench_run *run = list_entry(pace, struct bench_run, pace);
    struct list *node = NULL;
    loop_refresh(&run->loop);
    while (bench_pace_next(pace) <= uv_hrtime() && (node = list_take(&run->ready))) {
        uint64_t due = bench_pace_next(pace);
        pace->taken++;
        bench_client_send(list_entry(node, struct bench_client, node), due);
    }
    if (!list_is_empty(&run->ready)) bench_pace_arm(pace);
}

// Whoever is free takes the request that has waited longest.
void bench_run_pace(struct bench_run *run, struct bench_client *c)
{
    if (run->options->rate == 0) {
        bench_client_send(c, 0);
        return;
    }
    list_append(&run->ready, &c->node);
    if (bench_pace_next(&run->pace) <= uv_hrtime())
        bench_run_on_due(&run->pace);
    else
        bench_pace_arm(&run->pace);
}

static void bench_run_on_end(struct timer *timer)
{
    loop_stop(&list_entry(timer, struct bench_run, end)->loop);
}

static void bench_run_on_signal(uv_signal_t *handle, int number)
{
    struct bench_run *run = handle->data;
    (void)number;
    loop_stop(&run->loop);
}

static void bench_run_on_live(struct timer *timer)
{
    struct bench_run *run = list_entry(timer, struct bench_run, live);
    uint64_t bytes = atomic_load_explicit(&run->counters.bytes_in, memory_order_relaxed);
    bench_live_draw(run->options, run->result, (double)(uv_hrtime() - run->begun) / 1e9, bytes);
    timer_start(&run->loop, timer, BENCH_LIVE_MS, bench_run_on_live);
}

// Raises the limit on open files as far as it goes.
static bool bench_run_has_files(unsigned connections, char *error, size_t size)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + BENCH_OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return true;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= wanted) return true;
    snprintf(error, size, "-c %u: only %lu files may be open here (ulimit -n)", connections,
             (unsigned long)limit.rlim_max);
    return false;
}

static double bench_run_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void bench_run_watch_signal(struct bench_run *run, uv_signal_t *handle, int number)
{
    uv_signal_init(&run->loop.uv, handle);
    handle->data = run;
    uv_signal_start(handle, bench_run_on_signal, number);
}

static bool bench_run_open(struct bench_run *run)
{
    const struct bench_options *o = run->options;
    run->clients = mem_zalloc(o->connections * sizeof(*run->clients));
    if (!run->clients || !loop_open(&run->loop, &run->counters)) return false;
    uv_update_time(&run->loop.uv);
    loop_refresh(&run->loop);
    run->begun = uv_hrtime();
    if (o->rate > 0 &&
        !bench_pace_open(&run->pace, &run->loop.uv, o->rate, run->begun, bench_run_on_due)) {
        loop_close(&run->loop);
        return false;
    }
    list_init(&run->queue);
    list_init(&run->ready);
    bench_run_watch_signal(run, &run->interrupt, SIGINT);
    bench_run_watch_signal(run, &run->terminate, SIGTERM);
    run->left = o->count ? o->count : UINT64_MAX;
    run->busy = o->connections;
    return true;
}

static void bench_run_begin(struct bench_run *run)
{
    const struct bench_options *o = run->options;
    uint64_t ms = (uint64_t)ceil(o->seconds * 1000) + 1; // the loop's clock has whole milliseconds
    if (o->seconds > 0) timer_start(&run->loop, &run->end, ms, bench_run_on_end);
    if (bench_live_is_wanted()) bench_run_on_live(&run->live);
    for (unsigned i = 0; i < o->connections; i++) {
        bench_client_init(&run->clients[i], run);
        bench_client_go_on(&run->clients[i]);
    }
}

// Requests that were due and never sent have waited, too.
static void bench_run_note_overdue(struct bench_run *run, uint64_t now)
{
    struct bench_result *r = run->result;
    if (run->options->rate == 0) return;
    for (uint64_t due; run->left > 0 && (due = bench_pace_next(&run->pace)) <= now; run->left--) {
        run->pace.taken++;
        r->unfinished++;
        histogram_add(&r->latency, now - due, 1);
        if (now - due > r->oldest) r->oldest = now - due;
    }
}

static void bench_run_close(struct bench_run *run)
{
    uint64_t now = uv_hrtime();
    run->is_over = true;
    run->result->seconds = (double)(now - run->begun) / 1e9;
    bench_run_slot(run, now);
    for (unsigned i = 0; i < run->options->connections; i++)
        bench_client_stop(&run->clients[i], now);
    bench_run_note_overdue(run, now);
    run->result->bytes = run->bytes_told;
    timer_stop(&run->end);
    timer_stop(&run->live);
    if (bench_live_is_wanted()) bench_live_erase();
    if (run->options->rate > 0) bench_pace_close(&run->pace);
    uv_close((uv_handle_t *)&run->interrupt, NULL);
    uv_close((uv_handle_t *)&run->terminate, NULL);
    loop_close(&run->loop);
    mem_free(run->clients);
}

bool bench_run(const struct bench_options *options, struct bench_result *result, char *error,
               size_t size)
{
    struct bench_run run = {.options = options, .result = result};
    *result = (struct bench_result){.mode = options->mode, .started = time(NULL)};
    if (!bench_run_has_files(options->connections, error, size)) return false;
    if (!bench_run_open(&run)) {
        mem_free(run.clients);
        snprintf(error, size, "not enough memory or files for %u connections",
                 options->connections);
        return false;
    }
    double cpu = bench_run_cpu();
    bench_run_begin(&run);
    loop_run(&run.loop);
    result->cpu_seconds = bench_run_cpu() - cpu;
    bench_run_close(&run);
    if (result->mode == BENCH_AUTO) result->mode = BENCH_HTTP;
    return true;
}
