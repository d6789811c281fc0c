// channel_record: one event of a channel as a payload: its SSE record, with the id as the last line
// so that the sequence can be added when it is known. Pure.
#ifndef PHOTON_SERVE_CHANNEL_RECORD_H
#define PHOTON_SERVE_CHANNEL_RECORD_H

#include "serve/channel.h"

// Everything but the id line; NULL when there is no memory. The event has been checked.
struct payload *channel_record_new(struct slice event, struct slice data);

// Adds the id line and the frame. No allocation.
void channel_record_seal(struct payload *record, struct slice epoch, uint64_t sequence);

// The record without its id line and blank line.
struct slice channel_record_body(const struct payload *record);

// "<epoch>-<sequence>"; its length.
size_t channel_record_id(struct slice epoch, uint64_t sequence, char to[CHANNEL_ID]);

// The next part of a (composite) id: false at its end. `sequence` is not set (and *is_good false)
// when the part is no id.
bool channel_record_next_id(struct slice *rest, struct slice *epoch, uint64_t *sequence,
                            bool *is_good);

// The event as a line of NDJSON with that id (empty: none). False when there is no memory.
bool channel_record_line(struct buf *to, struct slice id, struct slice event, struct slice data);

#endif
