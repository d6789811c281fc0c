// Channels as their subscribers see them, one worker, over the memory transport.
#include "channel_reader.h"

static void test_live(void)
{
    struct channel *news = begin(NULL);
    probe_publish(news, "", "before");
    struct memory *m = probe_get(&probe, NULL), *other = probe_get(&probe, NULL);
    EQUAL(m->x.status, 200);
    SAME(probe_text(&probe, m), "");
    EQUAL(channel_subscribers(news), 2);
    EQUAL(probe_publish(news, "", "one"), 2);
    EQUAL(probe_publish(news, "named", "two\r\nlines"), 3);
    SAME(probe_text(&probe, m), ""); // on the next turn, and not from inside publish
    probe_turns(&probe, 1);
    const char *wanted = "data: one\nid: A-2\n\nevent: named\ndata: two\ndata: lines\nid: A-3\n\n";
    SAME(probe_text(&probe, m), wanted);
    SAME(probe_text(&probe, other), wanted);
    EQUAL(probe.counters.channel_deliveries, 4);
    memory_close(m);
    probe_turns(&probe, 2);
    EQUAL(channel_subscribers(news), 1);
    finish();
}

static void test_bad_events(void)
{
    struct channel *news = begin(NULL);
    uint64_t sequence;
    char *large = mem_zalloc(CHANNEL_MAX_EVENT + 1);
    EQUAL(channel_publish(news, SLICE("a\nb"), SLICE(""), 0, &sequence), CHANNEL_BAD_EVENT);
    EQUAL(channel_publish(news, SLICE(""), slice_of(large, CHANNEL_MAX_EVENT + 1), 0, &sequence),
          CHANNEL_TOO_LARGE);
    EQUAL(channel_publish(news, SLICE(""), slice_of(large, CHANNEL_MAX_EVENT), 0, &sequence),
          CHANNEL_OK);
    EQUAL(channel_last(news), 1);
    mem_free(large);
    finish();
}

static void test_resume(void)
{
    struct channel *news = begin(&keep_three);
    publish_numbers(news, 1, 5);
    SAME(probe_text(&probe, probe_get(&probe, probe_id(news, 3))),
         "data: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n");
    SAME(probe_text(&probe, probe_get(&probe, probe_id(news, 5))), "");
    SAME(probe_text(&probe, probe_get(&probe, probe_id(news, 2))),
         "data: 3\nid: A-3\n\ndata: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n");
    finish();
}

static void test_gap(void)
{
    struct channel *news = begin(&keep_three);
    const char *rest = "data: 3\nid: A-3\n\ndata: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n";
    char wanted[400];
    publish_numbers(news, 1, 5);
    const char *ids[] = {probe_id(news, 1), "zzzzzzzz-4", "nonsense", "0", "a\"b\\c"};
    const char *told[] = {"A-1", "zzzzzzzz-4", "nonsense", "0", "a\\\"b\\\\c"};
    for (int i = 0; i < 5; i++) {
        snprintf(wanted, sizeof wanted,
                 "event: photon.gap\ndata: {\"requested\":\"%s\",\"oldest\":\"A-3\"}\n\n%s",
                 told[i], rest);
        SAME(probe_text(&probe, probe_get(&probe, ids[i])), wanted);
    }
    // An id that is still to come, as from another life of the server.
    snprintf(wanted, sizeof wanted,
             "event: photon.gap\ndata: {\"requested\":\"A-6\",\"oldest\":\"A-3\"}\n\n%s", rest);
    SAME(probe_text(&probe, probe_get(&probe, probe_id(news, 6))), wanted);
    EQUAL(probe.counters.channel_gaps, 6);
    finish();
}

static void test_from(void)
{
    struct channel *news = begin(&keep_three);
    publish_numbers(news, 1, 5);
    probe.terms.from = CHANNEL_START;
    SAME(probe_text(&probe, probe_get(&probe, NULL)),
         "data: 3\nid: A-3\n\ndata: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n");
    probe.terms.from = CHANNEL_LAST;
    probe.terms.last = 2;
    SAME(probe_text(&probe, probe_get(&probe, NULL)), "data: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n");
    probe.terms.last = 50;
    probe.terms.retry = 1500;
    SAME(probe_text(&probe, probe_get(&probe, "")),
         "retry: 1500\n\ndata: 3\nid: A-3\n\ndata: 4\nid: A-4\n\ndata: 5\nid: A-5\n\n");
    finish();
}

static void test_head_request(void)
{
    struct channel *news = begin(NULL);
    struct memory *m = probe_connect(&probe, "HEAD", (struct slice){0});
    probe_turns(&probe, 3);
    EQUAL(m->x.status, 200);
    EQUAL(memory_state(m), MEMORY_DONE);
    EQUAL(channel_subscribers(news), 0);
    const struct header *type = headers_find(&m->headers, SLICE("content-type"));
    CHECK(type && slice_equals(type->value, SLICE("text/event-stream")));
    finish();
}

