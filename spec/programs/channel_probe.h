// channel_probe: clients of channels over the memory transport, on one loop.
#ifndef PHOTON_SPEC_CHANNEL_PROBE_H
#define PHOTON_SPEC_CHANNEL_PROBE_H

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "http/memory.h"
#include "report.h"
#include "serve/channel_worker.h"

struct probe {
    struct handler handler; // subscribes to `channels` by `terms`
    struct loop loop;
    struct counters counters;
    struct limits limits;
    struct memory_host host;
    struct channel_worker worker;
    _Atomic uint32_t streams;
    struct channel *channels[8];
    size_t count;
    struct channel_terms terms;
    bool is_refused; // the last subscription was answered otherwise
};

static struct channel_registry *registry;

static void probe_serve(struct handler *self, struct exchange *x)
{
    struct probe *p = (struct probe *)self;
    const struct header *id = headers_find(&x->request.headers, SLICE("last-event-id"));
    struct channel_terms terms = p->terms;
    if (id) terms.last_event_id = id->value;
    p->is_refused = !channel_subscribe(&p->worker, x, p->channels, p->count, &terms);
}

static void probe_on_wake(struct loop *loop)
{
    channel_worker_run(&((struct probe *)loop->owner)->worker);
}

static inline void probe_open(struct probe *p)
{
    *p = (struct probe){.handler.serve = probe_serve, .limits = LIMITS_DEFAULT};
    p->terms.retry = -1;
    p->loop.on_wake = probe_on_wake;
    p->loop.owner = p;
    CHECK(loop_open(&p->loop, &p->counters));
    memory_host_init(&p->host, &p->loop, &p->limits, &p->handler);
    channel_worker_open(&p->worker, &p->loop, &p->streams);
}

static inline void probe_turns(struct probe *p, unsigned count)
{
    while (count--) loop_run_once(&p->loop, 0);
}

static inline void probe_close(struct probe *p)
{
    memory_host_close(&p->host);
    probe_turns(p, 4);
    EQUAL(p->streams, 0);
    EQUAL(p->counters.channel_subscribers, 0);
    channel_worker_close(&p->worker);
    loop_close(&p->loop);
}

// A client; `id` NULL: it has none.
static inline struct memory *probe_connect(struct probe *p, const char *method, struct slice id)
{
    struct header header = {SLICE("last-event-id"), id};
    struct memory_request request = {
        .method = slice_of_text(method),
        .target = SLICE("/"),
        .headers = {&header, id.ptr != NULL, 1},
        .serial = p->loop.now,
    };
    return memory_open(&p->host, &request);
}

// The same, and what it has got at once.
static inline struct memory *probe_get(struct probe *p, const char *id)
{
    struct memory *m = probe_connect(p, "GET", slice_of_text(id));
    probe_turns(p, 4);
    return m;
}

static inline struct channel *probe_channel(const char *name, const struct channel_options *options)
{
    struct channel *ch = NULL;
    EQUAL(channel_open(registry, slice_of_text(name), options, 1, 0, &ch), CHANNEL_OK);
    return ch;
}

static inline uint64_t probe_publish(struct channel *ch, const char *event, const char *data)
{
    uint64_t sequence = 0;
    EQUAL(channel_publish(ch, slice_of_text(event), slice_of_text(data), 0, &sequence), CHANNEL_OK);
    return sequence;
}

// Its text with the epoch of each channel written as A, B, … and the received bytes forgotten.
static inline const char *probe_text(struct probe *p, struct memory *m)
{
    static char text[1 << 16];
    size_t len = m->received.len < sizeof text - 1 ? m->received.len : sizeof text - 1;
    if (len) memcpy(text, m->received.ptr, len);
    text[len] = 0;
    memory_take(m);
    for (size_t i = 0; i < p->count; i++) {
        char epoch[CHANNEL_ID], *at;
        channel_id(p->channels[i], 0, epoch);
        while ((at = memmem(text, strlen(text), epoch, CHANNEL_EPOCH)) != NULL) {
            *at = (char)('A' + i);
            memmove(at + 1, at + CHANNEL_EPOCH, strlen(at + CHANNEL_EPOCH) + 1);
        }
    }
    return text;
}

static inline bool probe_same(const char *got, const char *wanted, const char *file, int line)
{
    char text[400];
    snprintf(text, sizeof text, "got \"%.160s\", not \"%.160s\"", got, wanted);
    for (char *at = text; *at; at++) {
        if (*at == '\n') *at = '|';
    }
    return report_check(strcmp(got, wanted) == 0, text, file, line);
}

#define SAME(got, wanted) probe_same(got, wanted, __FILE__, __LINE__)

// An id of a channel as text.
static inline const char *probe_id(struct channel *ch, uint64_t sequence)
{
    static char id[CHANNEL_ID + 1];
    id[channel_id(ch, sequence, id)] = 0;
    return id;
}

#endif
