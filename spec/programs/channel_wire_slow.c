// Channels whose clients stall, read large events in parts, or are lost.
#include "channel_client.h"

#ifdef PHOTON_HOSTILE
enum { EVENTS = 60, LARGE = 3000 };
#else
enum { EVENTS = 2000, LARGE = 60000 };
#endif

static void test_stalled(void)
{
    struct channel_options options = {.replay = EVENTS};
    struct client stalled, quick;
    bool is_whole;
    begin(&options);
    connect_client(&stalled, "1.1", 4096);
    connect_client(&quick, "1.1", 0);
    for (int i = 0; i < EVENTS; i += 20) {
        publish(20, 100);
        turns(3);
        receive(&quick, SIZE_MAX);
    }
    receive_all(&quick);
    struct buf plain = unchunk(body_of(&quick), &is_whole);
    check_sequence(buf_slice(&plain), 1, EVENTS);
    buf_reset(&plain);
    while (receive(&stalled, 777)) turns(2);
    receive_all(&stalled);
    plain = unchunk(body_of(&stalled), &is_whole);
    check_sequence(buf_slice(&plain), 1, EVENTS);
    buf_reset(&plain);
    publish(1, 10); // both are live again
    turns(2);
    receive_all(&stalled);
    receive_all(&quick);
    EQUAL(site.counters.channel_deliveries, 2 * (EVENTS + 1));
    EQUAL(site.counters.channel_gaps, 0);
    leave(&stalled);
    leave(&quick);
    finish();
}

static void test_large(void)
{
    struct channel_options options = {.replay = 100};
    struct client c[3];
    bool is_whole;
    uint32_t random = 7;
    begin(&options);
    for (int i = 0; i < 3; i++) connect_client(&c[i], i == 2 ? "1.0" : "1.1", i ? 8192 : 0);
    for (int i = 0; i < 30; i++) {
        publish(1 + report_random(&random) % 3, report_random(&random) % LARGE);
        turns(1);
        for (int k = 0; k < 3; k++) receive(&c[k], report_random(&random) % LARGE);
    }
    uint64_t last = channel_last(site.channel);
    for (int k = 0; k < 3; k++) {
        receive_all(&c[k]);
        struct buf plain = {0};
        if (k < 2) plain = unchunk(body_of(&c[k]), &is_whole);
        check_sequence(k < 2 ? buf_slice(&plain) : body_of(&c[k]), 1, last);
        buf_reset(&plain);
        leave(&c[k]);
    }
    finish();
}

static void test_lost(void)
{
    struct client c, other;
    begin(NULL);
    connect_client(&c, "1.1", 4096);
    connect_client(&other, "1.1", 0);
    EQUAL(channel_subscribers(site.channel), 2);
    publish(100, 1000);
    turns(2);
    close(c.fd);
    c.fd = -1;
    turns(50);
    EQUAL(channel_subscribers(site.channel), 1);
    receive_all(&other);
    bool is_whole;
    struct buf plain = unchunk(body_of(&other), &is_whole);
    check_sequence(buf_slice(&plain), 1, 100);
    buf_reset(&plain);
    leave(&c);
    leave(&other);
    EQUAL(channel_subscribers(site.channel), 0);
    finish();
}

int main(void)
{
    static const struct report_case cases[] = {
        {"a stalled client loses nothing that is kept, and delays nobody", test_stalled},
        {"large events in parts", test_large},
        {"a lost client leaves", test_lost},
        {NULL, NULL},
    };
    return report_run(cases);
}
