// sse: an event as text/event-stream (WHATWG HTML 9.2.5). Pure.
#ifndef PHOTON_TEXT_SSE_H
#define PHOTON_TEXT_SSE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

struct sse_event {
    struct slice event, id, data, comment;
    bool has_data, has_id, has_comment; // an empty id and empty data are meaningful
    int64_t retry;                      // milliseconds; -1: none
};

// NULL when it can be sent, else what is wrong: CR, LF or NUL in event or id.
const char *sse_check(const struct sse_event *e);

// Appends the record with its blank line; data and comment are split on CR, LF and CRLF. False when
// there is no memory, and then nothing was appended. The event has passed sse_check.
bool sse_write(struct buf *to, const struct sse_event *e);

// The common case, `data` with an optional event name; one reservation, one pass.
bool sse_write_data(struct buf *to, struct slice event, struct slice data);

// The same where the caller has the memory: how much at most, and the end of what was written.
size_t sse_data_room(struct slice event, struct slice data);
char *sse_put_data(char *to, struct slice event, struct slice data);

#endif
