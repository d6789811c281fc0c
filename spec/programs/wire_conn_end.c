// How a conn ends: end of file, hang-up, reset, stall, and each kind of close.
#include <stdlib.h>
#include "wire/timer.h"
#include "wire_probe.h"

static struct probe probe;
static char bytes[1 << 20], got[11 << 20];

static size_t take_none(struct probe *p, char *b, size_t len)
{
    (void)p, (void)b, (void)len;
    return 0;
}

// How often the loop goes round while nothing happens; a spinning one does so thousands of times.
static unsigned rounds;

static void on_round(uv_prepare_t *prepare)
{
    (void)prepare;
    rounds++;
}

static void on_rest(struct timer *timer)
{
    (void)timer;
    loop_stop(&loop);
}

static bool is_at_rest(void)
{
    uv_prepare_t prepare;
    struct timer timer = {0};
    rounds = 0;
    uv_prepare_init(&loop.uv, &prepare);
    uv_prepare_start(&prepare, on_round);
    timer_start(&loop, &timer, 40, on_rest);
    loop_run(&loop);
    uv_close((uv_handle_t *)&prepare, NULL);
    loop_run_once(&loop, 0);
    return rounds < 20;
}

// Over TCP, with a reset instead of an end of file.
static void reset_by_peer(void)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(probe.peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(probe.peer);
    probe.peer = -1;
}

static void half_close(void)
{
    char reply[6] = {0};
    probe_begin(&probe, true);
    CHECK(probe_write(&probe, "ask", 3));
    shutdown(probe.peer, SHUT_WR);
    probe_turns(8);
    EQUAL(probe.eofs, 1);
    CHECK(probe.conn->is_eof);
    CHECK(is_at_rest());
    EQUAL(probe.eofs, 1);
    buf_append(conn_stage(probe.conn), "reply", 5);
    conn_close_gracefully(probe.conn);
    EQUAL(probe_read(&probe, reply, 6), 5);
    CHECK(strcmp(reply, "reply") == 0);
    probe_turns(2);
    EQUAL(probe.closes, 1);
    EQUAL(probe.how, CONN_CLOSED);
    probe_finish(&probe);
}

static void hang_up_while_stopped(void)
{
    probe_begin(&probe, true);
    probe.on_bytes = take_none;
    conn_limit_in(probe.conn, 1000);
    CHECK(probe_write(&probe, bytes, 5000));
    shutdown(probe.peer, SHUT_WR);
    probe_turns(1010);
    EQUAL(probe.conn->in.len, 1000);
    EQUAL(probe.eofs, 1);
    CHECK(!probe.conn->is_eof);
    CHECK(is_at_rest());
    EQUAL(probe.eofs, 1);
    probe.on_bytes = NULL; // takes all
    uint64_t before = counters.bytes_in;
    conn_poke(probe.conn);
    while (probe.eofs < 2 && !probe_is_stuck()) loop_run_once(&loop, 1);
    EQUAL(1000 + counters.bytes_in - before, 5000);
    EQUAL(probe.eofs, 2);
    CHECK(probe.conn->is_eof);
    CHECK(is_at_rest());
    probe_finish(&probe);
}

static void stop_and_resume(void)
{
    probe_begin(&probe, false);
    conn_stop_reading(probe.conn, true);
    CHECK(probe_write(&probe, "abc", 3));
    probe_turns(5);
    CHECK(is_at_rest());
    EQUAL(probe.calls, 0);
    conn_stop_reading(probe.conn, false);
    probe_turns(5);
    CHECK(probe.calls > 0);
    probe_finish(&probe);
}

static void check_reset(bool is_stopped, bool has_backlog)
{
    probe_begin(&probe, true);
    conn_stop_reading(probe.conn, is_stopped);
    probe_turns(1);
    if (has_backlog)
        for (int i = 0; i < 10; i++) buf_append(conn_stage(probe.conn), bytes, sizeof(bytes));
    conn_flush(probe.conn);
    probe_turns(2);
    reset_by_peer();
    probe_turns(5);
    EQUAL(probe.closes, 1);
    EQUAL(probe.how, CONN_RESET);
    probe_finish(&probe);
}

