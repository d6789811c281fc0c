// journal_format: the bytes of a journal's segments. Pure.
//
// A segment is a head and then records, each of them a head and a body; all numbers are little
// endian. Both heads have a checksum (CRC-32C) of their own, so that a length is believed only when
// it is right; a record's also covers its segment's serial, so that bytes of an earlier use of the
// file are no records of this one.
#ifndef PHOTON_SERVE_JOURNAL_FORMAT_H
#define PHOTON_SERVE_JOURNAL_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

enum { JOURNAL_EPOCH = 8, JOURNAL_HEAD = 36, JOURNAL_RECORD_HEAD = 36 };

enum journal_kind {
    JOURNAL_EVENT = 1, // an event with its sequence
    JOURNAL_LAST,      // the same, and the channel's end
    JOURNAL_END,       // the end without an event
    JOURNAL_RENEWAL,   // all ids have another epoch from here on: `data`
};

struct journal_head {
    uint64_t serial; // 1, 2, …: grows with each use of a segment
    uint64_t base;   // the first record's sequence
    char epoch[JOURNAL_EPOCH];
};

struct journal_record {
    enum journal_kind kind;
    uint64_t sequence; // of the record, or of the next event when it is none
    uint64_t time;     // ms since 1970
    struct slice event, data;
};

uint32_t journal_checksum(uint32_t before, const void *bytes, size_t len); // `before` 0 at first

void journal_write_head(char to[JOURNAL_HEAD], const struct journal_head *head);

// The head of a record; its body is the event followed by the data.
void journal_write_record(char to[JOURNAL_RECORD_HEAD], const struct journal_record *record,
                          uint64_t serial);

enum journal_found {
    JOURNAL_GOOD,
    JOURNAL_SHORT, // what is there is right, but not all is there
    JOURNAL_BAD,   // damaged
    JOURNAL_ALIEN, // nothing that was ever a segment
};

// Whether these can be the first bytes, or what damage has made of them. Empty ones can.
bool journal_looks_like_head(struct slice bytes);

enum journal_found journal_read_head(struct slice bytes, struct journal_head *to);

// Borrows from `bytes`; *len is the record's whole length, when it is short too (as far as known).
enum journal_found journal_read_record(struct slice bytes, uint64_t serial,
                                       struct journal_record *to, size_t *len);

// A segment read piece by piece. Zero, then journal_scan until it has had everything.
struct journal_scan {
    struct journal_head head;
    char epoch[JOURNAL_EPOCH]; // as of the last record
    uint64_t next;             // the sequence that comes next
    uint64_t offset;           // of the first byte that is not taken yet
    enum journal_found found;  // JOURNAL_GOOD, or why it has stopped at `offset`
    bool has_head, has_end;
    void *data; // on_record's
    // Called for each record, if it is set. False stops, with has_failed.
    bool (*on_record)(struct journal_scan *s, const struct journal_record *record);
    bool has_failed;
};

// Takes what can be taken from `bytes`, which begin at `offset`; how many that were. At the end of
// the file what is left (SHORT) was cut off.
size_t journal_scan(struct journal_scan *s, struct slice bytes);

#endif
