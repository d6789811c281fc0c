#include "serve/journal_format.h"

#include <endian.h>
#include <pthread.h>

enum { JOURNAL_MAGIC = 8, JOURNAL_SUM_AT = 32 };

static const char journal_magic[JOURNAL_MAGIC] = "photonj1";

// Checksums ---------------------------------------------------------------------------------------

static uint32_t journal_table[8][256]; // eight bytes at a time

static void journal_make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t sum = i;
        for (int bit = 0; bit < 8; bit++) sum = (sum >> 1) ^ (sum & 1 ? 0x82f63b78u : 0);
        journal_table[0][i] = sum;
    }
    for (int row = 1; row < 8; row++) {
        for (int i = 0; i < 256; i++) {
            uint32_t sum = journal_table[row - 1][i];
            journal_table[row][i] = (sum >> 8) ^ journal_table[0][sum & 0xff];
        }
    }
}

uint32_t journal_checksum(uint32_t before, const void *bytes, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *at = bytes;
    uint32_t sum = ~before;
    pthread_once(&once, journal_make_table);
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word = le64toh(word) ^ sum;
        sum = 0;
        for (int i = 0; i < 8; i++) sum ^= journal_table[7 - i][(word >> (8 * i)) & 0xff];
    }
    for (; len; at++, len--) sum = (sum >> 8) ^ journal_table[0][(sum ^ *at) & 0xff];
    return ~sum;
}

// Numbers -----------------------------------------------------------------------------------------

static void journal_put32(char *to, uint32_t value)
{
    value = htole32(value);
    memcpy(to, &value, 4);
}

static void journal_put64(char *to, uint64_t value)
{
    value = htole64(value);
    memcpy(to, &value, 8);
}

static uint32_t journal_get32(const char *from)
{
    uint32_t value;
    memcpy(&value, from, 4);
    return le32toh(value);
}

static uint64_t journal_get64(const char *from)
{
    uint64_t value;
    memcpy(&value, from, 8);
    return le64toh(value);
}

// Heads: magic, serial, base, epoch, sum ----------------------------------------------------------

void journal_write_head(char to[JOURNAL_HEAD], const struct journal_head *head)
{
    memcpy(to, journal_magic, JOURNAL_MAGIC);
    journal_put64(to + 8, head->serial);
    journal_put64(to + 16, head->base);
    memcpy(to + 24, head->epoch, JOURNAL_EPOCH);
    journal_put32(to + JOURNAL_SUM_AT, journal_checksum(0, to, JOURNAL_SUM_AT));
}

// An epoch becomes part of ids, which other rooms take for clean.
static bool journal_epoch_is_good(const char *epoch)
{
    for (int i = 0; i < JOURNAL_EPOCH; i++) {
        bool is_digit = epoch[i] >= '0' && epoch[i] <= '9';
        if (!is_digit && (epoch[i] < 'a' || epoch[i] > 'z')) return false;
    }
    return true;
}

// A damaged segment still shows most of its magic.
bool journal_looks_like_head(struct slice bytes)
{
    size_t same = 0, len = bytes.len < JOURNAL_MAGIC ? bytes.len : JOURNAL_MAGIC;
    for (size_t i = 0; i < len; i++) same += bytes.ptr[i] == journal_magic[i];
    return same * 2 >= len;
}

enum journal_found journal_read_head(struct slice bytes, struct journal_head *to)
{
    if (bytes.len < JOURNAL_MAGIC) return JOURNAL_SHORT;
    if (!journal_looks_like_head(bytes)) return JOURNAL_ALIEN;
    if (bytes.len < JOURNAL_HEAD) return JOURNAL_SHORT;
    if (memcmp(bytes.ptr, journal_magic, JOURNAL_MAGIC) != 0) return JOURNAL_BAD;
    if (journal_get32(bytes.ptr + JOURNAL_SUM_AT) != journal_checksum(0, bytes.ptr, JOURNAL_SUM_AT))
        return JOURNAL_BAD;
    to->serial = journal_get64(bytes.ptr + 8);
    to->base = journal_get64(bytes.ptr + 16);
    memcpy(to->epoch, bytes.ptr + 24, JOURNAL_EPOCH);
    bool is_good = to->serial && to->base && to->base <= INT64_MAX;
    return is_good && journal_epoch_is_good(to->epoch) ? JOURNAL_GOOD : JOURNAL_BAD;
}

// Records: body's length, event's length, sequence, time, kind, body's sum, sum -------------------

