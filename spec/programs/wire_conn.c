// The bytes of a conn: every split, backpressure, order, and what it costs.
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include "base/mem.h"
#include "wire_probe.h"

enum { LARGE = (10 << 20) / PROBE_SCALE };

static struct probe probe;
static uint32_t seed = 12345;
static char *sent, *got;

// System calls are counted by standing in for them.
static unsigned recvs, sends, polls;

ssize_t recv(int fd, void *to, size_t len, int flags)
{
    recvs++;
    return syscall(SYS_recvfrom, fd, to, len, flags, NULL, NULL);
}

ssize_t send(int fd, const void *from, size_t len, int flags)
{
    sends++;
    return syscall(SYS_sendto, fd, from, len, flags, NULL, 0);
}

int epoll_ctl(int poll, int what, int fd, struct epoll_event *event)
{
    polls++;
    return (int)syscall(SYS_epoll_ctl, poll, what, fd, event);
}

static void fill(size_t len)
{
    sent = malloc(len);
    got = calloc(1, len);
    for (size_t i = 0; i < len; i++) sent[i] = (char)report_random(&seed);
}

static void compare(size_t len)
{
    CHECK(memcmp(sent, got, len) == 0);
    free(sent);
    free(got);
}

// Takes some of what it gets, all in the end, and sends that back.
static size_t echo_some(struct probe *p, char *bytes, size_t len)
{
    size_t take = report_random(&seed) % 3 ? len : report_random(&seed) % (len + 1);
    buf_append(conn_stage(p->conn), bytes, take);
    p->is_inside = true;
    if (report_random(&seed) % 2) conn_flush(p->conn);
    if (take < len || p->conn->out.len) conn_poke(p->conn);
    p->is_inside = false;
    if (p->conn->out.len > 65536) conn_stop_reading(p->conn, true);
    if (len == take && conn_backlog(p->conn) == 0) conn_stop_reading(p->conn, false);
    return take;
}

static void echo_resume(struct probe *p)
{
    conn_stop_reading(p->conn, false);
    conn_poke(p->conn);
}

static void check_echo(bool is_tcp)
{
    size_t size = (2 << 20) / PROBE_SCALE, written = 0, read_len = 0;
    fill(size);
    probe_begin(&probe, is_tcp);
    probe.on_bytes = echo_some;
    probe.on_drain = echo_resume;
    conn_limit_in(probe.conn, 10000);
    while (read_len < size && !probe_is_stuck()) {
        size_t chunk = report_random(&seed) % 30000 + 1;
        if (chunk > size - written) chunk = size - written;
        ssize_t n = chunk ? write(probe.peer, sent + written, chunk) : 0;
        if (n > 0) written += (size_t)n, probe_went_on();
        n = read(probe.peer, got + read_len,
                 report_random(&seed) % 30000 + 1 < size - read_len
                     ? report_random(&seed) % 9000 + 1
                     : size - read_len);
        if (n > 0) read_len += (size_t)n, probe_went_on();
        conn_flush(probe.conn);
        if (conn_backlog(probe.conn) == 0) echo_resume(&probe);
        loop_run_once(&loop, n > 0 ? 0 : 1);
        CHECK(probe.conn->in.len <= 10000);
    }
    EQUAL(read_len, size);
    compare(size);
    probe_turns(2);
    EQUAL(probe.conn->in.len, 0);
    CHECK(!probe.conn->in.ptr && !probe.conn->out.ptr);
    probe_finish(&probe);
}

static void echo_over_unix(void)
{
    check_echo(false);
}
static void echo_over_tcp(void)
{
    check_echo(true);
}

static size_t produced, highest, total;

static void produce(struct probe *p)
{
    while (produced < total && conn_backlog(p->conn) < 65536) {
        size_t n = report_random(&seed) % 20000 + 1;
        if (n > total - produced) n = total - produced;
        buf_append(conn_stage(p->conn), sent + produced, n);
        produced += n;
        p->is_inside = true;
        conn_flush(p->conn);
        p->is_inside = false;
        if (conn_backlog(p->conn) > highest) highest = conn_backlog(p->conn);
    }
}

