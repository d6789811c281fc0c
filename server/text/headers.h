// headers: the fields of one message as data. Names are lower case in memory.
#ifndef PHOTON_TEXT_HEADERS_H
#define PHOTON_TEXT_HEADERS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/slice.h"

struct header {
    struct slice name, value;
};

struct headers {
    struct header *items;
    uint32_t count, cap;
};

// The first field with that lower-case name, NULL when there is none.
const struct header *headers_find(const struct headers *h, struct slice name);

// How many fields bear that name.
unsigned headers_count(const struct headers *h, struct slice name);

// Appends; the array grows in the arena. False when there is no memory. Bytes are borrowed.
bool headers_add(struct headers *h, struct arena *a, struct slice name, struct slice value);

// A token (RFC 9110 5.6.2): what a method or a field name may be.
bool headers_is_name(struct slice s);

// A field value without CR, LF, NUL or other control bytes than tab (RFC 9110 5.5).
bool headers_is_value(struct slice s);

// True when the comma-separated list in `value` has `token`, case ignored (RFC 9110 5.6.1).
bool headers_has_token(struct slice value, struct slice token);

#endif
