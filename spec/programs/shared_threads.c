// shared_threads: dictionaries under many threads: nothing is lost, nothing is counted twice, and
// all memory comes back.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "serve/shared.h"

enum { THREADS = 4, ROUNDS = 20000, LIMIT = 1 << 20 };

static struct shared_dict *dict;
static uint64_t own[THREADS];

static struct slice key_of(char to[16], int n)
{
    return slice_of(to, (size_t)snprintf(to, 16, "key%d", n));
}

static uint64_t read_number(struct slice key, struct shared_read *read)
{
    *read = (struct shared_read){0};
    shared_get(dict, key, 1, read);
    return read->kind == SHARED_NUMBER ? (uint64_t)read->number : 0;
}

// Adds one by reading and swapping, until nobody was faster.
static void swap_up(struct slice key)
{
    struct shared_read read;
    struct shared_value value = {.kind = SHARED_NUMBER};
    struct shared_terms terms = {.mode = SHARED_SWAP, .now = 1, .limit = LIMIT};
    do {
        value.number = (double)read_number(key, &read) + 1;
        terms.version = read.version;
    } while (shared_put(dict, key, &value, &terms) == SHARED_CHANGED);
}

static void *work(void *data)
{
    struct shared_terms terms = {.now = 1, .limit = LIMIT}, brief = terms;
    uint64_t *added = data;
    char text[16], bytes[100] = {0};
    double sum;

    brief.ttl = 1;
    for (int i = 0; i < ROUNDS; i++) {
        struct shared_value value = {.kind = SHARED_STRING, .bytes = {bytes, (size_t)i % 100}};
        shared_increment(dict, SLICE("sum"), 1, 0, &terms, &sum);
        if (i % 8 == 0) swap_up(SLICE("swapped"));
        shared_put(dict, key_of(text, i % 300), &value, i % 2 ? &terms : &brief);
        if (i % 3 == 0) shared_delete(dict, key_of(text, i % 299), 1 + (uint64_t)i, 0);
        terms.mode = SHARED_ADD;
        *added += shared_put(dict, key_of(text, 1000 + i), &value, &terms) == SHARED_OK;
        terms.mode = SHARED_SET;
    }
    return NULL;
}

static bool is_ok(bool holds, const char *title)
{
    printf(holds ? "ok %s\n" : "not ok %s: it does not hold\n", title);
    return holds;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct shared_read read;
    uint64_t added = 0;

    dict = shared_open(SLICE("d"), LIMIT);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &own[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        added += own[i];
    }
    bool ok = is_ok(read_number(SLICE("sum"), &read) == THREADS * ROUNDS, "every increment counts");
    ok &= is_ok(read_number(SLICE("swapped"), &read) == THREADS * ROUNDS / 8,
                "every swap builds on the one before");
    ok &= is_ok(added > 0 && added <= ROUNDS, "each key is added by one thread only");
    ok &= is_ok(shared_used() <= LIMIT, "the limit holds");
    ok &= is_ok(shared_open(SLICE("d"), LIMIT) == dict, "a name means one dictionary");
    shared_reset();
    ok &= is_ok(shared_used() == 0, "all memory comes back");
    return ok ? 0 : 1;
}
