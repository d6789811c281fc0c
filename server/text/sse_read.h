// sse_read: events out of the bytes of a text/event-stream (WHATWG HTML 9.2.6). Pure. Does not
// depend on how the bytes are cut.
#ifndef PHOTON_TEXT_SSE_READ_H
#define PHOTON_TEXT_SSE_READ_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

enum sse_found {
    SSE_MORE,    // all bytes are consumed
    SSE_EVENT,   // `record` is an event
    SSE_COMMENT, // record->data is a comment's text
    SSE_TOO_LARGE,
    SSE_NO_MEMORY,
};

struct sse_record {
    struct slice type, data, id; // valid until the next call; an event without a type is "message"
};

struct sse_reader {
    struct buf line; // the beginning of a line that is not complete
    struct buf data, type, id;
    int64_t retry;    // the last reconnection time, milliseconds; -1: none was told
    size_t max_event; // bytes of one event's fields, and of a line
    uint8_t bom;      // how much of a byte order mark has come; 3: the beginning is over
    bool is_after_cr; // a LF that comes now belongs to the last line
    bool is_told;     // `data` and `type` are those of the event that was told last
    bool has_failed;
};

void sse_read_init(struct sse_reader *r, size_t max_event);

// Consumes bytes up to the end of the next event or comment; *used tells how many. Call until
// SSE_MORE. After a failure every call fails alike.
enum sse_found sse_read_next(struct sse_reader *r, const char *bytes, size_t len, size_t *used,
                             struct sse_record *record);

// True when no event or line has been begun: a stream that ends here has lost nothing.
bool sse_read_is_between(const struct sse_reader *r);

void sse_read_reset(struct sse_reader *r); // frees its memory

#endif
