// A property of channels: several threads publish, hundreds of subscribers on several loops
// connect, stall, drop and resume at random; what each has seen is gapless, or has exactly the gaps
// that it was told of. Odd clients join two channels over one connection.
#include <pthread.h>
#include <unistd.h>
#include "channel_probe.h"

enum { WORKERS = 3, CHANNELS = 2, PUBLISHERS = 4, CLIENTS = 70 };

// Sanitizers and hostile builds take the time of many more.
#ifndef FLOW_EVENTS
#define FLOW_EVENTS 1500
#endif

struct client {
    struct memory *m;
    struct buf text;           // received, not read yet
    bool is_joined;            // to both channels
    uint64_t gap_to[CHANNELS]; // and is this one (0: as told, nothing was kept)
    uint64_t last[CHANNELS];   // 0: not known
    char id[2 * CHANNEL_ID + 2];
    unsigned done, gaps;
    bool is_over;
};

struct worker {
    struct probe probe; // first, so that one pointer is both
    pthread_t thread;
    struct client clients[CLIENTS];
    uint32_t random;
    uint64_t serial;
    char problem[256];
};

static struct worker workers[WORKERS];
static struct channel *channels[CHANNELS];
static char epochs[CHANNELS][CHANNEL_ID + 1];
static _Atomic bool has_finished;

static void fail(struct worker *w, const char *what, const struct client *c, uint64_t got)
{
    if (!w->problem[0])
        snprintf(w->problem, sizeof w->problem, "%s: client %d, last %llu and %llu, got %llu", what,
                 (int)(c - w->clients), (unsigned long long)c->last[0],
                 (unsigned long long)c->last[1], (unsigned long long)got);
}

static int epoch_of(const char *id)
{
    for (int i = 0; i < CHANNELS; i++) {
        if (memcmp(id, epochs[i], CHANNEL_EPOCH) == 0) return i;
    }
    return -1;
}

// data: {"requested":"…","oldest":"…"}
static void take_gap(struct worker *w, struct client *c, const char *record)
{
    const char *oldest = strstr(record, "\"oldest\":\"");
    c->gaps++;
    if (!oldest) return fail(w, "a gap without the oldest, though all is kept for a while", c, 0);
    int which = epoch_of(oldest + 10);
    if (which < 0) return fail(w, "a gap of another channel", c, 0);
    uint64_t first = strtoull(oldest + 10 + CHANNEL_EPOCH + 1, NULL, 10);
    if (first <= c->last[which] + 1) fail(w, "a gap without need", c, first);
    c->gap_to[which] = first;
}

// data: <channel> <publisher> <n>, id: the positions in all channels of the connection
static void take_event(struct worker *w, struct client *c, const char *record)
{
    const char *id = strstr(record, "id: ");
    int of = atoi(record + 6);
    if (!id) return fail(w, "an event without id", c, 0);
    snprintf(c->id, sizeof c->id, "%.*s", (int)strcspn(id + 4, "\n"), id + 4);
    for (const char *at = c->id; at; at = strchr(at, ','), at += at != NULL) {
        int which = epoch_of(at);
        uint64_t sequence = strtoull(at + CHANNEL_EPOCH + 1, NULL, 10), last;
        if (which < 0 || (which > 0 && !c->is_joined)) return fail(w, "a strange id", c, sequence);
        last = c->last[which];
        if (which != of) {
            if (last && sequence != last && !c->gap_to[which])
                fail(w, "the other channel has moved", c, sequence);
            continue;
        }
        uint64_t wanted = c->gap_to[of] ? c->gap_to[of] : last + 1;
        if ((last || c->gap_to[of]) && sequence != wanted)
            fail(w, "an event is lost or doubled", c, sequence);
        c->last[of] = sequence;
        c->gap_to[of] = 0;
    }
}

static void take_records(struct worker *w, struct client *c)
{
    char *end, *at;
    struct buf *text = &c->text;
    buf_append_slice(text, buf_slice(&c->m->received));
    memory_take(c->m);
    while (text->len && (end = memmem(text->ptr, text->len, "\n\n", 2)) != NULL) {
        at = text->ptr;
        end[1] = 0;
        if (strncmp(at, "event: photon.gap\n", 18) == 0)
            take_gap(w, c, at);
        else if (strncmp(at, "data: ", 6) == 0)
            take_event(w, c, at);
        else
            fail(w, "something else", c, 0);
        buf_consume(text, (size_t)(end + 2 - at));
    }
}

static void serve(struct handler *self, struct exchange *x)
{
    struct probe *p = (struct probe *)self;
    const struct header *id = headers_find(&x->request.headers, SLICE("last-event-id"));
    struct channel_terms terms = {.retry = -1, .heartbeat = 0, .member = x->request.query};
    if (id) terms.last_event_id = id->value;
    size_t count = x->request.path.len > 1 ? 2 : 1;
    channel_subscribe(&p->worker, x, channels, count, &terms);
}

static void start(struct worker *w, struct client *c)
{
    struct header header = {SLICE("last-event-id"), slice_of_text(c->id)};
    char target[32];
    snprintf(target, sizeof target, "/%s?m%d", c->is_joined ? "both" : "",
             (int)(c - w->clients) % 9);
    struct memory_request request = {
        .method = SLICE("GET"),
        .target = slice_of_text(target),
        .headers = {&header, c->id[0] != 0, 1},
        .serial = ++w->serial,
    };
    c->text.len = 0;
    // A gap that was told, with no event after it, is told again.
    memset(c->gap_to, 0, sizeof c->gap_to);
    // Without an id it begins now, and nothing is known of the channels.
    if (!c->id[0]) memset(c->last, 0, sizeof c->last);
    c->m = memory_open(&w->probe.host, &request);
}

