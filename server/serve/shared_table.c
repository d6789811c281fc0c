#include "serve/shared_table.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include "base/mem.h"

enum {
    FIRST_BUCKETS = 16,
    OVERHEAD = 16, // what the allocator itself takes for a block, about
};

static _Atomic uint64_t used;
static _Atomic uint64_t seed;

static bool reserve(uint64_t size, uint64_t limit)
{
    uint64_t before = atomic_load(&used);
    do {
        if (size > limit || before > limit - size) return false;
    } while (!atomic_compare_exchange_weak(&used, &before, before + size));
    return true;
}

void *shared_table_take(size_t size, uint64_t limit)
{
    void *made;
    if (!reserve(size + OVERHEAD, limit)) return NULL;
    made = mem_zalloc(size);
    if (!made) atomic_fetch_sub(&used, size + OVERHEAD);
    return made;
}

void shared_table_give_back(void *ptr, size_t size)
{
    if (!ptr) return;
    mem_free(ptr);
    atomic_fetch_sub(&used, size + OVERHEAD);
}

static size_t entry_size(size_t key_len, size_t len)
{
    return sizeof(struct shared_entry) + key_len + len;
}

static void free_entry(struct shared_entry *e)
{
    shared_table_give_back(e, entry_size(e->key_len, e->len));
}

size_t shared_table_cost(const struct shared_entry *e)
{
    return entry_size(e->key_len, e->len) + OVERHEAD;
}

uint64_t shared_table_used(void)
{
    return atomic_load(&used);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t shared_table_hash(struct slice key)
{
    uint64_t h = atomic_load_explicit(&seed, memory_order_relaxed), word;
    const char *at = key.ptr;
    size_t left = key.len;

    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        h = mix(h ^ word, 0x9e3779b97f4a7c15);
    }
    word = 0;
    if (left) memcpy(&word, at, left);
    return mix(h ^ word, 0xd6e8feb86659fd93 ^ key.len);
}

static struct shared_entry **bucket_of(struct shared_table *t, uint64_t hash)
{
    return &t->buckets[hash & (t->bucket_count - 1)];
}

static bool is_over(const struct shared_entry *e, uint64_t now)
{
    return e->expires && e->expires <= now;
}

void shared_table_unlink(struct shared_table *t, struct shared_entry **at)
{
    struct shared_entry *e = *at;
    *at = e->next;
    t->count--;
    free_entry(e);
}

// Where the entry's link is, or NULL; one that is over is taken out.
struct shared_entry **shared_table_find(struct shared_table *t, struct slice key, uint64_t hash,
                                        uint64_t now)
{
    for (struct shared_entry **at = bucket_of(t, hash); *at; at = &(*at)->next) {
        struct shared_entry *e = *at;
        if (e->hash != hash || !slice_equals(slice_of(e->bytes, e->key_len), key)) continue;
        if (!is_over(e, now)) return at;
        shared_table_unlink(t, at);
        return NULL;
    }
    return NULL;
}

// A table that cannot grow goes on with longer chains.
static void grow(struct shared_table *t, uint64_t limit)
{
    size_t count = t->bucket_count * 2;
    struct shared_entry **old = t->buckets, *e, *next;
    struct shared_entry **made = shared_table_take(count * sizeof(struct shared_entry *), limit);

    if (!made) return;
    for (size_t i = 0; i < t->bucket_count; i++) {
        for (e = old[i]; e; e = next) {
            next = e->next;
            e->next = made[e->hash & (count - 1)];
            made[e->hash & (count - 1)] = e;
        }
    }
    shared_table_give_back(old, t->bucket_count * sizeof(struct shared_entry *));
    t->buckets = made;
    t->bucket_count = count;
}

void shared_table_sweep(struct shared_table *t, uint64_t now)
{
    uint64_t next_end = UINT64_MAX;

    if (t->next_end > now) return;
    for (size_t i = 0; i < t->bucket_count; i++) {
        struct shared_entry **at = &t->buckets[i];
        while (*at) {
            if (is_over(*at, now)) {
                shared_table_unlink(t, at);
                continue;
            }
            if ((*at)->expires && (*at)->expires < next_end) next_end = (*at)->expires;
            at = &(*at)->next;
        }
    }
    t->next_end = next_end;
}

struct shared_entry *shared_table_make(struct slice key, uint64_t hash, size_t len, uint64_t limit)
{
    struct shared_entry *e = NULL;
    if (key.len <= UINT32_MAX) e = shared_table_take(entry_size(key.len, len), limit);
    if (!e) return NULL;
    e->hash = hash;
    e->key_len = (uint32_t)key.len;
    e->len = len;
    if (key.len) memcpy(e->bytes, key.ptr, key.len);
    return e;
}

static void note_end(struct shared_table *t, const struct shared_entry *e)
{
    if (e->expires && e->expires < t->next_end) t->next_end = e->expires;
}

void shared_table_insert(struct shared_table *t, struct shared_entry *e, uint64_t limit)
{
    if (++t->count > t->bucket_count) grow(t, limit);
    struct shared_entry **at = bucket_of(t, e->hash);
    e->next = *at;
    *at = e;
    note_end(t, e);
}

void shared_table_replace(struct shared_table *t, struct shared_entry **at, struct shared_entry *e)
{
    struct shared_entry *old = *at;
    e->next = old->next;
    *at = e;
    note_end(t, e);
    free_entry(old);
}

// Keys are often chosen by clients: what they hash to must not be foreseen.
static void plant_seed(void)
{
    uint64_t fresh, none = 0;
    if (atomic_load(&seed)) return;
    if (getrandom(&fresh, sizeof fresh, GRND_NONBLOCK) != sizeof fresh)
        fresh = (uint64_t)(uintptr_t)&fresh;
    atomic_compare_exchange_strong(&seed, &none, fresh | 1);
}

bool shared_table_init(struct shared_table *t, uint64_t limit)
{
    plant_seed();
    *t = (struct shared_table){.bucket_count = FIRST_BUCKETS, .next_end = UINT64_MAX};
    t->buckets = shared_table_take(FIRST_BUCKETS * sizeof(struct shared_entry *), limit);
    return t->buckets != NULL;
}

void shared_table_clear(struct shared_table *t)
{
    for (size_t i = 0; i < t->bucket_count; i++) {
        while (t->buckets[i]) shared_table_unlink(t, &t->buckets[i]);
    }
    t->next_end = UINT64_MAX;
}

void shared_table_reset(struct shared_table *t)
{
    shared_table_clear(t);
    shared_table_give_back(t->buckets, t->bucket_count * sizeof(struct shared_entry *));
    *t = (struct shared_table){0};
}
