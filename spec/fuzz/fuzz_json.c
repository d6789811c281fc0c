// Any bytes: validator and reader agree; what is valid, written anew and read again is the same
// text.
#include <math.h>
#include <stdlib.h>
#include "text/json.h"

static void must(bool is_true)
{
    if (!is_true) abort();
}

static void write_value(struct buf *to, const struct json_reader *r, enum json_token token)
{
    static const char *const words[] = {
        [JSON_TRUE] = "true", [JSON_FALSE] = "false", [JSON_NULL] = "null"};
    if (token == JSON_KEY || token == JSON_STRING) {
        must(json_write_string(to, r->string) == JSON_OK);
        if (token == JSON_KEY) must(buf_append(to, ":", 1));
    } else if (token == JSON_NUMBER_TOKEN) {
        must(isfinite(r->number));
        char *at = buf_reserve(to, JSON_NUMBER);
        size_t len = json_write_number(at, r->number);
        must(len <= JSON_NUMBER);
        to->len += len;
    } else {
        must(buf_append_slice(to, slice_of_text(words[token])));
    }
}

// Reads the text and writes it again without spaces. False when it is invalid; then `at` says
// where.
static bool rewrite(struct slice text, struct buf *to, size_t *at)
{
    struct json_reader r;
    json_read_init(&r, text);
    bool is_first = true;
    enum json_token token;
    while ((token = json_read_next(&r)) != JSON_END && token != JSON_INVALID) {
        bool is_open = token == JSON_OBJECT_OPEN || token == JSON_ARRAY_OPEN;
        bool is_close = token == JSON_OBJECT_CLOSE || token == JSON_ARRAY_CLOSE;
        if (!is_first && !is_close) must(buf_append(to, ",", 1));
        if (is_open)
            must(buf_append(to, token == JSON_OBJECT_OPEN ? "{" : "[", 1));
        else if (is_close)
            must(buf_append(to, token == JSON_OBJECT_CLOSE ? "}" : "]", 1));
        else
            write_value(to, &r, token);
        is_first = is_open || token == JSON_KEY;
    }
    *at = r.at;
    json_read_reset(&r);
    return token == JSON_END;
}

// Bytes as they come are also a string to be written: refused, or read back the same.
static void check_string(struct slice bytes)
{
    struct buf text = {0};
    if (json_write_string(&text, bytes) == JSON_OK) {
        struct json_reader r;
        json_read_init(&r, buf_slice(&text));
        must(json_read_next(&r) == JSON_STRING && slice_equals(r.string, bytes));
        must(json_read_next(&r) == JSON_END);
        json_read_reset(&r);
    } else {
        must(text.len == 0);
    }
    buf_reset(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct buf once = {0}, twice = {0};
    size_t at, at_read;
    bool is_valid = json_validate(text, &at) == NULL;
    must(rewrite(text, &once, &at_read) == is_valid && at == at_read && at <= size);
    if (is_valid) {
        must(rewrite(buf_slice(&once), &twice, &at));
        must(slice_equals(buf_slice(&once), buf_slice(&twice)));
    }
    check_string(text);
    buf_reset(&once);
    buf_reset(&twice);
    return 0;
}
