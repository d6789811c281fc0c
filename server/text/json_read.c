#include "text/json.h"

#include "text/json_scan.h"

enum expect {
    EXPECT_VALUE, // zero, as a text begins
    EXPECT_VALUE_OR_CLOSE,
    EXPECT_KEY,
    EXPECT_KEY_OR_CLOSE,
    EXPECT_COMMA_OR_CLOSE,
    EXPECT_END,
    EXPECT_NOTHING, // after an error
};

static enum json_token fail(struct json_reader *r, size_t at, const char *error)
{
    r->at = at;
    r->error = error;
    r->expect = EXPECT_NOTHING;
    return JSON_INVALID;
}

static const char *here(const struct json_reader *r)
{
    return r->text.ptr + r->at;
}

static bool is_in_object(const struct json_reader *r)
{
    unsigned level = r->depth - 1u;
    return r->stack[level / 8] >> (level % 8) & 1;
}

static void after_value(struct json_reader *r)
{
    r->expect = r->depth ? EXPECT_COMMA_OR_CLOSE : EXPECT_END;
}

static void skip_space(struct json_reader *r)
{
    for (; r->at < r->text.len; r->at++) {
        char c = *here(r);
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    }
}

// The value of four hexadecimal digits, -1 when they are none or fewer.
static int hex4(const char *p, size_t len)
{
    int value = 0;
    if (len < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);
        bool is_letter = lower >= 'a' && lower <= 'f';
        if (!is_letter && (c < '0' || c > '9')) return -1;
        value = value * 16 + (is_letter ? lower - 'a' + 10 : c - '0');
    }
    return value;
}

// The code point of the escape \u that `p` begins with, and its length (12 for a pair of
// surrogates). -1 when it is none.
static int32_t unicode_escape(const char *p, size_t len, size_t *length)
{
    int high = len < 2 ? -1 : hex4(p + 2, len - 2);
    *length = 6;
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || len < 12 || p[6] != '\\' || p[7] != 'u') return -1;
    int low = hex4(p + 8, len - 8);
    if (low < 0xDC00 || low > 0xDFFF) return -1;
    *length = 12;
    return 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00);
}

static char simple_escape(char letter)
{
    switch (letter) {
    case '"':
    case '\\':
    case '/': return letter;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
    }
}

// Why the string cannot go on with `p`, or NULL and the length of what it goes on with.
static const char *string_step(const char *p, size_t len, size_t *length)
{
    if ((unsigned char)*p >= 0x80) {
        *length = json_scan_utf8(p, len);
        return *length ? NULL : "invalid UTF-8";
    }
    if (*p != '\\') return "a control character must be escaped";
    *length = 2;
    if (len < 2 || p[1] != 'u') return len >= 2 && simple_escape(p[1]) ? NULL : "invalid escape";
    if (unicode_escape(p, len, length) >= 0) return NULL;
    return hex4(p + 2, len - 2) < 0 ? "invalid escape" : "lone surrogate";
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)((0xFF00 >> (more + 1) & 0xFF) | c >> (6 * more));
    while (more--) *to++ = (char)(0x80 | (c >> (6 * more) & 0x3F));
    return to;
}

// `raw` is known to be right, and never shorter than what it means.
static bool unescape(struct json_reader *r, struct slice raw)
{
    const char *p = raw.ptr, *end = raw.ptr + raw.len;
    r->scratch.len = 0;
    char *to = buf_reserve(&r->scratch, raw.len);
    if (!to) return false;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((slash ? slash : end) - p), length = 2;
        memcpy(to, p, plain);
        p += plain, to += plain;
        if (!slash) break;
        if (p[1] == 'u')
            to = put_utf8(to, unicode_escape(p, (size_t)(end - p), &length));
        else
            *to++ = simple_escape(p[1]);
        p += length;
    }
    r->scratch.len = (size_t)(to - r->scratch.ptr);
    r->string = buf_slice(&r->scratch);
    return true;
}

// From behind the opening quote to behind the closing one.
static const char *read_string(struct json_reader *r, bool is_wanted)
{
    size_t start = r->at;
    bool has_escape = false;
    for (;;) {
        r->at += json_scan_plain(here(r), r->text.len - r->at);
        if (r->at == r->text.len) return "the string has no end";
        if (*here(r) == '"') break;
        size_t length;
        const char *error = string_step(here(r), r->text.len - r->at, &length);
        if (error) return error;
        has_escape |= *here(r) == '\\';
        r->at += length;
    }
    r->string = slice_of(r->text.ptr + start, r->at - start);
    r->at++;
    if (has_escape && is_wanted && !unescape(r, r->string)) return json_no_memory;
    return NULL;
}

static enum json_token read_text(struct json_reader *r, bool is_wanted)
{
    r->at++;
    const char *error = read_string(r, is_wanted);
    if (error) return fail(r, r->at, error);
    after_value(r);
    return JSON_STRING;
}

