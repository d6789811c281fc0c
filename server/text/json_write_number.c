// Shortest printing is Raffaello Giulietti's Schubfach: the double's rounding interval is scaled by
// a power of ten, known to 128 bits, and the shortest decimal inside it is read off.
#include "text/json.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { POWER_LEAST = -292, POWER_MOST = 324, POWER_LIMBS = 19, POWER_BITS = 64 * POWER_LIMBS };

__extension__ typedef unsigned __int128 json_wide;

struct power {
    uint64_t high, low;
};

// Ten to the power of POWER_LEAST to POWER_MOST, the leading 128 bits, rounded up. Ten kilobytes
// that are computed in some microseconds, and only for programs that print fractions.
static struct power powers[POWER_MOST - POWER_LEAST + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

// A large integer, least limb first; where its point stands does not matter for leading bits.
struct large {
    uint64_t limb[POWER_LIMBS];
};

static struct power leading_bits(const struct large *x, bool is_exact)
{
    int top = POWER_LIMBS - 1;
    while (x->limb[top] == 0) top--;
    uint64_t limb[3] = {0};
    for (int i = 0; i < 3 && i <= top; i++) limb[i] = x->limb[top - i];
    int shift = __builtin_clzll(limb[0]);
    json_wide bits = (json_wide)limb[0] << 64 | limb[1];
    if (shift) bits = bits << shift | limb[2] >> (64 - shift);
    if (shift ? limb[2] << shift : limb[2]) is_exact = false;
    for (int i = 0; i <= top - 3; i++)
        if (x->limb[i]) is_exact = false;
    if (!is_exact) bits++;
    return (struct power){(uint64_t)(bits >> 64), (uint64_t)bits};
}

static void multiply_by_ten(struct large *x)
{
    uint64_t carry = 0;
    for (int i = 0; i < POWER_LIMBS; i++) {
        json_wide product = (json_wide)x->limb[i] * 10 + carry;
        x->limb[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    assert(carry == 0);
}

static void divide_by_ten(struct large *x)
{
    uint64_t rest = 0;
    for (int i = POWER_LIMBS - 1; i >= 0; i--) {
        json_wide part = (json_wide)rest << 64 | x->limb[i];
        x->limb[i] = (uint64_t)(part / 10);
        rest = (uint64_t)(part % 10);
    }
}

static void compute_powers(void)
{
    struct large x = {.limb = {1}};
    for (int k = 0; k <= POWER_MOST; k++) {
        powers[k - POWER_LEAST] = leading_bits(&x, true);
        multiply_by_ten(&x);
    }
    x = (struct large){.limb = {[POWER_LIMBS - 1] = (uint64_t)1 << 63}};
    for (int k = -1; k >= POWER_LEAST; k--) {
        divide_by_ten(&x);
        powers[k - POWER_LEAST] = leading_bits(&x, false);
    }
}

// The product's leading 64 bits; the last bit is set when anything below was not zero.
static uint64_t scale(struct power g, uint64_t factor)
{
    json_wide low = (json_wide)g.low * factor;
    json_wide high = (json_wide)g.high * factor + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static int floor_shift(int value, int bits)
{
    return value >= 0 ? value >> bits : -((-value + (1 << bits) - 1) >> bits);
}

struct decimal {
    uint64_t digits;
    int exponent; // value = digits * 10^exponent
};

// Chooses inside the interval lower..upper around `value`, all times four.
static struct decimal choose(uint64_t lower, uint64_t value, uint64_t upper, int k)
{
    uint64_t s = value / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool is_down = lower <= 40 * tens, is_up = 40 * tens + 40 <= upper;
        if (is_down != is_up) return (struct decimal){tens + is_up, k + 1};
    }
    bool is_down = lower <= 4 * s, is_up = 4 * s + 4 <= upper;
    if (is_down != is_up) return (struct decimal){s + is_up, k};
    uint64_t middle = 4 * s + 2;
    return (struct decimal){s + (value > middle || (value == middle && (s & 1))), k};
}

static struct decimal shortest(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int raised = (int)(bits >> 52 & 0x7FF);
    uint64_t c = raised ? fraction | (uint64_t)1 << 52 : fraction;
    int q = (raised ? raised : 1) - 1075;
    // Below a power of two the neighbour is only half as far.
    bool is_closer_below = fraction == 0 && raised > 1;
    int k = floor_shift(q * 1262611 - (is_closer_below ? 524031 : 0), 22);
    int h = q + floor_shift(-k * 1741647, 19) + 1;
    struct power g = powers[-k - POWER_LEAST];
    uint64_t low = scale(g, (4 * c - 2 + is_closer_below) << h);
    uint64_t mid = scale(g, (4 * c) << h);
    uint64_t high = scale(g, (4 * c + 2) << h);
    bool is_odd = c & 1; // an odd double's bounds round away from it
    return choose(low + is_odd, mid, high - is_odd, k);
}

static int write_digits(char *to, uint64_t value)
{
    char reversed[20];
    int n = 0;
    do reversed[n++] = (char)('0' + value % 10);
    while (value /= 10);
    for (int i = 0; i < n; i++) to[i] = reversed[n - 1 - i];
    return n;
}

static char *write_exponent(char *to, int exponent)
{
    *to++ = 'e';
    if (exponent < 0) *to++ = '-';
    return to + write_digits(to, (uint64_t)abs(exponent));
}

// ECMAScript's layout (so also a browser's), but no plus sign before an exponent. The value is
// 0.DIGITS * 10^point.
static char *lay_out(char *to, const char *digits, int n, int point)
{
    if (point > 21 || point < -5) {
        *to++ = digits[0];
        if (n > 1) *to++ = '.';
        memcpy(to, digits + 1, (size_t)n - 1);
        return write_exponent(to + n - 1, point - 1);
    }
    if (point <= 0) {
        memcpy(to, "0.00000", 7);
        memcpy(to + 2 - point, digits, (size_t)n);
        return to + 2 - point + n;
    }
    int whole = n < point ? n : point;
    memcpy(to, digits, (size_t)whole);
    memset(to + whole, '0', (size_t)(point - whole));
    to += point;
    if (n <= point) return to;
    *to++ = '.';
    memcpy(to, digits + point, (size_t)(n - point));
    return to + n - point;
}

size_t json_write_number(char to[JSON_NUMBER], double value)
{
    assert(isfinite(value));
    char *at = to, digits[20];
    if (signbit(value)) *at++ = '-';
    double size = fabs(value);
    if (size <= 9007199254740992.0 && size == (double)(uint64_t)size)
        return (size_t)(at - to) + (size_t)write_digits(at, (uint64_t)size);
    pthread_once(&powers_once, compute_powers);
    struct decimal d = shortest(size);
    int n = write_digits(digits, d.digits), point = n + d.exponent;
    while (n > 1 && digits[n - 1] == '0') n--;
    return (size_t)(lay_out(at, digits, n, point) - to);
}