static void resets(void)
{
    for (int i = 0; i < 4; i++) check_reset(i & 1, i & 2);
}

// A write that fails tells nobody before it has returned.
static void failed_write(void)
{
    probe_begin(&probe, false);
    conn_stop_reading(probe.conn, true);
    close(probe.peer);
    probe.peer = -1;
    buf_append(conn_stage(probe.conn), "x", 1);
    probe.is_inside = true;
    conn_flush(probe.conn);
    buf_append(conn_stage(probe.conn), "y", 1);
    conn_flush(probe.conn);
    conn_close_gracefully(probe.conn);
    conn_poke(probe.conn);
    conn_stop_reading(probe.conn, false);
    conn_close(probe.conn);
    probe.is_inside = false;
    EQUAL(probe.closes, 0);
    probe_turns(2);
    EQUAL(probe.closes, 1);
    EQUAL(probe.how, CONN_RESET);
    EQUAL(probe.eofs, 0);
    probe_finish(&probe);
}

static size_t refuse(struct probe *p, char *b, size_t len)
{
    (void)b, (void)len;
    p->on_bytes = take_none;
    buf_append(conn_stage(p->conn), "no thanks", 9);
    p->is_inside = true;
    conn_close_gracefully(p->conn);
    p->is_inside = false;
    return 0;
}

// An upload is refused unread: without the lingering close the peer would get a reset.
static void lingering_close(void)
{
    char reply[10] = {0};
    probe_begin(&probe, true);
    probe.on_bytes = refuse;
    CHECK(probe_write(&probe, bytes, 800000 / PROBE_SCALE));
    probe_turns(20);
    EQUAL(probe_read(&probe, reply, 10), 9);
    CHECK(strcmp(reply, "no thanks") == 0);
    EQUAL(probe.calls, 1);
    EQUAL(probe.closes, 0);
    shutdown(probe.peer, SHUT_WR);
    while (!probe.closes && !probe_is_stuck()) loop_run_once(&loop, 1);
    EQUAL(probe.how, CONN_CLOSED);
    EQUAL(probe.eofs, 0);
    probe_finish(&probe);
}

static void lingering_ends(void)
{
    probe_begin(&probe, true);
    loop_clock_freeze(&loop, 1);
    conn_close_gracefully(probe.conn);
    loop_clock_advance(&loop, 1999);
    probe_turns(2);
    EQUAL(probe.closes, 0);
    loop_clock_advance(&loop, 1);
    probe_turns(2);
    EQUAL(probe.closes, 1);
    EQUAL(probe.how, CONN_CLOSED);
    probe_finish(&probe);
}

// A peer that never stops sending is dropped after a mebibyte.
static void lingering_is_bounded(void)
{
    probe_begin(&probe, true);
    loop_clock_freeze(&loop, 1);
    conn_close_gracefully(probe.conn);
    probe_turns(1);
    uint64_t before = counters.bytes_in;
    while (!probe.closes && !probe_is_stuck()) {
        ssize_t ignored = send(probe.peer, bytes, 100000, MSG_NOSIGNAL);
        (void)ignored;
        loop_run_once(&loop, 0);
    }
    EQUAL(probe.closes, 1);
    CHECK(counters.bytes_in - before >= (1 << 20));
    CHECK(counters.bytes_in - before <= (1 << 20) + LOOP_READ_BUFFER);
    probe_finish(&probe);
}

static void stage_much(void)
{
    for (int i = 0; i < 10; i++) buf_append(conn_stage(probe.conn), bytes, sizeof(bytes));
    conn_flush(probe.conn);
}

// All is sent before the end of file, however slow the peer reads.
static void graceful_close_sends_all(void)
{
    probe_begin(&probe, true);
    stage_much();
    conn_close_gracefully(probe.conn);
    EQUAL(probe_read(&probe, got, sizeof(got)), 10 << 20);
    EQUAL(read(probe.peer, got, 1), 0);
    EQUAL(probe.drains, 0);
    probe_finish(&probe);

    probe_begin(&probe, true);
    conn_close_gracefully(probe.conn);
    probe_turns(1);
    reset_by_peer();
    probe_turns(3);
    EQUAL(probe.how, CONN_CLOSED); // everything had been sent
    probe_finish(&probe);
}

