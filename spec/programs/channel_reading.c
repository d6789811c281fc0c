// Channels as their subscribers see them, one worker, over the memory transport.
#include "channel_probe.h"

static struct probe probe;

static struct channel *begin(const struct channel_options *options)
{
    registry = channel_registry_new(100);
    probe_open(&probe);
    probe.channels[0] = probe_channel("news", options);
    probe.count = 1;
    return probe.channels[0];
}

static void finish(void)
{
    probe_close(&probe);
    for (size_t i = 0; i < probe.count; i++) channel_release(probe.channels[i]);
    channel_registry_free(registry);
}

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

static void publish_numbers(struct channel *ch, int from, int to)
{
    char text[16];
    for (int i = from; i <= to; i++) {
        snprintf(text, sizeof text, "%d", i);
        probe_publish(ch, "", text);
    }
}

static const struct channel_options keep_three = {.replay = 3};

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

static void test_backlog(void)
{
    struct channel_options options = {.replay = 1, .backlog = 3 * (64 + 20)};
    struct channel *news = begin(&options);
    struct payload *kept[8];
    uint64_t first;
    publish_numbers(news, 1, 8);
    EQUAL(channel_read(news, 0, 0, kept, 8, &first), 2); // each record has more than 20 bytes
    EQUAL(first, 7);
    payload_release(kept[0]);
    payload_release(kept[1]);
    finish();
}

static void test_age(void)
{
    struct channel_options options = {.replay = 10, .replay_age = 100, .backlog = 1 << 20};
    struct channel *news = begin(&options);
    struct payload *kept[8];
    uint64_t first;
    for (uint64_t now = 50; now <= 250; now += 50)
        channel_publish(news, SLICE(""), SLICE("x"), now, NULL);
    EQUAL(channel_read(news, 0, 250, kept, 8, &first), 3);
    EQUAL(first, 3);
    for (int i = 0; i < 3; i++) payload_release(kept[i]);
    EQUAL(channel_read(news, 0, 351, kept, 8, &first), 0);
    EQUAL(first, 6);
    finish();
}

static void test_history(void)
{
    struct channel *news = begin(&keep_three);
    struct payload *kept[8];
    struct channel_event e;
    struct buf scratch = {0};
    uint64_t first;
    publish_numbers(news, 1, 3);
    probe_publish(news, "ev", "a\nb\n");
    EQUAL(channel_read_last(news, 0, 0, kept, 1, &first), 1);
    EQUAL(first, 4);
    CHECK(channel_parse_event(kept[0], &e, &scratch));
    CHECK(slice_equals(e.event, SLICE("ev")) && slice_equals(e.data, SLICE("a\nb\n")));
    CHECK(slice_equals(e.id, slice_of_text(probe_id(news, 4))));
    payload_release(kept[0]);
    EQUAL(channel_read_last(news, 4, 0, kept, 8, &first), 2);
    EQUAL(first, 2);
    CHECK(channel_parse_event(kept[0], &e, &scratch));
    CHECK(slice_equals(e.data, SLICE("2")) && e.event.len == 0);
    payload_release(kept[0]);
    payload_release(kept[1]);
    probe_publish(news, "", "");
    EQUAL(channel_read(news, 5, 0, kept, 8, &first), 1);
    CHECK(channel_parse_event(kept[0], &e, &scratch) && e.data.len == 0);
    payload_release(kept[0]);
    EQUAL(channel_read(news, 6, 0, kept, 8, &first), 0);
    EQUAL(first, 6);
    buf_reset(&scratch);
    finish();
}

static void test_slow(void)
{
    struct channel *news = begin(&keep_three);
    struct memory *m = probe_get(&probe, NULL), *quick = probe_get(&probe, NULL);
    memory_slow(m, 0);
    publish_numbers(news, 1, 1);
    probe_turns(&probe, 2);
    publish_numbers(news, 2, 3);
    probe_turns(&probe, 2);
    SAME(probe_text(&probe, quick), "data: 1\nid: A-1\n\ndata: 2\nid: A-2\n\ndata: 3\nid: A-3\n\n");
    SAME(probe_text(&probe, m), "");
    memory_slow(m, -1); // it reads again: the rest comes by itself, and it is live again
    probe_turns(&probe, 3);
    publish_numbers(news, 4, 4);
    probe_turns(&probe, 3);
    SAME(probe_text(&probe, m), "data: 1\nid: A-1\n\ndata: 2\nid: A-2\n\ndata: 3\nid: A-3\n\n"
                                "data: 4\nid: A-4\n\n");
    memory_slow(m, 0);
    publish_numbers(news, 5, 5);
    probe_turns(&probe, 2);
    publish_numbers(news, 6, 9);
    probe_turns(&probe, 2);
    memory_slow(m, -1);
    probe_turns(&probe, 3);
    SAME(probe_text(&probe, m), "data: 5\nid: A-5\n\nevent: photon.gap\ndata: "
                                "{\"requested\":\"A-5\",\"oldest\":\"A-7\"}\n\n"
                                "data: 7\nid: A-7\n\ndata: 8\nid: A-8\n\ndata: 9\nid: A-9\n\n");
    finish();
}

