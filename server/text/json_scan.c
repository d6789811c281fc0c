#include "text/json_scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// No double needs more than 767 significant digits to be told from its neighbours.
enum { SCAN_LEADING = 19, SCAN_DIGITS = 780, SCAN_EXPONENT = 32 };

// 10^0 to 10^22 are exact doubles.
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct scan {
    const char *at, *end;
    uint64_t leading; // the first significant digits
    int64_t count;    // how many digits are significant, those that do not fit `leading` included
    int64_t exponent; // value = digits * 10^exponent, all significant digits taken as an integer
};

static bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

static void scan_digits(struct scan *s)
{
    for (; is_digit(s->at, s->end); s->at++) {
        unsigned digit = (unsigned)(*s->at - '0');
        if (s->count || digit) s->count++;
        if (s->count <= SCAN_LEADING) s->leading = s->leading * 10 + digit;
    }
}

// Clamped far beyond what the digits of any text could make up for.
static void scan_exponent(struct scan *s)
{
    const int64_t most = INT64_MAX / 100;
    bool is_negative = *s->at == '-';
    int64_t exponent = 0;
    if (*s->at == '-' || *s->at == '+') s->at++;
    for (; is_digit(s->at, s->end); s->at++)
        if (exponent < most) exponent = exponent * 10 + (*s->at - '0');
    s->exponent += is_negative ? -exponent : exponent;
}

static const char *scan_grammar(struct scan *s)
{
    if (!is_digit(s->at, s->end)) return "a digit is missing";
    if (*s->at == '0' && is_digit(s->at + 1, s->end)) {
        s->at++;
        return "a number must not begin with a zero";
    }
    scan_digits(s);
    if (s->at < s->end && *s->at == '.') {
        const char *fraction = ++s->at;
        if (!is_digit(s->at, s->end)) return "a digit is missing";
        scan_digits(s);
        s->exponent = fraction - s->at;
    }
    if (s->at < s->end && (*s->at | 0x20) == 'e') {
        const char *exponent = ++s->at;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-')) s->at++;
        if (!is_digit(s->at, s->end)) return "a digit is missing";
        s->at = exponent;
        scan_exponent(s);
    }
    return NULL;
}

static bool has_nonzero(const char *p, const char *end)
{
    while (p < end && (*p == '0' || *p == '.')) p++;
    return p < end && *p >= '1' && *p <= '9';
}

// strtod is given digits and an exponent but no point, so that no locale can change what it reads.
// One digit stands for all that is cut off: it only matters whether they were zeros.
static double scan_slowly(const struct scan *s, const char *p)
{
    char text[SCAN_DIGITS + 1 + SCAN_EXPONENT];
    int64_t n = 0, exponent = s->exponent;
    if (s->count + exponent > 400) return HUGE_VAL;
    if (s->count + exponent < -400) return 0;
    for (; n < s->count && n < SCAN_DIGITS; p++)
        if (*p >= (n ? '0' : '1') && *p <= '9') text[n++] = *p;
    if (n < s->count) {
        exponent += s->count - n - 1;
        text[n++] = has_nonzero(p, s->at) ? '1' : '0';
    }
    snprintf(text + n, SCAN_EXPONENT, "e%" PRId64, exponent);
    return strtod(text, NULL);
}

static double scan_value(const struct scan *s, const char *digits)
{
    if (s->count == 0) return 0;
    if (s->count <= SCAN_LEADING) {
        if (s->exponent == 0) return (double)s->leading;
        if (s->leading <= (uint64_t)1 << 53) {
            if (s->exponent < 0 && s->exponent >= -22)
                return (double)s->leading / exact_powers[-s->exponent];
            if (s->exponent > 0 && s->exponent <= 22)
                return (double)s->leading * exact_powers[s->exponent];
        }
    }
    return scan_slowly(s, digits);
}

size_t json_scan_number(struct slice text, double *value, const char **error)
{
    struct scan s = {.at = text.ptr, .end = text.ptr + text.len};
    bool is_negative = *s.at == '-';
    const char *digits = s.at += is_negative;
    *error = scan_grammar(&s);
    if (*error) return (size_t)(s.at - text.ptr);
    double size = scan_value(&s, digits);
    if (isinf(size)) {
        *error = "the number is too large";
        return 0;
    }
    *value = is_negative ? -size : size;
    return (size_t)(s.at - text.ptr);
}