static enum json_token read_key(struct json_reader *r, bool is_wanted)
{
    r->at++;
    const char *error = read_string(r, is_wanted);
    if (error) return fail(r, r->at, error);
    skip_space(r);
    if (r->at == r->text.len || *here(r) != ':') return fail(r, r->at, "':' expected");
    r->at++;
    r->expect = EXPECT_VALUE;
    return JSON_KEY;
}

static enum json_token read_number(struct json_reader *r)
{
    const char *error;
    size_t length = json_scan_number(slice_from(r->text, r->at), &r->number, &error);
    if (error) return fail(r, r->at + length, error);
    r->at += length;
    after_value(r);
    return JSON_NUMBER_TOKEN;
}

static enum json_token read_word(struct json_reader *r, struct slice word, enum json_token token)
{
    struct slice rest = slice_from(r->text, r->at);
    if (rest.len < word.len || memcmp(rest.ptr, word.ptr, word.len) != 0)
        return fail(r, r->at, "a value was expected");
    r->at += word.len;
    after_value(r);
    return token;
}

static enum json_token read_open(struct json_reader *r, bool is_object)
{
    if (r->depth == JSON_MAX_DEPTH) return fail(r, r->at, "nested too deep");
    uint8_t *byte = &r->stack[r->depth / 8], bit = (uint8_t)(1u << (r->depth % 8));
    *byte = is_object ? *byte | bit : *byte & (uint8_t)~bit;
    r->depth++;
    r->at++;
    r->expect = is_object ? EXPECT_KEY_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
    return is_object ? JSON_OBJECT_OPEN : JSON_ARRAY_OPEN;
}

static enum json_token read_close(struct json_reader *r)
{
    bool is_object = is_in_object(r);
    r->at++;
    r->depth--;
    after_value(r);
    return is_object ? JSON_OBJECT_CLOSE : JSON_ARRAY_CLOSE;
}

static enum json_token read_value(struct json_reader *r, bool is_wanted)
{
    switch (*here(r)) {
    case '"': return read_text(r, is_wanted);
    case '{': return read_open(r, true);
    case '[': return read_open(r, false);
    case 't': return read_word(r, SLICE("true"), JSON_TRUE);
    case 'f': return read_word(r, SLICE("false"), JSON_FALSE);
    case 'n': return read_word(r, SLICE("null"), JSON_NULL);
    case '-':
    case '0' ... '9': return read_number(r);
    case '\xEF': return fail(r, r->at, r->at ? "a value was expected" : "byte order mark");
    default: return fail(r, r->at, "a value was expected");
    }
}

// Takes the comma, so that a value, a key or an end is left to be read.
static bool take_comma(struct json_reader *r)
{
    if (*here(r) != ',') return false;
    r->at++;
    r->expect = is_in_object(r) ? EXPECT_KEY : EXPECT_VALUE;
    skip_space(r);
    return true;
}

static enum json_token read_token(struct json_reader *r, bool is_wanted)
{
    if (r->expect == EXPECT_NOTHING) return JSON_INVALID;
    skip_space(r);
    if (r->at == r->text.len)
        return r->expect == EXPECT_END ? JSON_END : fail(r, r->at, "the text has no end");
    if (r->expect == EXPECT_END) return fail(r, r->at, "something follows the value");

    bool can_close = r->expect != EXPECT_VALUE && r->expect != EXPECT_KEY;
    if (can_close && *here(r) == (is_in_object(r) ? '}' : ']')) return read_close(r);
    if (r->expect == EXPECT_COMMA_OR_CLOSE && !take_comma(r))
        return fail(r, r->at, is_in_object(r) ? "',' or '}' expected" : "',' or ']' expected");
    if (r->at == r->text.len) return fail(r, r->at, "the text has no end");

    if (r->expect == EXPECT_VALUE || r->expect == EXPECT_VALUE_OR_CLOSE)
        return read_value(r, is_wanted);
    if (*here(r) == '"') return read_key(r, is_wanted);
    return fail(r, r->at, "a key was expected");
}

const char json_no_memory[] = "no memory";

void json_read_init(struct json_reader *r, struct slice text)
{
    *r = (struct json_reader){.text = text.ptr ? text : SLICE("")};
}

enum json_token json_read_next(struct json_reader *r)
{
    return read_token(r, true);
}

void json_read_reset(struct json_reader *r)
{
    buf_reset(&r->scratch);
    *r = (struct json_reader){0};
}

const char *json_validate(struct slice text, size_t *at)
{
    struct json_reader r;
    enum json_token token;
    json_read_init(&r, text);
    do token = read_token(&r, false);
    while (token != JSON_END && token != JSON_INVALID);
    *at = r.at;
    return r.error;
}
