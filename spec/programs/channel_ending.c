// The ends of channels and of workers, and several channels over one connection.
#include "channel_reader.h"

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

int main(void)
{
    static const struct report_case cases[] = {
        {"finish ends when all is delivered; late ones get the rest, then 204", test_finish},
        {"finish without an event", test_finish_without_event},
        {"one producer can claim a channel", test_claim},
        {"several channels over one connection have composite ids", test_composite},
        {"and end when all of them are finished", test_composite_finish},
        {"a worker's end tells a retry and ends cleanly", test_end_all},
        {NULL, NULL},
    };
    return report_run(cases);
}
