// The registry of channels: names, options, lives; and presence.
#include "channel_probe.h"

static struct probe probe;

static enum channel_result open_at(const char *name, size_t len,
                                   const struct channel_options *options, uint64_t load,
                                   uint64_t now, struct channel **ch)
{
    *ch = NULL;
    return channel_open(registry, slice_of(name, len), options, load, now, ch);
}

static void test_names(void)
{
    static const char *const bad[] = {"", "a\nb", "\x7f", "a\tb", "\x01"};
    struct channel *a, *b;
    char longest[CHANNEL_MAX_NAME + 1];
    registry = channel_registry_new(10);
    for (int i = 0; i < 5; i++)
        EQUAL(open_at(bad[i], strlen(bad[i]), NULL, 1, 0, &a), CHANNEL_BAD_NAME);
    EQUAL(open_at("a\0b", 3, NULL, 1, 0, &a), CHANNEL_BAD_NAME);
    memset(longest, 'x', sizeof longest);
    EQUAL(open_at(longest, CHANNEL_MAX_NAME + 1, NULL, 1, 0, &a), CHANNEL_BAD_NAME);
    EQUAL(open_at(longest, CHANNEL_MAX_NAME, NULL, 1, 0, &a), CHANNEL_OK);
    EQUAL(channel_name(a).len, CHANNEL_MAX_NAME);
    EQUAL(open_at(longest, CHANNEL_MAX_NAME, NULL, 1, 0, &b), CHANNEL_OK);
    CHECK(a == b);
    channel_release(b);
    EQUAL(open_at("h\xc3\xa9", 3, NULL, 1, 0, &b), CHANNEL_OK);
    CHECK(a != b);
    channel_release(a);
    channel_release(b);
    EQUAL(channel_registry_totals(registry).channels, 0);
    channel_registry_free(registry);
}

static void test_options(void)
{
    struct channel_options ten = {.replay = 10}, five = {.replay = 5};
    struct channel *a, *b;
    registry = channel_registry_new(10);
    EQUAL(open_at("a", 1, NULL, 1, 0, &a), CHANNEL_OK);
    EQUAL(open_at("a", 1, &ten, 1, 0, &b), CHANNEL_OK); // what was said first counts
    channel_release(b);
    EQUAL(open_at("a", 1, &ten, 1, 0, &b), CHANNEL_OK);
    channel_release(b);
    EQUAL(open_at("a", 1, NULL, 1, 0, &b), CHANNEL_OK);
    channel_release(b);
    EQUAL(open_at("a", 1, &five, 1, 0, &b), CHANNEL_CONFLICT);
    for (int i = 0; i < 10; i++) probe_publish(a, "", "x");
    EQUAL(open_at("a", 1, &five, 2, 0, &b), CHANNEL_OK); // a reload: the new ones win
    CHECK(a == b);
    channel_release(b);
    EQUAL(open_at("a", 1, &ten, 1, 0, &b),
          CHANNEL_OK); // the old code still runs, and changes nothing
    channel_release(b);
    struct payload *kept[16];
    uint64_t first;
    EQUAL(channel_read(a, 0, 0, kept, 16, &first), 5);
    for (int i = 0; i < 5; i++) payload_release(kept[i]);
    channel_release(a);
    channel_registry_free(registry);
}

// Held ones stay; of the others first those that promise nothing, then those that are over.
static void test_limit(void)
{
    struct channel_options replay = {.replay = 1, .replay_age = 1000}, backlog = {.backlog = 1000};
    struct channel *held, *kept, *loose, *more;
    static const char text[96];
    registry = channel_registry_new(3);
    EQUAL(open_at("held", 4, NULL, 1, 0, &held), CHANNEL_OK);
    EQUAL(open_at("kept", 4, &replay, 1, 0, &kept), CHANNEL_OK);
    EQUAL(open_at("loose", 5, &backlog, 1, 0, &loose), CHANNEL_OK);
    EQUAL(open_at("more", 4, NULL, 1, 0, &more), CHANNEL_TOO_MANY);
    EQUAL(channel_registry_totals(registry).refused, 1);
    probe_publish(kept, "", "x");
    probe_publish(loose, "", "x");
    channel_release(kept);
    channel_release(loose);
    EQUAL(channel_registry_totals(registry).channels, 3); // they still keep something
    EQUAL(open_at("more", 4, NULL, 1, 500, &more), CHANNEL_OK);
    EQUAL(open_at("loose", 5, NULL, 1, 500, &loose), CHANNEL_TOO_MANY);
    EQUAL(open_at("loose", 5, NULL, 1, 1001, &loose), CHANNEL_OK); // in the place of `kept`
    EQUAL(channel_last(loose), 0);
    EQUAL(open_at("kept", 4, NULL, 1, 1001, &kept), CHANNEL_TOO_MANY);
    channel_registry_limit(registry, 4, 100);
    EQUAL(open_at("kept", 4, NULL, 1, 1001, &kept), CHANNEL_OK);
    EQUAL(channel_last(kept), 0);
    EQUAL(channel_publish(kept, SLICE("12345"), slice_of(text, sizeof text), 0, NULL),
          CHANNEL_TOO_LARGE);
    channel_release(held);
    channel_release(kept);
    channel_release(loose);
    channel_release(more);
    EQUAL(channel_registry_totals(registry).channels, 0); // they keep nothing
    channel_registry_free(registry);
}

