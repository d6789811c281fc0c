#include "base/log_ring.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/log_line.h"
#include "base/mem.h"

enum {
    LOG_RING_SIZE = 1 << 20,
    LOG_RING_STACK = 256 << 10,
    LOG_RING_PAUSE = 10,      // milliseconds in which lines gather after a write
    LOG_RING_PATIENCE = 2000, // milliseconds without progress after which log_close gives up
};

enum log_writer {
    LOG_WRITER_BUSY,
    LOG_WRITER_PAUSING, // wakes by itself, need not be told of a line
    LOG_WRITER_IDLE,
    LOG_WRITER_GONE,
};

static pthread_mutex_t log_ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_ring_wake, log_ring_moved;
static _Atomic uint64_t log_ring_lost_lines;

// All of it under log_ring_lock; what lies between tail and head the writer reads without.
static struct {
    bool is_open, is_closing, is_json;
    enum log_writer writer;
    pthread_t thread;
    char *bytes;
    uint64_t head, tail; // since the ring was last empty
    uint64_t unreported; // lines lost since the last notice
} log_ring_state;

static struct timespec log_ring_deadline(long milliseconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += milliseconds * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

// False when standard error takes nothing more.
static bool log_ring_wait_writable(void)
{
    struct pollfd error = {.fd = STDERR_FILENO, .events = POLLOUT};
    return (errno == EAGAIN && poll(&error, 1, -1) > 0) || errno == EINTR;
}

static void log_ring_write_direct(struct slice line)
{
    while (line.len) {
        ssize_t n = write(STDERR_FILENO, line.ptr, line.len);
        if (n >= 0)
            line = slice_from(line, (size_t)n);
        else if (!log_ring_wait_writable())
            return;
    }
}

static bool log_ring_append(struct slice line)
{
    if (line.len > LOG_RING_SIZE - (log_ring_state.head - log_ring_state.tail)) return false;
    size_t at = log_ring_state.head % LOG_RING_SIZE;
    size_t first = line.len < LOG_RING_SIZE - at ? line.len : LOG_RING_SIZE - at;
    memcpy(log_ring_state.bytes + at, line.ptr, first);
    memcpy(log_ring_state.bytes, line.ptr + first, line.len - first);
    log_ring_state.head += line.len;
    return true;
}

static bool log_ring_is_half_full(void)
{
    return log_ring_state.head - log_ring_state.tail > LOG_RING_SIZE / 2;
}

void log_ring_put(struct slice line)
{
    pthread_mutex_lock(&log_ring_lock);
    bool is_open = log_ring_state.is_open;
    if (is_open && !log_ring_append(line)) {
        log_ring_state.unreported++;
        atomic_fetch_add_explicit(&log_ring_lost_lines, 1, memory_order_relaxed);
    }
    bool has_news = log_ring_state.writer == LOG_WRITER_IDLE ||
                    (log_ring_state.writer == LOG_WRITER_PAUSING && log_ring_is_half_full());
    if (is_open && has_news) {
        log_ring_state.writer = LOG_WRITER_BUSY;
        pthread_cond_signal(&log_ring_wake);
    }
    pthread_mutex_unlock(&log_ring_lock);
    if (!is_open) log_ring_write_direct(line);
}

// How many of the bytes from `tail` to `head` are done with. Runs without the lock.
static size_t log_ring_write(uint64_t tail, uint64_t head)
{
    size_t len = head - tail, at = tail % LOG_RING_SIZE;
    size_t first = len < LOG_RING_SIZE - at ? len : LOG_RING_SIZE - at;
    struct iovec parts[] = {{log_ring_state.bytes + at, first},
                            {log_ring_state.bytes, len - first}};
    ssize_t n = writev(STDERR_FILENO, parts, 2);
    if (n >= 0) return (size_t)n;
    return log_ring_wait_writable() ? 0 : len;
}

static void log_ring_report_lost(void)
{
    struct log_line line;
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_REALTIME, &now);
    int len = snprintf(text, sizeof text, "%llu log lines were dropped: the ring was full",
                       (unsigned long long)log_ring_state.unreported);
    log_line_message(&line, log_ring_state.is_json, &now, "warn", slice_of(text, (size_t)len));
    if (log_ring_append(slice_of(line.bytes, line.len))) log_ring_state.unreported = 0;
}

// After a write the writer lets lines gather, so that a busy server pays one write for many and
// rarely has to wake anyone.
static void log_ring_pause(void)
{
    if (log_ring_state.is_closing || log_ring_is_half_full()) return;
    struct timespec until = log_ring_deadline(LOG_RING_PAUSE);
    log_ring_state.writer = LOG_WRITER_PAUSING;
    while (log_ring_state.writer == LOG_WRITER_PAUSING && !log_ring_state.is_closing) {
        if (pthread_cond_timedwait(&log_ring_wake, &log_ring_lock, &until)) break;
    }
    log_ring_state.writer = LOG_WRITER_BUSY;
}