static void test_slow_close(void)
{
    struct channel_options options = {.replay = 2, .slow = CHANNEL_CLOSE};
    struct channel *news = begin(&options);
    struct memory *m = probe_get(&probe, NULL), *quick = probe_get(&probe, NULL);
    memory_slow(m, 0);
    publish_numbers(news, 1, 1);
    probe_turns(&probe, 2);
    publish_numbers(news, 2, 2);
    probe_turns(&probe, 2);
    EQUAL(memory_state(m), MEMORY_OPEN);
    publish_numbers(news, 3, 4);
    probe_turns(&probe, 3);
    EQUAL(memory_state(m), MEMORY_BROKEN);
    EQUAL(memory_state(quick), MEMORY_OPEN);
    EQUAL(probe.counters.channel_slow_closed, 1);
    // Who comes back is told of the gap, whatever the policy.
    memory_take(m);
    m = probe_get(&probe, probe_id(news, 1));
    SAME(probe_text(&probe, m),
         "event: photon.gap\ndata: {\"requested\":\"A-1\",\"oldest\":\"A-3\"}\n\n"
         "data: 3\nid: A-3\n\ndata: 4\nid: A-4\n\n");
    finish();
}

static void test_finish(void)
{
    struct channel *news = begin(&keep_three);
    struct memory *m = probe_get(&probe, NULL), *slow = probe_get(&probe, NULL);
    memory_slow(slow, 0);
    publish_numbers(news, 1, 2);
    probe_turns(&probe, 2);
    EQUAL(channel_finish(news, true, SLICE("done"), SLICE("bye"), 0, NULL), CHANNEL_OK);
    EQUAL(channel_publish(news, SLICE(""), SLICE("x"), 0, NULL), CHANNEL_IS_FINISHED);
    EQUAL(channel_finish(news, false, SLICE(""), SLICE(""), 0, NULL), CHANNEL_IS_FINISHED);
    probe_turns(&probe, 3);
    const char *all = "data: 1\nid: A-1\n\ndata: 2\nid: A-2\n\nevent: done\ndata: bye\nid: A-3\n\n";
    SAME(probe_text(&probe, m), all);
    EQUAL(memory_state(m), MEMORY_DONE);
    EQUAL(memory_state(slow), MEMORY_OPEN);
    memory_slow(slow, -1);
    probe_turns(&probe, 4);
    SAME(probe_text(&probe, slow), all);
    EQUAL(memory_state(slow), MEMORY_DONE);
    m = probe_get(&probe, probe_id(news, 2));
    SAME(probe_text(&probe, m), "event: done\ndata: bye\nid: A-3\n\n");
    EQUAL(memory_state(m), MEMORY_DONE);
    m = probe_get(&probe, probe_id(news, 3));
    EQUAL(m->x.status, 204);
    CHECK(probe.is_refused);
    EQUAL(memory_state(m), MEMORY_DONE);
    EQUAL(probe_get(&probe, NULL)->x.status, 204);
    finish();
}

static void test_finish_without_event(void)
{
    struct channel *news = begin(&keep_three);
    struct memory *m = probe_get(&probe, NULL);
    channel_finish(news, false, SLICE(""), SLICE(""), 0, NULL);
    // One that comes before the worker has heard of it changes nothing for the others.
    EQUAL(probe_connect(&probe, "GET", (struct slice){0}) != NULL, true);
    probe_turns(&probe, 4);
    SAME(probe_text(&probe, m), "");
    EQUAL(memory_state(m), MEMORY_DONE);
    finish();
}