static void test_finished_linger(void)
{
    struct channel *a, *b;
    registry = channel_registry_new(1);
    EQUAL(open_at("a", 1, NULL, 1, 0, &a), CHANNEL_OK);
    channel_finish(a, true, SLICE(""), SLICE("bye"), 10, NULL);
    channel_release(a);
    EQUAL(open_at("b", 1, NULL, 1, 10 + CHANNEL_LINGER, &b), CHANNEL_TOO_MANY);
    EQUAL(open_at("a", 1, NULL, 1, 10 + CHANNEL_LINGER, &a), CHANNEL_OK);
    CHECK(channel_is_finished(a));
    channel_release(a);
    EQUAL(open_at("a", 1, NULL, 1, 11 + CHANNEL_LINGER, &a), CHANNEL_OK);
    CHECK(!channel_is_finished(a)); // another life
    channel_release(a);
    channel_registry_free(registry);
}

static void test_epochs(void)
{
    char one[CHANNEL_ID + 1] = {0}, other[CHANNEL_ID + 1] = {0};
    struct channel *a;
    uint64_t sequence;
    registry = channel_registry_new(10);
    open_at("a", 1, NULL, 1, 0, &a);
    EQUAL(channel_id(a, 7, one), CHANNEL_EPOCH + 2);
    CHECK(channel_parse_id(a, slice_of_text(one), &sequence));
    EQUAL(sequence, 7);
    channel_release(a);
    open_at("a", 1, NULL, 1, 0, &a);
    channel_id(a, 7, other);
    CHECK(strcmp(one, other) != 0);
    CHECK(!channel_parse_id(a, slice_of_text(one), &sequence));
    EQUAL(channel_id(a, UINT64_MAX, other), CHANNEL_ID);
    static const char *const bad[] = {"-1", "+1", "01", "",
                                      " 1", "1 ", "1a", "99999999999999999999"};
    for (int i = 0; i < 8; i++) {
        char id[64];
        snprintf(id, sizeof id, "%.8s-%s", other, bad[i]);
        CHECK(!channel_parse_id(a, slice_of_text(id), &sequence));
    }
    CHECK(!channel_parse_id(a, slice_of(other, CHANNEL_EPOCH), &sequence));
    channel_release(a);
    channel_registry_free(registry);
}

static void test_many(void)
{
    enum { COUNT = 5000 };
    static struct channel *all[COUNT];
    char name[32];
    registry = channel_registry_new(COUNT);
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "room:%d", i);
        EQUAL(open_at(name, strlen(name), NULL, 1, 0, &all[i]), CHANNEL_OK);
    }
    for (int i = 0; i < COUNT; i += 7) {
        struct channel *again;
        snprintf(name, sizeof name, "room:%d", i);
        EQUAL(open_at(name, strlen(name), NULL, 1, 0, &again), CHANNEL_OK);
        CHECK(again == all[i]);
        channel_release(again);
    }
    for (int i = 0; i < COUNT; i++) channel_release(all[i]);
    EQUAL(channel_registry_totals(registry).channels, 0);
    channel_registry_free(registry);
}

// Presence ----------------------------------------------------------------------------------------

struct watcher {
    struct channel_watch watch; // first, so that one pointer is both
    char text[256];
    unsigned news;
    bool leaves; // takes itself off at the first call
};

static void note(struct channel_watch *watch, char mark, struct slice id, struct slice info)
{
    struct watcher *w = (struct watcher *)watch;
    size_t len = strlen(w->text);
    snprintf(w->text + len, sizeof w->text - len, "%c%.*s(%.*s) ", mark, (int)id.len, id.ptr,
             (int)info.len, info.ptr);
    if (w->leaves) channel_unwatch(watch);
}

static void on_join(struct channel_watch *watch, struct slice id, struct slice info)
{
    note(watch, '+', id, info);
}

static void on_leave(struct channel_watch *watch, struct slice id, struct slice info)
{
    note(watch, '-', id, info);
}

static void on_news(struct channel_watch *watch)
{
    ((struct watcher *)watch)->news++;
}

