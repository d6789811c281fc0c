#include "base/log_line.h"

#include <assert.h>
#include "base/log.h"

enum {
    LOG_LINE_TAIL = 512, // room for all that is not content, so that a cut line can still be closed
    LOG_LINE_SECOND = sizeof "2026-11-30T16:10:19" - 1,
    LOG_LINE_DECIMAL = 20,
};

static void log_line_put(struct log_line *line, struct slice s)
{
    assert(s.len <= LOG_LINE - line->len);
    memcpy(line->bytes + line->len, s.ptr, s.len);
    line->len += s.len;
}

static void log_line_put_decimal(struct log_line *line, uint64_t value, int least_digits)
{
    char digits[LOG_LINE_DECIMAL], *end = digits + LOG_LINE_DECIMAL, *at = end;
    do *--at = (char)('0' + value % 10);
    while ((value /= 10) || end - at < least_digits);
    log_line_put(line, slice_of(at, (size_t)(end - at)));
}

// The seconds change rarely, and taking a calendar apart costs more than the rest of a line.
static void log_line_put_time(struct log_line *line, const struct timespec *time)
{
    static _Thread_local time_t second;
    static _Thread_local char text[LOG_LINE_SECOND + 1];
    if (second != time->tv_sec || !text[0]) {
        struct tm parts;
        gmtime_r(&time->tv_sec, &parts);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
        second = time->tv_sec;
    }
    log_line_put(line, slice_of_text(text));
    log_line_put(line, SLICE("."));
    log_line_put_decimal(line, (uint64_t)time->tv_nsec / 1000000, 3);
    log_line_put(line, SLICE("Z"));
}

// How many bytes the UTF-8 character takes that the text begins with; 0 when it is none.
static size_t log_line_utf8(struct slice s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;
    if (at[0] < 0x80) return 1;
    size_t len = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || len > s.len) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    bool is_overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool is_outside = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return is_overlong || is_outside ? 0 : len;
}

// What stands for a byte in text form: nobody can forge a line, or speak to the terminal.
static struct slice log_line_escape_text(char room[8], unsigned char c)
{
    if (c == '\n') return SLICE("\n    ");
    memcpy(room, "\\x00", 4);
    room[2] = "0123456789abcdef"[c >> 4];
    room[3] = "0123456789abcdef"[c & 15];
    return slice_of(room, 4);
}

static struct slice log_line_escape_json(char room[8], unsigned char c)
{
    switch (c) {
    case '"': return SLICE("\\\"");
    case '\\': return SLICE("\\\\");
    case '\n': return SLICE("\\n");
    case '\t': return SLICE("\\t");
    default: break;
    }
    if (c >= 0x80) return SLICE("\xef\xbf\xbd"); // the replacement character
    memcpy(room, "\\u0000", 6);
    room[4] = "0123456789abcdef"[c >> 4];
    room[5] = "0123456789abcdef"[c & 15];
    return slice_of(room, 6);
}

// How the character that `rest` begins with reads in a line; *taken is how many bytes it is.
static struct slice log_line_character(char room[8], bool is_json, struct slice rest, size_t *taken)
{
    unsigned char c = (unsigned char)rest.ptr[0];
    size_t len = log_line_utf8(rest);
    bool is_plain =
        is_json ? len && c >= ' ' && c != '"' && c != '\\' : (c >= ' ' || c == '\t') && c != 0x7f;
    *taken = is_plain && len ? len : 1;
    if (is_plain) return slice_of(rest.ptr, *taken);
    return is_json ? log_line_escape_json(room, c) : log_line_escape_text(room, c);
}

// How many bytes at the start of `text` mean themselves in both forms; most lines are all such.
static size_t log_line_plain_length(struct slice text)
{
    size_t len = 0;
    while (len < text.len && text.ptr[len] >= ' ' && text.ptr[len] < 0x7f && text.ptr[len] != '"' &&
           text.ptr[len] != '\\') {
        len++;
    }
    return len;
}