static void test_claim(void)
{
    struct channel *news = begin(NULL);
    CHECK(channel_claim(news));
    CHECK(!channel_claim(news));
    channel_unclaim(news);
    CHECK(channel_claim(news));
    channel_finish(news, false, SLICE(""), SLICE(""), 0, NULL);
    CHECK(!channel_claim(news));
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

static void test_composite(void)
{
    struct channel *a = begin(&keep_three), *b = probe_channel("b", &keep_three);
    char id[2 * CHANNEL_ID];
    probe.channels[1] = b;
    probe.channels[2] = channel_retain(a); // the same once more is the same
    probe.count = 3;
    struct memory *m = probe_get(&probe, NULL);
    EQUAL(channel_subscribers(a), 1);
    probe_publish(a, "x", "1");
    probe_turns(&probe, 2);
    probe_publish(b, "", "2");
    probe_turns(&probe, 2);
    probe_publish(a, "", "3");
    probe_turns(&probe, 2);
    SAME(probe_text(&probe, m), "event: x\ndata: 1\nid: A-1,B-0\n\ndata: 2\nid: A-1,B-1\n\n"
                                "data: 3\nid: A-2,B-1\n\n");
    memory_close(m);
    size_t len = channel_id(b, 0, id);
    id[len++] = ',';
    len += channel_id(a, 1, id + len);
    id[len] = 0;
    m = probe_get(&probe, id);
    SAME(probe_text(&probe, m), "data: 3\nid: A-2,B-0\n\ndata: 2\nid: A-2,B-1\n\n");
    memory_close(m);
    // An id of one of them: the other one is new to this client, and begins where the terms say.
    m = probe_get(&probe, probe_id(a, 1));
    SAME(probe_text(&probe, m), "data: 3\nid: A-2,B-1\n\n");
    memory_close(m);
    // A single channel finds its own part, but the other part may have been its own once.
    probe.count = 1;
    m = probe_get(&probe, id);
    probe.count = 3;
    SAME(probe_text(&probe, m), "data: 3\nid: A-2\n\n");
    memory_close(m);
    probe_turns(&probe, 2);
    finish();
}

static void test_composite_finish(void)
{
    struct channel *a = begin(&keep_three), *b = probe_channel("b", &keep_three);
    probe.channels[1] = b;
    probe.count = 2;
    struct memory *m = probe_get(&probe, NULL);
    channel_finish(a, true, SLICE(""), SLICE("a"), 0, NULL);
    probe_turns(&probe, 3);
    EQUAL(memory_state(m), MEMORY_OPEN);
    channel_finish(b, true, SLICE(""), SLICE("b"), 0, NULL);
    probe_turns(&probe, 3);
    SAME(probe_text(&probe, m), "data: a\nid: A-1,B-0\n\ndata: b\nid: A-1,B-1\n\n");
    EQUAL(memory_state(m), MEMORY_DONE);
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

static void test_end_all(void)
{
    begin(NULL);
    struct memory *m = probe_get(&probe, NULL);
    channel_worker_end_all(&probe.worker, 1000);
    channel_worker_end_all(&probe.worker, 1000);
    probe_turns(&probe, 3);
    const char *text = probe_text(&probe, m);
    CHECK(strncmp(text, "retry: ", 7) == 0 && strtol(text + 7, NULL, 10) < 1000);
    EQUAL(memory_state(m), MEMORY_DONE);
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

static const struct report_case cases[] = {
    {"a live reader gets what is published, once for each turn", test_live},
    {"bad and large events are refused", test_bad_events},
    {"resuming is exact", test_resume},
    {"an id that is too old, to come, or of another life is told as a gap", test_gap},
    {"a reader without an id begins where the terms say", test_from},
    {"what is kept is the larger of replay and backlog", test_backlog},
    {"nothing older than replay_age is kept", test_age},
    {"history gives events as they were published", test_history},
    {"a slow reader goes on by itself, or is told of its gap", test_slow},
    {"with slow = close a reader that has lost its place is ended", test_slow_close},
    {"finish ends when all is delivered; late ones get the rest, then 204", test_finish},
    {"finish without an event", test_finish_without_event},
    {"one producer can claim a channel", test_claim},
    {"HEAD gets the head", test_head_request},
    {"over max_streams subscribers get 503", test_max_streams},
    {"several channels over one connection have composite ids", test_composite},
    {"and end when all of them are finished", test_composite_finish},
    {"NDJSON", test_ndjson},
    {"long replays and bursts come in batches, and whole", test_many_batches},
    {"a comment after silence, and not before", test_heartbeat},
    {"a worker's end tells a retry and ends cleanly", test_end_all},
    {"failing allocations", test_no_memory},
    {0},
};

int main(void)
{
    return report_run(cases);
}