static void members_are(struct channel *ch, const char *wanted)
{
    struct buf packed = {0}, text = {0};
    struct slice id, info;
    CHECK(channel_members(ch, &packed));
    struct slice rest = buf_slice(&packed);
    while (channel_next_member(&rest, &id, &info))
        buf_append_format(&text, "%.*s=%.*s ", (int)id.len, id.ptr, (int)info.len, info.ptr);
    buf_append(&text, "", 1);
    SAME(text.ptr, wanted);
    buf_reset(&packed);
    buf_reset(&text);
}

static struct memory *join(const char *member, const char *info)
{
    probe.terms.member = slice_of_text(member);
    probe.terms.info = slice_of_text(info);
    return probe_get(&probe, NULL);
}

static void begin(void)
{
    registry = channel_registry_new(10);
    probe_open(&probe);
    probe.channels[0] = probe_channel("room", NULL);
    probe.count = 1;
}

static void finish(void)
{
    probe_close(&probe);
    channel_release(probe.channels[0]);
    channel_registry_free(registry);
}

static void test_members(void)
{
    begin();
    struct channel *room = probe.channels[0];
    members_are(room, "");
    struct memory *one = join("ann", "1"), *two = join("ann", "2"), *bob = join("bob", "");
    join("", "nobody");
    members_are(room, "ann=1 bob= ");
    EQUAL(channel_subscribers(room), 4);
    memory_close(one);
    probe_turns(&probe, 2);
    members_are(room, "ann=1 bob= ");
    memory_close(two);
    probe_turns(&probe, 2);
    members_are(room, "bob= ");
    memory_close(bob);
    probe_turns(&probe, 2);
    members_are(room, "");
    finish();
}

static void test_watch(void)
{
    struct watcher w = {.watch = {.on_join = on_join, .on_leave = on_leave, .on_news = on_news}};
    struct watcher once = {.watch = {.on_join = on_join}, .leaves = true};
    begin();
    struct channel *room = probe.channels[0];
    CHECK(channel_watch(&probe.worker, room, &once.watch));
    CHECK(channel_watch(&probe.worker, room, &w.watch));
    struct memory *ann = join("ann", "1"), *again = join("ann", "2");
    join("bob", "");
    memory_close(ann);
    memory_close(again);
    probe_turns(&probe, 4);
    SAME(w.text, "+ann(1) +bob() -ann(1) ");
    SAME(once.text, "+ann(1) ");
    EQUAL(w.news, 0);
    probe_publish(room, "", "x");
    probe_publish(room, "", "y");
    probe_turns(&probe, 2);
    EQUAL(w.news, 1);
    channel_finish(room, false, SLICE(""), SLICE(""), 0, NULL);
    probe_turns(&probe, 2);
    EQUAL(w.news, 2);
    channel_unwatch(&w.watch);
    channel_unwatch(&w.watch);
    probe_close(&probe);
    channel_release(room);
    channel_registry_free(registry);
}

// The last watch goes with its link while it is told.
static void test_last_watch(void)
{
    struct watcher once = {.watch = {.on_join = on_join}, .leaves = true};
    begin();
    struct channel *room = probe.channels[0];
    CHECK(channel_watch(&probe.worker, room, &once.watch));
    struct memory *ann = join("ann", "");
    memory_close(ann);
    probe_turns(&probe, 4);
    SAME(once.text, "+ann() ");
    finish();
}

static void test_kick(void)
{
    begin();
    struct channel *room = probe.channels[0];
    struct memory *one = join("ann", ""), *two = join("ann", ""), *bob = join("bob", "");
    memory_slow(two, 0);
    probe_publish(room, "", "x");
    probe_turns(&probe, 2);
    probe_publish(room, "", "y"); // `two` is behind
    probe_turns(&probe, 2);
    EQUAL(channel_kick(room, SLICE("nobody")), 0);
    EQUAL(channel_kick(room, SLICE("ann")), 2);
    probe_turns(&probe, 4);
    EQUAL(memory_state(one), MEMORY_DONE);
    EQUAL(two->x.phase, EXCHANGE_OVER);
    EQUAL(memory_state(bob), MEMORY_OPEN);
    members_are(room, "bob= ");
    EQUAL(channel_kick(room, SLICE("ann")), 0);
    finish();
}

static const struct report_case cases[] = {
    {"names", test_names},
    {"options of one load must agree, of a later one they win", test_options},
    {"at max_channels those that promise nothing go first", test_limit},
    {"a finished channel stays for late readers, for a while", test_finished_linger},
    {"ids are known for what they are", test_epochs},
    {"many channels", test_many},
    {"members are counted once, however many connections they have", test_members},
    {"watches are told of joins, leaves and news", test_watch},
    {"the last watch may go while it is told", test_last_watch},
    {"a kicked member's connections end, others go on", test_kick},
    {0},
};

int main(void)
{
    return report_run(cases);
}
