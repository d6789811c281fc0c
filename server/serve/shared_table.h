// shared_table: the hash table behind one shared dictionary, and the counting of the memory of all.
// For shared alone, which holds the dictionary's lock.
#ifndef PHOTON_SERVE_SHARED_TABLE_H
#define PHOTON_SERVE_SHARED_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

struct shared_entry {
    struct shared_entry *next;
    uint64_t hash;
    uint64_t expires; // 0: never
    uint64_t version;
    double number;
    uint32_t key_len;
    uint32_t kind; // enum shared_kind
    size_t len;
    char bytes[]; // key, value
};

struct shared_table {
    struct shared_entry **buckets;
    size_t bucket_count, count; // bucket_count is a power of two
    uint64_t next_end;          // no entry ends before this time
};

// False when there is no room.
bool shared_table_init(struct shared_table *t, uint64_t limit);

// Frees all entries; reset frees the table as well.
void shared_table_clear(struct shared_table *t);
void shared_table_reset(struct shared_table *t);

uint64_t shared_table_hash(struct slice key);

// Where the entry's link is, or NULL; one that is over is taken out.
struct shared_entry **shared_table_find(struct shared_table *t, struct slice key, uint64_t hash,
                                        uint64_t now);

// An entry of that size that stands in no table yet, with its key; NULL when there is no room.
struct shared_entry *shared_table_make(struct slice key, uint64_t hash, size_t len, uint64_t limit);

void shared_table_insert(struct shared_table *t, struct shared_entry *e, uint64_t limit);

// Puts `e` where `*at` was, and frees that one.
void shared_table_replace(struct shared_table *t, struct shared_entry **at, struct shared_entry *e);

void shared_table_unlink(struct shared_table *t, struct shared_entry **at);

// Frees all entries that are over.
void shared_table_sweep(struct shared_table *t, uint64_t now);

// Bytes that an entry is counted with.
size_t shared_table_cost(const struct shared_entry *e);

// Counted memory, zeroed; NULL when it would pass the limit or there is none.
void *shared_table_take(size_t size, uint64_t limit);
void shared_table_give_back(void *ptr, size_t size);
uint64_t shared_table_used(void);

#endif
