// shared: dictionaries that the whole process shares: by name, under one lock each, in memory that
// is counted together. A value is never dropped to make room: what does not fit is refused. Entries
// with a time to live are gone at that time, and their memory is taken back when they are met or
// when room is needed. Bytes go in and out by copy, so nothing here is ever seen while another
// changes it.
//
// Everything may be called from every thread. Dictionaries live until shared_reset.
#ifndef PHOTON_SERVE_SHARED_H
#define PHOTON_SERVE_SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

enum { SHARED_MAX_NAME = 128 };

struct shared_dict;

enum shared_kind {
    SHARED_NOTHING, // no such entry
    SHARED_FALSE,
    SHARED_TRUE,
    SHARED_NUMBER,
    SHARED_STRING,
    SHARED_PACKED, // bytes whose meaning is the caller's
};

enum shared_result {
    SHARED_OK,
    SHARED_FULL,       // over the limit, or no memory
    SHARED_EXISTS,     // SHARED_ADD: there is one
    SHARED_CHANGED,    // SHARED_SWAP: no longer the version that was read
    SHARED_NOT_NUMBER, // shared_increment
};

enum shared_mode { SHARED_SET, SHARED_ADD, SHARED_SWAP };

struct shared_value {
    enum shared_kind kind;
    double number;      // SHARED_NUMBER
    struct slice bytes; // SHARED_STRING, SHARED_PACKED; borrowed for the call
};

// How a value is put. Times are milliseconds of one clock, `now` is its present.
struct shared_terms {
    enum shared_mode mode;
    uint64_t now;
    uint64_t ttl;     // 0: forever
    bool keeps_ttl;   // an entry that is replaced keeps its end instead
    uint64_t limit;   // bytes for all dictionaries together
    uint64_t version; // SHARED_SWAP: as read, 0 when there was nothing
};

// What was read. The bytes are copied to `to` when they fit into `room`.
struct shared_read {
    char *to;
    size_t room;
    enum shared_kind kind;
    double number;
    size_t len;
    uint64_t version;
};

// The dictionary of that name, made when there is none. NULL: the name is too long, or no room.
struct shared_dict *shared_open(struct slice name, uint64_t limit);

void shared_get(struct shared_dict *d, struct slice key, uint64_t now, struct shared_read *read);

enum shared_result shared_put(struct shared_dict *d, struct slice key,
                              const struct shared_value *value, const struct shared_terms *terms);

// Adds `by` to the number; begins with `init` (and the terms' ttl) where there is none. `*sum` is
// the new number. The terms' mode and version do not matter.
enum shared_result shared_increment(struct shared_dict *d, struct slice key, double by, double init,
                                    const struct shared_terms *terms, double *sum);

// Whether there was an entry, of that version when it is not 0.
bool shared_delete(struct shared_dict *d, struct slice key, uint64_t now, uint64_t version);

// Bytes in use by all dictionaries.
uint64_t shared_used(void);

// Empties every dictionary; they stay.
void shared_clear(void);

// Frees everything. No other thread may be using a dictionary.
void shared_reset(void);

#endif
