// How generations come and go in a worker: installed, retired, closed when nothing of them runs.
#include <time.h>
#include "base/log.h"
#include "base/mem.h"
#include "http/http1.h"
#include "script/app_private.h"
#include "script/channel.h"
#include "script/luv.h"
#include "script/offload.h"
#include "script/stream.h"
#include "script/task.h"

// What a reload has to do on the loop is done in pieces: clients are served between them.
enum {
    APP_CHECK_MS = 20, // how often retired parts are looked at
    APP_HURRY_MS = 1,  // when there is a next piece
    APP_PIECE = 128,   // streams ended or handles closed at a time; each takes some microseconds
};

static void app_check(struct timer *timer);

void app_host_init(struct app_host *host, struct server *server, unsigned worker, struct loop *loop,
                   struct counters *counters)
{
    *host = (struct app_host){.handler = {app_serve},
                              .server = server,
                              .worker = worker,
                              .loop = loop,
                              .counters = counters,
                              .limits = server->config->limits};
    host->streams.total = &server->streams;
    list_init(&host->streams.streams);
    list_init(&host->parts);
}

void app_watch_retired(struct app_host *host)
{
    if (!timer_is_running(&host->check)) {
        timer_start(host->loop, &host->check, APP_CHECK_MS, app_check);
    }
}

// This thread's: waiting for a processor is not the reload's doing.
static uint64_t app_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void app_note_pause(const struct app_host *host, uint64_t began)
{
    _Atomic uint64_t *longest = &host->server->reload_pause;
    uint64_t took = app_cpu_ns() - began, known = atomic_load(longest);
    if (atomic_load(&host->server->is_draining)) return;
    while (took > known && !atomic_compare_exchange_weak(longest, &known, took)) continue;
}

// What is bound to the loop is closed here; the state itself is closed by the reaper.
static bool app_close(struct app_part *part)
{
    struct vm *vm = part->vm;
    if (!vm || vm->phase == VM_ABANDONED) return true;
    if (!part->is_closing) {
        part->is_closing = true;
        vm->phase = VM_CLOSING;
        channel_lua_close(vm);
        offload_close(vm);
    }
    luv_close_handles(vm, APP_PIECE);
    return luv_open_handles(vm) == 0;
}

static bool app_is_quiet(const struct app_part *part)
{
    const struct vm *vm = part->vm;
    if (!part->is_retired || part->busy > 0) return false;
    if (!vm || vm->phase == VM_ABANDONED) return true;
    return vm->task_count == 0 && (part->is_ending || part->is_closing || !luv_is_busy(vm));
}

// Whether a function of the door that C has called (on_stop above all) still runs.
static bool app_is_called(const struct vm *vm)
{
    for (const struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        if (list_entry(n, struct task, node)->kind == TASK_NAMED) return true;
    }
    return false;
}

// luv's callbacks would start tasks for ever: when on_stop has ended, nothing is waited for. True
// when some handles are still open.
static bool app_end(struct app_part *part)
{
    struct vm *vm = part->vm;
    if (!part->is_ending || part->busy > 0 || part->is_closing) return false;
    if (!vm || vm->phase == VM_ABANDONED || app_is_called(vm)) return false;
    luv_close_handles(vm, APP_PIECE);
    task_cancel_all(vm, TASK_SPARE_NONE);
    return luv_open_handles(vm) > 0;
}

void app_note_memory(struct app_host *host)
{
    size_t bytes = 0;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        if (part->vm && part->vm->phase != VM_ABANDONED) bytes += part->vm->memory;
    }
    atomic_store_explicit(&host->server->vm_bytes[host->worker], bytes, memory_order_relaxed);
}

// What its streams owe (req:on_close) may wait as long as a stop of the server would.
static void app_make_end(struct app_host *host, struct app_part *part)
{
    if (!part->is_retired || !part->vm || part->vm->phase == VM_ABANDONED) return;
    part->is_ending = true;
    if (!part->ended_at) part->ended_at = host->loop->now;
    bool has_time = host->loop->now - part->ended_at < host->limits.drain;
    if (!stream_lua_end_some(part->vm, &host->streams, true, APP_PIECE)) return;
    channel_lua_end_all(part->vm);
    task_cancel_all(part->vm, has_time ? TASK_SPARE_CLOSERS : TASK_SPARE_NONE);
}

// When more generations than max_generations are alive, the oldest must go.
static void app_limit_generations(struct app_host *host)
{
    unsigned alive = 0;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) alive++;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        if (alive-- <= host->limits.max_generations) break;
        app_make_end(host, list_entry(n, struct app_part, node));
    }
}

static void app_end_streams(struct app_part *part)
{
    const struct vm *vm = part->vm;
    if (!part->ends_streams) return;
    part->ends_streams = vm && vm->phase != VM_ABANDONED &&
                         !stream_lua_end_some(part->vm, &part->host->streams, false, APP_PIECE);
}

static void app_check(struct timer *timer)
{
    struct app_host *host = list_entry(timer, struct app_host, check);
    uint64_t began = app_cpu_ns();
    bool has_retired = false, has_more = false;
    app_limit_generations(host);
    for (struct list *n = host->parts.next, *next; n != &host->parts; n = next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        next = n->next;
        app_end_streams(part);
        has_more |= app_end(part);
        if (app_is_quiet(part) && app_close(part)) {
            list_remove(&part->node);
            app_reap(part);
        } else if (part->is_retired) {
            has_retired = true;
            has_more |= part->ends_streams || part->is_closing;
        }
    }
    if (has_more)
        timer_start(host->loop, &host->check, APP_HURRY_MS, app_check);
    else if (has_retired)
        app_watch_retired(host);
    app_note_pause(host, began);
}

static void app_retire(struct app_part *part)
{
    struct app_host *host = part->host;
    part->is_retired = true;
    app_watch_retired(host);
    if (!part->vm || part->vm->phase == VM_ABANDONED) return;
    // What is kept across reloads has no reader left when the server stops.
    task_cancel_all(part->vm, atomic_load(&host->server->is_draining) ? TASK_SPARE_CLOSERS
                                                                      : TASK_SPARE_SCOPED);
    part->ends_streams = true;
    app_end_streams(part);
    task_call(part->vm, "stop", 0, 0);
}

void app_install(struct app_host *host, struct app_part *part)
{
    struct app_part *old = host->current;
    struct vm *vm = part->vm;
    uint64_t began = app_cpu_ns();
    part->host = host;
    host->current = part;
    host->limits = part->generation->limits;
    if (host->http1) http1_host_set_limits(host->http1, &host->limits);
    list_append(&host->parts, &part->node);
    atomic_store(&host->server->generation, part->generation->number);
    vm->phase = VM_SERVING;
    vm->guard = host->guard;
    vm->streams = &host->streams;
    vm->channels = host->channels;
    if (!part->has_started && !task_call(vm, "start", host->worker == 0, 0) && host->on_started) {
        host->on_started(host, "not enough memory to start");
    }
    if (old) app_retire(old);
    app_note_memory(host);
    if (old) app_note_pause(host, began);
}

void app_retire_all(struct app_host *host)
{
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        list_entry(n, struct app_part, node)->is_ending = true;
    }
    if (host->current && !host->current->is_retired) app_retire(host->current);
}

void app_abort_all(struct app_host *host)
{
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        if (part->vm && part->vm->phase != VM_ABANDONED) task_cancel_all(part->vm, TASK_SPARE_NONE);
    }
}

bool app_is_empty(const struct app_host *host)
{
    return list_is_empty(&host->parts);
}