static void stall(void)
{
    probe_begin(&probe, true);
    probe.conn->write_timeout = 1000;
    loop_clock_freeze(&loop, 1);
    stage_much();
    probe_turns(PROBE_SCALE == 1 ? 20 : 2000);
    CHECK(conn_backlog(probe.conn) > 0);
    loop_clock_advance(&loop, 999);
    stage_much(); // is no progress
    size_t backlog = conn_backlog(probe.conn);
    // Progress: what the peer reads makes room, and the kernel takes bytes.
    while (conn_backlog(probe.conn) == backlog && !probe_is_stuck()) {
        ssize_t ignored = read(probe.peer, got, sizeof(got));
        (void)ignored;
        loop_run_once(&loop, 1);
    }
    CHECK(conn_backlog(probe.conn) < backlog);
    loop_clock_advance(&loop, 999);
    EQUAL(probe.closes, 0);
    CHECK(!probe.conn->is_closing);
    loop_clock_advance(&loop, 1);
    CHECK(probe.conn->is_closing);
    probe_turns(2);
    EQUAL(probe.how, CONN_STALLED);
    probe_finish(&probe);
}

static bool is_graceful;

static void close_inside(struct probe *p)
{
    p->is_inside = true;
    if (is_graceful)
        conn_close_gracefully(p->conn);
    else
        conn_close(p->conn);
    buf_append(conn_stage(p->conn), "late", 4);
    conn_flush(p->conn);
    conn_poke(p->conn);
    p->is_inside = false;
}

static size_t close_at_bytes(struct probe *p, char *b, size_t len)
{
    if (len < 4) return 0; // so that, sooner or later, it is called with kept bytes
    close_inside(p);
    b[len - 1] = 0; // still ours until we return
    return len % 2 ? len : 0;
}

static void close_inside_callbacks(void)
{
    static const char *const chunks[] = {"abcd", "abcde", "ab"};
    for (int i = 0; i < 12; i++) {
        is_graceful = i % 2;
        probe_begin(&probe, i % 4 < 2);
        probe.on_bytes = close_at_bytes;
        const char *chunk = chunks[i % 3];
        CHECK(probe_write(&probe, chunk, strlen(chunk)));
        probe_turns(10);
        if (chunk[2] == 0) CHECK(probe_write(&probe, "cdefg", 5)), probe_turns(10);
        CHECK(!probe.conn || probe.conn->is_lingering);
        probe_finish(&probe);
    }
    for (int i = 0; i < 4; i++) {
        is_graceful = i % 2;
        probe_begin(&probe, i < 2);
        probe.on_eof = close_inside;
        shutdown(probe.peer, SHUT_WR);
        probe_turns(4);
        EQUAL(probe.closes, 1);
        probe_finish(&probe);
    }
    for (int i = 0; i < 4; i++) {
        is_graceful = i % 2;
        probe_begin(&probe, i < 2);
        probe.on_drain = close_inside;
        stage_much();
        EQUAL(probe_read(&probe, got, sizeof(got)), 10 << 20);
        EQUAL(probe.drains, 1);
        probe_finish(&probe);
    }
}

int main(void)
{
    return report_run((const struct report_case[]){
        {"a half-close is an end of file, and the reply still goes", half_close},
        {"a hang-up is noticed once while reading is stopped", hang_up_while_stopped},
        {"stopped reading keeps the loop at rest", stop_and_resume},
        {"a reset is noticed, idle, stopped and with a backlog", resets},
        {"a failed write is told later", failed_write},
        {"a lingering close lets the peer read the reply", lingering_close},
        {"a lingering close ends after its time", lingering_ends},
        {"a lingering close drops a bounded number of bytes", lingering_is_bounded},
        {"a graceful close sends all that is left", graceful_close_sends_all},
        {"a backlog without progress is a stall", stall},
        {"a conn is closed inside each callback", close_inside_callbacks},
        {0},
    });
}
