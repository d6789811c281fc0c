#include "serve/shared.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "serve/shared_table.h"

struct shared_dict {
    struct shared_dict *next;
    pthread_mutex_t lock;
    struct shared_table table;
    uint64_t last_version;
    uint32_t name_len;
    char name[];
};

// All dictionaries; the list only grows.
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_dict *_Atomic all;

uint64_t shared_used(void)
{
    return shared_table_used();
}

static struct shared_dict *find_dict(struct slice name)
{
    for (struct shared_dict *d = atomic_load(&all); d; d = d->next) {
        if (d->name_len == name.len && memcmp(d->name, name.ptr, name.len) == 0) return d;
    }
    return NULL;
}

static struct shared_dict *make_dict(struct slice name, uint64_t limit)
{
    struct shared_dict *d = shared_table_take(sizeof *d + name.len, limit);

    if (!d) return NULL;
    if (!shared_table_init(&d->table, limit)) {
        shared_table_give_back(d, sizeof *d + name.len);
        return NULL;
    }
    pthread_mutex_init(&d->lock, NULL);
    d->name_len = (uint32_t)name.len;
    memcpy(d->name, name.ptr, name.len);
    d->next = atomic_load(&all);
    atomic_store(&all, d);
    return d;
}

struct shared_dict *shared_open(struct slice name, uint64_t limit)
{
    struct shared_dict *d;

    if (name.len > SHARED_MAX_NAME) return NULL;
    pthread_mutex_lock(&all_lock);
    d = find_dict(name);
    if (!d) d = make_dict(name, limit);
    pthread_mutex_unlock(&all_lock);
    return d;
}

void shared_clear(void)
{
    for (struct shared_dict *d = atomic_load(&all); d; d = d->next) {
        pthread_mutex_lock(&d->lock);
        shared_table_clear(&d->table);
        pthread_mutex_unlock(&d->lock);
    }
}

void shared_reset(void)
{
    struct shared_dict *d = atomic_exchange(&all, NULL), *next;

    for (; d; d = next) {
        next = d->next;
        shared_table_reset(&d->table);
        pthread_mutex_destroy(&d->lock);
        shared_table_give_back(d, sizeof *d + d->name_len);
    }
}

// ---- entries -----------------------------------------------------------------------------------

void shared_get(struct shared_dict *d, struct slice key, uint64_t now, struct shared_read *read)
{
    uint64_t hash = shared_table_hash(key);

    pthread_mutex_lock(&d->lock);
    struct shared_entry **at = shared_table_find(&d->table, key, hash, now);
    read->kind = SHARED_NOTHING;
    read->version = 0;
    read->len = 0;
    if (at) {
        const struct shared_entry *e = *at;
        read->kind = (enum shared_kind)e->kind;
        read->number = e->number;
        read->len = e->len;
        read->version = e->version;
        if (e->len && e->len <= read->room) memcpy(read->to, e->bytes + e->key_len, e->len);
    }
    pthread_mutex_unlock(&d->lock);
}

static uint64_t end_of(const struct shared_terms *terms)
{
    if (!terms->ttl) return 0;
    return terms->ttl > UINT64_MAX - 1 - terms->now ? 0 : terms->now + terms->ttl;
}

static enum shared_result put(struct shared_dict *d, struct slice key, uint64_t hash,
                              const struct shared_value *value, const struct shared_terms *terms)
{
    struct shared_entry **at = shared_table_find(&d->table, key, hash, terms->now), *made;
    struct shared_entry *old = at ? *at : NULL;
    uint64_t limit = terms->limit + (old ? shared_table_cost(old) : 0); // it makes room

    if (terms->mode == SHARED_ADD && old) return SHARED_EXISTS;
    if (terms->mode == SHARED_SWAP && terms->version != (old ? old->version : 0))
        return SHARED_CHANGED;
    made = shared_table_make(key, hash, value->bytes.len, limit);
    if (!made) return SHARED_FULL;
    made->kind = value->kind;
    made->number = value->number;
    if (made->len) memcpy(made->bytes + key.len, value->bytes.ptr, made->len);
    made->version = ++d->last_version;
    made->expires = old && terms->keeps_ttl ? old->expires : end_of(terms);
    if (old)
        shared_table_replace(&d->table, at, made);
    else
        shared_table_insert(&d->table, made, terms->limit);
    return SHARED_OK;
}

// Takes back the memory of all entries that are over, in every dictionary. No lock is held.
static void sweep_all(uint64_t now)
{
    for (struct shared_dict *d = atomic_load(&all); d; d = d->next) {
        pthread_mutex_lock(&d->lock);
        shared_table_sweep(&d->table, now);
        pthread_mutex_unlock(&d->lock);
    }
}

enum shared_result shared_put(struct shared_dict *d, struct slice key,
                              const struct shared_value *value, const struct shared_terms *terms)
{
    uint64_t hash = shared_table_hash(key);
    enum shared_result result = SHARED_FULL;

    for (int attempt = 0; attempt < 2 && result == SHARED_FULL; attempt++) {
        if (attempt) sweep_all(terms->now);
        pthread_mutex_lock(&d->lock);
        result = put(d, key, hash, value, terms);
        pthread_mutex_unlock(&d->lock);
    }
    return result;
}

static enum shared_result increment(struct shared_dict *d, struct slice key, uint64_t hash,
                                    double by, double init, const struct shared_terms *terms,
                                    double *sum)
{
    struct shared_terms set = *terms;
    struct shared_entry **at = shared_table_find(&d->table, key, hash, terms->now);

    if (at) {
        if ((*at)->kind != SHARED_NUMBER) return SHARED_NOT_NUMBER;
        (*at)->version = ++d->last_version;
        *sum = (*at)->number += by;
        return SHARED_OK;
    }
    *sum = init + by;
    set.mode = SHARED_SET;
    return put(d, key, hash, &(struct shared_value){.kind = SHARED_NUMBER, .number = *sum}, &set);
}

enum shared_result shared_increment(struct shared_dict *d, struct slice key, double by, double init,
                                    const struct shared_terms *terms, double *sum)
{
    uint64_t hash = shared_table_hash(key);
    enum shared_result result = SHARED_FULL;

    for (int attempt = 0; attempt < 2 && result == SHARED_FULL; attempt++) {
        if (attempt) sweep_all(terms->now);
        pthread_mutex_lock(&d->lock);
        result = increment(d, key, hash, by, init, terms, sum);
        pthread_mutex_unlock(&d->lock);
    }
    return result;
}

bool shared_delete(struct shared_dict *d, struct slice key, uint64_t now, uint64_t version)
{
    uint64_t hash = shared_table_hash(key);

    pthread_mutex_lock(&d->lock);
    struct shared_entry **at = shared_table_find(&d->table, key, hash, now);
    bool is_there = at && (!version || (*at)->version == version);
    if (is_there) shared_table_unlink(&d->table, at);
    pthread_mutex_unlock(&d->lock);
    return is_there;
}