static void test_max_streams(void)
{
    begin(NULL);
    probe.limits.max_streams = 1;
    struct memory *m = probe_get(&probe, NULL), *over = probe_get(&probe, NULL);
    EQUAL(m->x.status, 200);
    EQUAL(over->x.status, 503);
    CHECK(headers_find(&over->headers, SLICE("retry-after")) != NULL);
    finish();
}

static void test_ndjson(void)
{
    struct channel *news = begin(&keep_three);
    probe.terms.format = CHANNEL_NDJSON;
    struct memory *m = probe_get(&probe, NULL), *other = probe_get(&probe, NULL);
    probe_publish(news, "", "{\"a\":\n[1]}");
    probe_publish(news, "ev", "plain \"text\"\nof two lines");
    probe_turns(&probe, 2);
    const char *wanted =
        "{\"id\":\"A-1\",\"data\":{\"a\": [1]}}\n"
        "{\"id\":\"A-2\",\"event\":\"ev\",\"data\":\"plain \\\"text\\\"\\nof two lines\"}\n";
    SAME(probe_text(&probe, m), wanted);
    SAME(probe_text(&probe, other), wanted);
    m = probe_get(&probe, "gone");
    CHECK(
        strncmp(probe_text(&probe, m),
                "{\"event\":\"photon.gap\",\"data\":{\"requested\":\"gone\",\"oldest\":\"A-1\"}}\n"
                "{\"id\":\"A-1\",",
                60) == 0);
    finish();
}

static void test_many_batches(void)
{
    struct channel_options options = {.replay = 100000, .backlog = 0};
    struct channel *news = begin(&options);
    publish_numbers(news, 1, 3000);
    probe.terms.from = CHANNEL_START;
    struct memory *m = probe_get(&probe, NULL), *late = probe_get(&probe, probe_id(news, 1000));
    publish_numbers(news, 3001, 3300);
    probe_turns(&probe, 40);
    size_t count = 0, late_count = 0;
    for (size_t i = 0; i + 1 < m->received.len; i++)
        count += !memcmp(m->received.ptr + i, "\n\n", 2);
    for (size_t i = 0; i + 1 < late->received.len; i++)
        late_count += !memcmp(late->received.ptr + i, "\n\n", 2);
    EQUAL(count, 3300);
    EQUAL(late_count, 2300);
    finish();
}

static void test_heartbeat(void)
{
    struct channel *news = begin(NULL);
    loop_clock_freeze(&probe.loop, 1000);
    probe.terms.heartbeat = 1000;
    struct memory *m = probe_get(&probe, NULL);
    loop_clock_advance(&probe.loop, 999);
    probe_turns(&probe, 1);
    SAME(probe_text(&probe, m), "");
    loop_clock_advance(&probe.loop, 1);
    probe_turns(&probe, 1);
    SAME(probe_text(&probe, m), ":\n\n");
    loop_clock_advance(&probe.loop, 600);
    probe_publish(news, "", "x"); // not silent
    probe_turns(&probe, 2);
    probe_text(&probe, m);
    loop_clock_advance(&probe.loop, 999);
    probe_turns(&probe, 1);
    SAME(probe_text(&probe, m), "");
    loop_clock_advance(&probe.loop, 1);
    probe_turns(&probe, 1);
    SAME(probe_text(&probe, m), ":\n\n");
    finish();
}

// Allocations fail one after the other; nothing leaks, and the rest is served.
static void test_no_memory(void)
{
    for (long fails = 0; fails < 40; fails++) {
        struct channel *news = begin(&keep_three);
        struct memory *m = probe_get(&probe, NULL);
        probe.terms.member = SLICE("somebody");
        mem_fail_after(fails);
        struct memory *late = probe_connect(&probe, "GET", SLICE("x"));
        channel_publish(news, SLICE("e"), SLICE("1"), 0, NULL);
        probe_turns(&probe, 3);
        mem_fail_after(-1);
        uint64_t last = channel_last(news);
        probe_turns(&probe, 3);
        if (last && memory_state(m) == MEMORY_OPEN)
            SAME(probe_text(&probe, m), "event: e\ndata: 1\nid: A-1\n\n");
        (void)late;
        finish();
    }
}

int main(void)
{
    static const struct report_case cases[] = {
        {"a live reader gets what is published, once for each turn", test_live},
        {"bad and large events are refused", test_bad_events},
        {"resuming is exact", test_resume},
        {"an id that is too old, to come, or of another life is told as a gap", test_gap},
        {"a reader without an id begins where the terms say", test_from},
        {"HEAD gets the head", test_head_request},
        {"over max_streams subscribers get 503", test_max_streams},
        {"NDJSON", test_ndjson},
        {"long replays and bursts come in batches, and whole", test_many_batches},
        {"a comment after silence, and not before", test_heartbeat},
        {"failing allocations", test_no_memory},
        {NULL, NULL},
    };
    return report_run(cases);
}