static void log_ring_wait_line(void)
{
    log_ring_state.head = log_ring_state.tail = 0; // the pages at the start are warm
    while (log_ring_state.head == 0 && !log_ring_state.is_closing) {
        log_ring_state.writer = LOG_WRITER_IDLE;
        pthread_cond_wait(&log_ring_wake, &log_ring_lock);
    }
    log_ring_state.writer = LOG_WRITER_BUSY;
}

static void *log_ring_run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "photon-log");
    pthread_mutex_lock(&log_ring_lock);
    for (;;) {
        if (log_ring_state.head == log_ring_state.tail) log_ring_wait_line();
        if (log_ring_state.head == log_ring_state.tail) break;
        uint64_t tail = log_ring_state.tail, head = log_ring_state.head;
        pthread_mutex_unlock(&log_ring_lock);
        size_t done = log_ring_write(tail, head);
        pthread_mutex_lock(&log_ring_lock);
        log_ring_state.tail += done;
        if (done) pthread_cond_signal(&log_ring_moved);
        if (log_ring_state.unreported) log_ring_report_lost();
        log_ring_pause();
    }
    log_ring_state.writer = LOG_WRITER_GONE;
    pthread_cond_signal(&log_ring_moved);
    pthread_mutex_unlock(&log_ring_lock);
    return NULL;
}

static void log_ring_before_fork(void)
{
    pthread_mutex_lock(&log_ring_lock);
}

static void log_ring_after_fork_parent(void)
{
    pthread_mutex_unlock(&log_ring_lock);
}

// The child has no writer, and what is in the ring its parent writes.
static void log_ring_after_fork_child(void)
{
    if (log_ring_state.is_open) mem_free(log_ring_state.bytes);
    memset(&log_ring_state, 0, sizeof log_ring_state);
    pthread_mutex_unlock(&log_ring_lock);
}

static void log_ring_register(void)
{
    pthread_atfork(log_ring_before_fork, log_ring_after_fork_parent, log_ring_after_fork_child);
    atexit(log_ring_close);
}

// Signals are for the loops: the writer takes none.
static bool log_ring_start_thread(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return false;
    pthread_attr_setstacksize(&attributes, LOG_RING_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&log_ring_state.thread, &attributes, log_ring_run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

static bool log_ring_init_conditions(void)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes)) return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool ok = !pthread_cond_init(&log_ring_wake, &attributes);
    ok = ok && !pthread_cond_init(&log_ring_moved, &attributes);
    pthread_condattr_destroy(&attributes);
    return ok;
}

bool log_ring_open(bool is_json)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (log_ring_state.is_open) return true;
    char *bytes = mem_alloc(LOG_RING_SIZE);
    if (!bytes || !log_ring_init_conditions()) {
        mem_free(bytes);
        return false;
    }
    pthread_once(&once, log_ring_register);
    pthread_mutex_lock(&log_ring_lock);
    memset(&log_ring_state, 0, sizeof log_ring_state);
    log_ring_state.bytes = bytes;
    log_ring_state.is_json = is_json;
    log_ring_state.is_open = log_ring_start_thread();
    if (!log_ring_state.is_open) mem_free(bytes);
    pthread_mutex_unlock(&log_ring_lock);
    return log_ring_state.is_open;
}

// Waits for the writer to end, as long as it gets anywhere. A reader that has stopped to read must
// not keep the server from ending.
static bool log_ring_wait_writer(void)
{
    while (log_ring_state.writer != LOG_WRITER_GONE) {
        uint64_t tail = log_ring_state.tail;
        struct timespec until = log_ring_deadline(LOG_RING_PATIENCE);
        int error = 0;
        while (!error && log_ring_state.tail == tail && log_ring_state.writer != LOG_WRITER_GONE) {
            error = pthread_cond_timedwait(&log_ring_moved, &log_ring_lock, &until);
        }
        if (error && log_ring_state.tail == tail && log_ring_state.writer != LOG_WRITER_GONE)
            return false;
    }
    return true;
}

void log_ring_close(void)
{
    pthread_mutex_lock(&log_ring_lock);
    if (!log_ring_state.is_open || log_ring_state.is_closing) {
        pthread_mutex_unlock(&log_ring_lock);
        return;
    }
    log_ring_state.is_closing = true;
    pthread_cond_signal(&log_ring_wake);
    bool is_done = log_ring_wait_writer();
    pthread_t thread = log_ring_state.thread;
    log_ring_state.is_open =
        !is_done; // a stuck writer still owns the ring, and later lines are dropped
    pthread_mutex_unlock(&log_ring_lock);
    if (!is_done) return;
    pthread_join(thread, NULL);
    mem_free(log_ring_state.bytes);
}

uint64_t log_ring_lost(void)
{
    return atomic_load_explicit(&log_ring_lost_lines, memory_order_relaxed);
}
