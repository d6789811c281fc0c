#include "text/date.h"

#include <time.h>

enum { DATE_DAY = 86400, DATE_ERA = 146097 }; // an era is 400 years, after which all repeats

static const int64_t date_first = -62167219200, date_last = 253402300799; // years 0 to 9999
static const char date_days[] = "SunMonTueWedThuFriSat";
static const char date_months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const struct slice date_long_days[] = {
    SLICE_INIT("Sunday"),   SLICE_INIT("Monday"), SLICE_INIT("Tuesday"),  SLICE_INIT("Wednesday"),
    SLICE_INIT("Thursday"), SLICE_INIT("Friday"), SLICE_INIT("Saturday"),
};

struct date_parts {
    int64_t year;
    int month, day;  // from 1
    int64_t seconds; // of the day
};

// Years are counted from March here, so that the leap day is the last one.
static int64_t date_day_number(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * DATE_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct date_parts date_split(int64_t unix_seconds)
{
    int64_t seconds = unix_seconds % DATE_DAY;
    if (seconds < 0) seconds += DATE_DAY;
    int64_t days = (unix_seconds - seconds) / DATE_DAY + 719468;
    int64_t era = (days >= 0 ? days : days - DATE_ERA + 1) / DATE_ERA,
            of_era = days - era * DATE_ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    return (struct date_parts){.year = year + era * 400 + (month >= 10),
                               .month = (int)(month < 10 ? month + 3 : month - 9),
                               .day = (int)(of_year - (153 * month + 2) / 5 + 1),
                               .seconds = seconds};
}

static int64_t date_join(const struct date_parts *p)
{
    return date_day_number(p->year, p->month, p->day) * DATE_DAY + p->seconds;
}

static void date_put(char *to, int64_t value)
{
    to[0] = (char)('0' + value / 10);
    to[1] = (char)('0' + value % 10);
}

static int64_t date_clamp(int64_t unix_seconds)
{
    if (unix_seconds < date_first) return date_first;
    return unix_seconds > date_last ? date_last : unix_seconds;
}

void date_format(char to[DATE_LEN], int64_t unix_seconds)
{
    unix_seconds = date_clamp(unix_seconds);
    struct date_parts p = date_split(unix_seconds);
    int64_t weekday =
        (date_day_number(p.year, p.month, p.day) % 7 + 11) % 7; // 1970 began on a Thursday
    memcpy(to, "Day, 00 Mon 0000 00:00:00 GMT", DATE_LEN);
    memcpy(to, date_days + weekday * 3, 3);
    date_put(to + 5, p.day);
    memcpy(to + 8, date_months + (p.month - 1) * 3, 3);
    date_put(to + 12, p.year / 100);
    date_put(to + 14, p.year % 100);
    date_put(to + 17, p.seconds / 3600);
    date_put(to + 20, p.seconds / 60 % 60);
    date_put(to + 23, p.seconds % 60);
}

// A shape is matched letter by letter: d day, p day padded by a space, m month name, y year, s
// short year, t time of day; any other byte stands for itself.
struct date_reader {
    const char *at, *end;
    struct date_parts parts;
    bool has_short_year;
};

static int date_read_number(struct date_reader *r, int digits)
{
    int value = 0;
    if (r->end - r->at < digits) return -1;
    for (; digits; digits--, r->at++) {
        if (*r->at < '0' || *r->at > '9') return -1;
        value = value * 10 + *r->at - '0';
    }
    return value;
}

// The index of the next three letters among `names`, -1 when they are not there.
static int date_read_name(struct date_reader *r, const char *names)
{
    if (r->end - r->at < 3) return -1;
    for (int i = 0; names[i * 3]; i++) {
        if (memcmp(names + i * 3, r->at, 3) == 0) {
            r->at += 3;
            return i;
        }
    }
    return -1;
}

static bool date_read_time(struct date_reader *r)
{
    int hour = date_read_number(r, 2);
    if (hour < 0 || hour > 23 || r->at == r->end || *r->at++ != ':') return false;
    int minute = date_read_number(r, 2);
    if (minute < 0 || minute > 59 || r->at == r->end || *r->at++ != ':') return false;
    int second = date_read_number(r, 2);
    r->parts.seconds = hour * 3600 + minute * 60 + second;
    return second >= 0 && second <= 60; // 60 is a leap second
}

static bool date_read_day(struct date_reader *r, bool may_be_padded)
{
    bool is_padded = may_be_padded && r->at < r->end && *r->at == ' ';
    r->at += is_padded;
    r->parts.day = date_read_number(r, is_padded ? 1 : 2);
    return r->parts.day >= 0;
}

static bool date_read_piece(struct date_reader *r, char kind)
{
    switch (kind) {
    case 'd': return date_read_day(r, false);
    case 'p': return date_read_day(r, true);
    case 'm': return (r->parts.month = date_read_name(r, date_months) + 1) > 0;
    case 'y': return (r->parts.year = date_read_number(r, 4)) >= 0;
    case 's': r->has_short_year = true; return (r->parts.year = date_read_number(r, 2)) >= 0;
    case 't': return date_read_time(r);
    default: return r->at < r->end && *r->at++ == kind;
    }
}

static bool date_read_shape(struct date_reader *r, const char *shape)
{
    for (; *shape; shape++) {
        if (!date_read_piece(r, *shape)) return false;
    }
    return r->at == r->end;
}

static bool date_is_in_month(const struct date_parts *p)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = p->year % 4 == 0 && (p->year % 100 != 0 || p->year % 400 == 0);
    int last = lengths[p->month - 1] + (p->month == 2 && is_leap);
    return p->day >= 1 && p->day <= last;
}

// RFC 9110 5.6.7: a two-digit year that seems over 50 years ahead lies in the past.
static void date_complete_year(struct date_parts *p, int64_t now)
{
    struct date_parts latest = date_split(date_clamp(now));
    latest.year += 50;
    p->year += latest.year - latest.year % 100;
    if (p->year > latest.year || date_join(p) > date_join(&latest)) p->year -= 100;
}

static bool date_read_long_day(struct date_reader *r)
{
    for (int i = 0; i < 7; i++) {
        struct slice name = date_long_days[i];
        if ((size_t)(r->end - r->at) < name.len || memcmp(r->at, name.ptr, name.len)) continue;
        r->at += name.len;
        return true;
    }
    return false;
}

static bool date_read(struct date_reader *r)
{
    if (date_read_long_day(r)) return date_read_shape(r, ", d-m-s t GMT");
    if (date_read_name(r, date_days) < 0) return false;
    bool is_fixdate = r->at < r->end && *r->at == ',';
    return date_read_shape(r, is_fixdate ? ", d m y t GMT" : " m p t y");
}

bool date_parse_at(struct slice text, int64_t now, int64_t *unix_seconds)
{
    if (!text.len) return false;
    struct date_reader r = {.at = text.ptr, .end = text.ptr + text.len};
    if (!date_read(&r)) return false;
    if (r.has_short_year) date_complete_year(&r.parts, now);
    if (!date_is_in_month(&r.parts)) return false;
    *unix_seconds = date_join(&r.parts);
    return true;
}

bool date_parse(struct slice text, int64_t *unix_seconds)
{
    return date_parse_at(text, time(NULL), unix_seconds);
}