static void check_slow_reader(bool is_tcp)
{
    size_t read_len = 0;
    total = LARGE;
    fill(total);
    produced = highest = 0;
    probe_begin(&probe, is_tcp);
    probe.on_drain = produce;
    // Less than what waits, so that the backlog never gets empty before the end.
    int room = 8192;
    setsockopt(probe.conn->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    uint64_t out_before = counters.bytes_out;
    produce(&probe);
    while (read_len < total && !probe_is_stuck()) {
        size_t want = report_random(&seed) % 60000 + 1;
        ssize_t n =
            read(probe.peer, got + read_len, want < total - read_len ? want : total - read_len);
        if (n > 0) read_len += (size_t)n, probe_went_on();
        loop_run_once(&loop, n > 0 ? 0 : 1);
        produce(&probe); // so that it is never empty before the end
        if (probe.conn->out.cap > 300000) CHECK(!"out has grown without bounds");
    }
    EQUAL(read_len, total);
    compare(total);
    CHECK(probe.drains > 0);
    CHECK(highest >= 65536 / PROBE_SCALE && highest < 65536 + 20000);
    EQUAL(counters.bytes_out - out_before, total);
    CHECK(!probe.conn->out.ptr);
    probe_finish(&probe);
}

static void slow_reader_over_unix(void)
{
    check_slow_reader(false);
}
static void slow_reader_over_tcp(void)
{
    check_slow_reader(true);
}

// Adds what comes next in `sent` to the conn in one of the three ways.
static size_t write_mixed(struct conn *c, size_t at, size_t end, struct payload **last)
{
    size_t n = report_random(&seed) % (report_random(&seed) % 2 ? 20000 : 300) + 1;
    if (n > end - at) n = end - at;
    unsigned way = report_random(&seed) % 4;
    if (way < 2) {
        buf_append(conn_stage(c), sent + at, n);
        if (way) conn_flush(c);
        return n;
    }
    payload_release(*last);
    *last = payload_new_copy(slice_of(sent + at, n));
    if (way == 2)
        conn_stage_payload(c, *last, payload_slice(*last));
    else
        conn_send_payload(c, *last, payload_slice(*last));
    return n;
}

static void mixed_writes_keep_their_order(void)
{
    size_t size = (4 << 20) / PROBE_SCALE, written = 0, read_len = 0;
    struct payload *last = NULL;
    fill(size);
    probe_begin(&probe, false);
    while (read_len < size && !probe_is_stuck()) {
        for (int i = 0; i < 20 && written < size && conn_backlog(probe.conn) < 500000; i++)
            written += write_mixed(probe.conn, written, size, &last);
        conn_flush(probe.conn);
        size_t want = report_random(&seed) % 50000 + 1;
        ssize_t n =
            read(probe.peer, got + read_len, want < size - read_len ? want : size - read_len);
        if (n > 0) read_len += (size_t)n, probe_went_on();
        loop_run_once(&loop, n > 0 ? 0 : 1);
    }
    EQUAL(read_len, size);
    compare(size);
    probe_turns(2);
    EQUAL(conn_backlog(probe.conn), 0);
    EQUAL(atomic_load(&last->refs), 1);
    payload_release(last);
    probe_finish(&probe);
}

static void payloads_are_dropped_with_the_conn(void)
{
    struct payload *p = payload_new(1 << 20);
    memset(payload_data(p), 'x', 1 << 20);
    probe_begin(&probe, false);
    buf_append(conn_stage(probe.conn), "head", 4);
    conn_send_payload(probe.conn, p, payload_slice(p));
    conn_send_payload(probe.conn, p, payload_slice(p));
    CHECK(conn_backlog(probe.conn) > (1 << 20));
    EQUAL(atomic_load(&p->refs), 3);
    conn_close(probe.conn);
    conn_send_payload(probe.conn, p, payload_slice(p));
    conn_stage_payload(probe.conn, p, payload_slice(p));
    EQUAL(atomic_load(&p->refs), 1);
    probe_finish(&probe);
    payload_release(p);
}

static size_t reply_fixed(struct probe *p, char *bytes, size_t len)
{
    (void)bytes;
    if (len < 100) return 0;
    conn_stop_reading(p->conn, true); // costs nothing when it is taken back in time
    buf_append(conn_stage(p->conn), sent, 150);
    conn_flush(p->conn);
    conn_stop_reading(p->conn, false);
    return len;
}

// The steady state of a static route.
static void one_read_and_one_write(void)
{
    enum { ROUNDS = 50 };
    char request[100] = {0}, reply[150];
    fill(150);
    probe_begin(&probe, true);
    probe.on_bytes = reply_fixed;
    for (int i = 0; i < ROUNDS + 3; i++) {
        static unsigned long allocations;
        if (i == 3) recvs = sends = polls = 0, allocations = mem_count();
        CHECK(write(probe.peer, request, 100) == 100);
        EQUAL(probe_read(&probe, reply, 150), 150);
        if (i == ROUNDS + 2 && PROBE_SCALE == 1) EQUAL(mem_count() - allocations, 0);
    }
    if (PROBE_SCALE == 1) {
        EQUAL(recvs, ROUNDS);
        EQUAL(sends, ROUNDS);
        EQUAL(polls, 0);
    }
    memcpy(got, reply, 150);
    compare(150);
    probe_finish(&probe);
}

static size_t take_none(struct probe *p, char *bytes, size_t len)
{
    (void)p, (void)bytes, (void)len;
    return 0;
}

// Kept bytes come again with new ones, and with a poke; a larger limit is felt at the poke.
static void bytes_are_kept(void)
{
    probe_begin(&probe, false);
    probe.on_bytes = take_none;
    conn_limit_in(probe.conn, 10);
    CHECK(probe_write(&probe, "0123", 4));
    probe_turns(12);
    EQUAL(probe.seen, 4);
    CHECK(probe_write(&probe, "456789abcdef", 12));
    probe_turns(12);
    EQUAL(probe.seen, 10);
    CHECK(memcmp(probe.conn->in.ptr, "0123456789", 10) == 0);
    unsigned calls = probe.calls;
    conn_poke(probe.conn);
    conn_poke(probe.conn);
    EQUAL(probe.calls, calls);
    probe_turns(2);
    EQUAL(probe.calls, calls + 1);
    conn_limit_in(probe.conn, 100);
    conn_poke(probe.conn);
    probe_turns(12);
    EQUAL(probe.seen, 16);
    probe_finish(&probe);
}

// Whatever allocation fails, the conn ends once and nothing leaks (the sanitizer looks).
static void every_allocation_may_fail(void)
{
    static char text[3000];
    for (int n = 0; n < 40; n++) {
        struct payload *p = payload_new(200000);
        memset(payload_data(p), 'x', 200000);
        probe_begin(&probe, false);
        probe.on_bytes = n % 2 ? take_none : echo_some;
        mem_fail_after(n / 2);
        ssize_t ignored = write(probe.peer, text, sizeof(text));
        (void)ignored;
        probe_turns(2);
        for (int i = 0; i < 3 && probe.conn; i++) {
            buf_append(conn_stage(probe.conn), text, sizeof(text));
            conn_stage_payload(probe.conn, p, payload_slice(p));
            conn_send_payload(probe.conn, p, payload_slice(p));
            conn_flush(probe.conn);
        }
        mem_fail_after(-1);
        probe_finish(&probe);
        EQUAL(atomic_load(&p->refs), 1);
        payload_release(p);
    }
}

int main(void)
{
    return report_run((const struct report_case[]){
        {"echo in random chunks over a unix socket", echo_over_unix},
        {"echo in random chunks over TCP", echo_over_tcp},
        {"a slow reader over a unix socket", slow_reader_over_unix},
        {"a slow reader over TCP", slow_reader_over_tcp},
        {"staged bytes and payloads keep their order", mixed_writes_keep_their_order},
        {"payloads are dropped with the conn", payloads_are_dropped_with_the_conn},
        {"a reply costs one read and one write", one_read_and_one_write},
        {"bytes that were not taken are kept, up to the limit", bytes_are_kept},
        {"every allocation may fail", every_allocation_may_fail},
        {0},
    });
}
