#include "serve/stream_ip.h"

#include <pthread.h>
#include "base/mem.h"

enum { STREAM_IP_BUCKETS = 1024, STREAM_IP_LEN = 16 };

struct stream_ip {
    struct stream_ip *chain;
    uint8_t ip[STREAM_IP_LEN];
    uint32_t count;
};

struct stream_ip_watch {
    struct exchange_watch watch;
    struct stream_ip *entry;
};

static pthread_mutex_t stream_ip_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_ip *stream_ip_table[STREAM_IP_BUCKETS];

static struct stream_ip **stream_ip_bucket(const uint8_t ip[STREAM_IP_LEN])
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < STREAM_IP_LEN; i++) hash = (hash ^ ip[i]) * 16777619u;
    return &stream_ip_table[hash % STREAM_IP_BUCKETS];
}

// Where the address stands in its bucket, or the bucket's end. Under the lock.
static struct stream_ip **stream_ip_find(const uint8_t ip[STREAM_IP_LEN])
{
    struct stream_ip **at = stream_ip_bucket(ip);
    while (*at && memcmp((*at)->ip, ip, STREAM_IP_LEN) != 0) at = &(*at)->chain;
    return at;
}

// One more of the address. NULL when it has enough (`is_full`), or there is no memory.
static struct stream_ip *stream_ip_take(const uint8_t ip[STREAM_IP_LEN], uint32_t most,
                                        bool *is_full)
{
    pthread_mutex_lock(&stream_ip_lock);
    struct stream_ip **at = stream_ip_find(ip), *entry = *at;
    *is_full = entry && entry->count >= most;
    if (!entry && (entry = mem_zalloc(sizeof *entry)) != NULL) {
        memcpy(entry->ip, ip, STREAM_IP_LEN);
        *at = entry;
    }
    if (entry && !*is_full) entry->count++;
    pthread_mutex_unlock(&stream_ip_lock);
    return *is_full ? NULL : entry;
}

static void stream_ip_leave(struct stream_ip *entry)
{
    pthread_mutex_lock(&stream_ip_lock);
    if (--entry->count == 0) {
        *stream_ip_find(entry->ip) = entry->chain;
        mem_free(entry);
    }
    pthread_mutex_unlock(&stream_ip_lock);
}

static void stream_ip_on_over(struct exchange_watch *w, enum exchange_end how)
{
    (void)how;
    stream_ip_leave(list_entry(w, struct stream_ip_watch, watch)->entry);
}

static void stream_ip_refuse(struct exchange *x)
{
    struct header retry = {SLICE("retry-after"), SLICE("5")};
    struct headers extra = {&retry, 1, 1};
    counters_add(&x->loop->counters->streams_refused, 1);
    exchange_error(x, 429, "too many open streams of one address (max_streams_per_ip)", &extra);
}

bool stream_ip_enter(struct exchange *x, const uint8_t ip[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t key[STREAM_IP_LEN];
    bool is_full = false;
    struct stream_ip_watch *w = arena_alloc(&x->arena, sizeof *w);
    memcpy(key, ip, STREAM_IP_LEN);
    if (memcmp(key, mapped, sizeof mapped) != 0) memset(key + 8, 0, 8);
    struct stream_ip *entry =
        w ? stream_ip_take(key, x->limits->max_streams_per_ip, &is_full) : NULL;
    if (is_full) stream_ip_refuse(x);
    if (!entry && !is_full) exchange_error(x, 503, NULL, NULL);
    if (!entry) return false;
    *w = (struct stream_ip_watch){.watch = {.on_over = stream_ip_on_over}, .entry = entry};
    exchange_watch(x, &w->watch);
    return true;
}