static uint32_t journal_record_sum(const char *head, uint64_t serial)
{
    serial = htole64(serial);
    return journal_checksum(journal_checksum(0, head, JOURNAL_SUM_AT), &serial, sizeof serial);
}

void journal_write_record(char to[JOURNAL_RECORD_HEAD], const struct journal_record *record,
                          uint64_t serial)
{
    uint32_t sum = journal_checksum(0, record->event.ptr, record->event.len);
    journal_put32(to, (uint32_t)(record->event.len + record->data.len));
    journal_put32(to + 4, (uint32_t)record->event.len);
    journal_put64(to + 8, record->sequence);
    journal_put64(to + 16, record->time);
    journal_put32(to + 24, record->kind);
    journal_put32(to + 28, journal_checksum(sum, record->data.ptr, record->data.len));
    journal_put32(to + JOURNAL_SUM_AT, journal_record_sum(to, serial));
}

static bool journal_body_is_good(const struct journal_record *r)
{
    if (r->kind == JOURNAL_RENEWAL)
        return r->data.len == JOURNAL_EPOCH && !r->event.len && journal_epoch_is_good(r->data.ptr);
    if (r->kind == JOURNAL_END) return !r->event.len && !r->data.len;
    if (r->kind != JOURNAL_EVENT && r->kind != JOURNAL_LAST) return false;
    return !r->event.len ||
           (!memchr(r->event.ptr, '\n', r->event.len) &&
            !memchr(r->event.ptr, '\r', r->event.len) && !memchr(r->event.ptr, '\0', r->event.len));
}

enum journal_found journal_read_record(struct slice bytes, uint64_t serial,
                                       struct journal_record *to, size_t *len)
{
    const char *at = bytes.ptr;
    *len = JOURNAL_RECORD_HEAD;
    if (bytes.len < JOURNAL_RECORD_HEAD) return JOURNAL_SHORT;
    if (journal_get32(at + JOURNAL_SUM_AT) != journal_record_sum(at, serial)) return JOURNAL_BAD;
    uint32_t body = journal_get32(at), event = journal_get32(at + 4);
    *len += body;
    if (event > body) return JOURNAL_BAD;
    if (bytes.len < *len) return JOURNAL_SHORT;
    *to = (struct journal_record){
        .kind = (enum journal_kind)journal_get32(at + 24),
        .sequence = journal_get64(at + 8),
        .time = journal_get64(at + 16),
        .event = {at + JOURNAL_RECORD_HEAD, event},
        .data = {at + JOURNAL_RECORD_HEAD + event, body - event},
    };
    if (journal_get32(at + 28) != journal_checksum(0, to->event.ptr, body)) return JOURNAL_BAD;
    return journal_body_is_good(to) ? JOURNAL_GOOD : JOURNAL_BAD;
}

// Scans -------------------------------------------------------------------------------------------

static size_t journal_scan_head(struct journal_scan *s, struct slice bytes)
{
    s->found = journal_read_head(bytes, &s->head);
    if (s->found != JOURNAL_GOOD) return 0;
    s->has_head = true;
    s->next = s->head.base;
    memcpy(s->epoch, s->head.epoch, JOURNAL_EPOCH);
    return JOURNAL_HEAD;
}

static size_t journal_scan_record(struct journal_scan *s, struct slice bytes)
{
    struct journal_record record;
    size_t len;
    s->found = journal_read_record(bytes, s->head.serial, &record, &len);
    if (s->found != JOURNAL_GOOD) return 0;
    if (record.sequence != s->next || (s->has_end && record.kind != JOURNAL_RENEWAL)) {
        s->found = JOURNAL_BAD;
        return 0;
    }
    if (s->on_record && !s->on_record(s, &record)) {
        s->has_failed = true;
        return 0;
    }
    if (record.kind == JOURNAL_EVENT || record.kind == JOURNAL_LAST) s->next++;
    if (record.kind == JOURNAL_LAST || record.kind == JOURNAL_END) s->has_end = true;
    if (record.kind == JOURNAL_RENEWAL) memcpy(s->epoch, record.data.ptr, JOURNAL_EPOCH);
    return len;
}

size_t journal_scan(struct journal_scan *s, struct slice bytes)
{
    size_t taken = 0, step;
    do {
        struct slice rest = slice_from(bytes, taken);
        if (s->has_head && rest.len == 0) break;
        step = s->has_head ? journal_scan_record(s, rest) : journal_scan_head(s, rest);
        taken += step;
        s->offset += step;
    } while (step);
    return taken;
}
