// What channels keep, and what becomes of readers that fall behind it.
#include "channel_reader.h"

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

int main(void)
{
    static const struct report_case cases[] = {
        {"what is kept is the larger of replay and backlog", test_backlog},
        {"nothing older than replay_age is kept", test_age},
        {"history gives events as they were published", test_history},
        {"a slow reader goes on by itself, or is told of its gap", test_slow},
        {"with slow = close a reader that has lost its place is ended", test_slow_close},
        {NULL, NULL},
    };
    return report_run(cases);
}