static void stop(struct client *c)
{
    memory_close(c->m);
    c->m = NULL;
}

// A joined client that has an id of one channel's event knows where it stands in both.
static void remember(struct client *c)
{
    for (const char *at = c->id[0] ? c->id : NULL; at; at = strchr(at, ','), at += at != NULL)
        c->last[epoch_of(at)] = strtoull(at + CHANNEL_EPOCH + 1, NULL, 10);
}

static void act(struct worker *w, struct client *c)
{
    uint32_t dice = report_random(&w->random) % 100;
    if (!c->m) {
        remember(c);
        start(w, c);
        return;
    }
    take_records(w, c);
    if (memory_state(c->m) != MEMORY_OPEN) {
        c->is_over = c->m->x.status == 204; // nothing more will come
        stop(c);
    } else if (dice < 6) {
        take_records(w, c);
        stop(c);
    } else if (dice < 12) {
        memory_slow(c->m, 0);
    } else if (dice < 16) {
        memory_slow(c->m, 20000 + report_random(&w->random) % 200000);
    } else if (dice < 22) {
        memory_slow(c->m, -1);
    }
}

static bool is_over(const struct worker *w)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (!w->clients[i].is_over) return false;
    }
    return true;
}

static void *run_worker(void *data)
{
    struct worker *w = data;
    uint64_t until = uv_hrtime() + UINT64_C(60000000000);
    while (!is_over(w) && !w->problem[0]) {
        loop_run_once(&w->probe.loop, 1);
        for (int i = 0; i < 12; i++) {
            struct client *c = &w->clients[report_random(&w->random) % CLIENTS];
            if (!c->is_over) act(w, c);
        }
        // In the end everybody reads.
        for (int i = 0; has_finished && i < CLIENTS; i++) {
            struct client *c = &w->clients[i];
            if (c->m && c->m->rate >= 0) memory_slow(c->m, -1);
        }
        if (uv_hrtime() > until) fail(w, "it does not end", &w->clients[0], 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (w->clients[i].m) stop(&w->clients[i]);
    }
    probe_turns(&w->probe, 5);
    return NULL;
}

static void *run_publisher(void *data)
{
    int number = (int)(intptr_t)data;
    uint32_t random = (uint32_t)number * 7919 + 1;
    for (int n = 1; n <= FLOW_EVENTS; n++) {
        char text[80];
        uint32_t which = report_random(&random) % CHANNELS;
        int len = snprintf(text, sizeof text, "%u %d %d %.*s", which, number, n, (int)(random % 40),
                           "........................................");
        if (channel_publish(channels[which], SLICE(""), slice_of(text, (size_t)len), 0, NULL))
            return (void *)"publish failed";
        // In turn a pace that readers can follow, and bursts that slow ones cannot.
        if (n / 100 % 2 == 0) usleep(random % 2000);
        if (random % 64 == 0) channel_kick(channels[which], SLICE("m3"));
    }
    return NULL;
}

static void test_flow(void)
{
    struct channel_options options = {.replay = 80, .backlog = 4096};
    pthread_t publishers[PUBLISHERS];
    unsigned gaps = 0;
    registry = channel_registry_new(10);
    for (int i = 0; i < CHANNELS; i++) {
        channels[i] = probe_channel(i ? "b" : "a", &options);
        channel_id(channels[i], 0, epochs[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        probe_open(&w->probe);
        w->probe.handler.serve = serve;
        w->random = (uint32_t)i + 12345;
        for (int k = 0; k < CLIENTS; k++) w->clients[k].is_joined = k % 2;
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
    for (int i = 0; i < PUBLISHERS; i++)
        pthread_create(&publishers[i], NULL, run_publisher, (void *)(intptr_t)i);
    for (int i = 0; i < PUBLISHERS; i++) {
        void *problem;
        pthread_join(publishers[i], &problem);
        CHECK(problem == NULL);
    }
    for (int i = 0; i < CHANNELS; i++) {
        char text[16];
        int len = snprintf(text, sizeof text, "%d last", i);
        channel_finish(channels[i], true, SLICE(""), slice_of(text, (size_t)len), 0, NULL);
    }
    has_finished = true;
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        pthread_join(w->thread, NULL);
        report_check(!w->problem[0], w->problem, __FILE__, __LINE__);
        for (int k = 0; k < CLIENTS; k++) {
            struct client *c = &w->clients[k];
            gaps += c->gaps;
            // Who has an id at all has seen the end of its channels.
            if (c->last[0]) EQUAL(c->last[0], channel_last(channels[0]));
            if (c->is_joined && c->last[1]) EQUAL(c->last[1], channel_last(channels[1]));
            buf_reset(&c->text);
        }
    }
    CHECK(gaps > 0);
    for (int i = 0; i < WORKERS; i++) probe_close(&workers[i].probe);
    uint64_t published = channel_registry_totals(registry).events;
    EQUAL(published, PUBLISHERS * FLOW_EVENTS + CHANNELS);
    for (int i = 0; i < CHANNELS; i++) {
        struct buf members = {0};
        EQUAL(channel_subscribers(channels[i]), 0);
        CHECK(channel_members(channels[i], &members) && members.len == 0);
        buf_reset(&members);
        channel_release(channels[i]);
    }
    channel_registry_free(registry);
}

static const struct report_case cases[] = {
    {"every sequence is gapless, or has exactly the gaps it was told of", test_flow},
    {0},
};

int main(void)
{
    return report_run(cases);
}