static void log_line_put_content(struct log_line *line, bool is_json, struct slice text)
{
    const size_t most = LOG_LINE - LOG_LINE_TAIL;
    bool is_cut = text.len > LOG_MESSAGE;
    if (is_cut) text.len = LOG_MESSAGE;
    while (text.len) {
        char room[8];
        size_t taken = log_line_plain_length(text), left = line->len < most ? most - line->len : 0;
        if (taken > left) taken = left;
        struct slice shown = slice_of(text.ptr, taken);
        if (!taken) shown = log_line_character(room, is_json, text, &taken);
        if (shown.len > left) break;
        log_line_put(line, shown);
        text = slice_from(text, taken);
    }
    if (is_cut || text.len) log_line_put(line, SLICE(" ... (cut)"));
}

static void log_line_begin(struct log_line *line, bool is_json, const struct timespec *time,
                           const char *level)
{
    line->len = 0;
    if (is_json) log_line_put(line, SLICE("{\"time\":\""));
    log_line_put_time(line, time);
    log_line_put(line, is_json ? SLICE("\",\"level\":\"") : SLICE(" "));
    log_line_put(line, slice_of_text(level));
    log_line_put(line, is_json ? SLICE("\",\"message\":\"") : SLICE(" "));
}

void log_line_message(struct log_line *line, bool is_json, const struct timespec *time,
                      const char *level, struct slice text)
{
    log_line_begin(line, is_json, time, level);
    while (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    log_line_put_content(line, is_json, text);
    log_line_put(line, is_json ? SLICE("\"}\n") : SLICE("\n"));
}

static void log_line_access_text(struct log_line *line, const struct log_access *entry)
{
    log_line_put_content(line, false, entry->method);
    log_line_put(line, SLICE(" "));
    log_line_put_content(line, false, entry->target);
    log_line_put(line, SLICE(" "));
    log_line_put_decimal(line, (uint64_t)entry->status, 3);
    log_line_put(line, SLICE(" "));
    log_line_put_decimal(line, entry->bytes, 1);
    log_line_put(line, SLICE("B "));
    log_line_put_decimal(line, entry->micros / 1000, 1);
    log_line_put(line, SLICE("."));
    log_line_put_decimal(line, entry->micros % 1000, 3);
    log_line_put(line, SLICE("ms "));
    log_line_put_content(line, false, entry->ip);
    if (entry->id.len) log_line_put(line, SLICE(" "));
    log_line_put_content(line, false, entry->id);
    log_line_put(line, SLICE("\n"));
}

static void log_line_access_json(struct log_line *line, const struct log_access *entry)
{
    log_line_put(line, SLICE("request\",\"method\":\""));
    log_line_put_content(line, true, entry->method);
    log_line_put(line, SLICE("\",\"target\":\""));
    log_line_put_content(line, true, entry->target);
    log_line_put(line, SLICE("\",\"status\":"));
    log_line_put_decimal(line, (uint64_t)entry->status, 1);
    log_line_put(line, SLICE(",\"bytes\":"));
    log_line_put_decimal(line, entry->bytes, 1);
    log_line_put(line, SLICE(",\"micros\":"));
    log_line_put_decimal(line, entry->micros, 1);
    log_line_put(line, SLICE(",\"ip\":\""));
    log_line_put_content(line, true, entry->ip);
    log_line_put(line, SLICE("\",\"id\":\""));
    log_line_put_content(line, true, entry->id);
    log_line_put(line, SLICE("\"}\n"));
}

void log_line_access(struct log_line *line, bool is_json, const struct timespec *time,
                     const struct log_access *entry)
{
    log_line_begin(line, is_json, time, is_json ? "info" : "access");
    if (is_json)
        log_line_access_json(line, entry);
    else
        log_line_access_text(line, entry);
}
