// url: percent coding, queries and paths (RFC 3986, WHATWG URL for queries). Pure.
#ifndef PHOTON_TEXT_URL_H
#define PHOTON_TEXT_URL_H

#include <stdbool.h>
#include "base/slice.h"

// Decodes %XX of `s` into `to` (room for s.len bytes; may be s.ptr itself). Returns the decoded
// length, or -1 at a malformed escape. With `plus`, '+' is a space (queries and forms).
long url_decode(char *to, struct slice s, bool plus);

// True when every '%' is followed by two hex digits.
bool url_is_escaped_well(struct slice s);

// The next pair of a query or form body: *rest moves on; name and value still escaped. A pair
// without '=' has an empty value; empty pairs are passed over. False at the end.
bool url_next_pair(struct slice *rest, struct slice *name, struct slice *value);

#endif
