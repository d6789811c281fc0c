// json: the pieces of RFC 8259 that need no Lua: strings, numbers, validation. Pure.
#ifndef PHOTON_TEXT_JSON_H
#define PHOTON_TEXT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

enum { JSON_MAX_DEPTH = 128, JSON_NUMBER = 32 };

// The string with its quotes, escaped. JSON_OK, or JSON_NO_MEMORY, or JSON_BAD_UTF8 (nothing was
// appended then).
enum json_result { JSON_OK, JSON_NO_MEMORY, JSON_BAD_UTF8 };
enum json_result json_write_string(struct buf *to, struct slice s);

// A finite number in the shortest form that reads back the same; integers up to 2^53 (in fact
// below 1e21) without exponent. Returns the length written to `to`. The locale has no say.
size_t json_write_number(char to[JSON_NUMBER], double value);

// Reads a text piece by piece: json_read_next gives the next token; strings come unescaped.
// Strict RFC 8259. Duplicate keys are all given. Numbers are rounded to the nearest double; one too
// large for any is invalid.
enum json_token {
    JSON_END, // the text is complete
    JSON_OBJECT_OPEN,
    JSON_OBJECT_CLOSE,
    JSON_ARRAY_OPEN,
    JSON_ARRAY_CLOSE,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER_TOKEN,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_INVALID, // `error` says why, `at` where (bytes from the start); it stays at that
};

// The `error` when unescaping a string found no memory: the one that is not the text's fault.
extern const char json_no_memory[];

struct json_reader {
    struct slice text;
    size_t at;
    const char *error;
    double number;
    struct slice string; // of JSON_KEY and JSON_STRING; borrowed from the text or from `scratch`
    struct buf scratch;
    uint16_t depth;
    uint8_t expect;
    uint8_t stack[JSON_MAX_DEPTH / 8 + 1]; // one bit a level: object or array
};

// The text must outlive the reader, the last string is valid until the next token.
void json_read_init(struct json_reader *r, struct slice text);
enum json_token json_read_next(struct json_reader *r);
void json_read_reset(struct json_reader *r); // frees scratch

// The whole text at once, strict UTF-8, no value made. NULL when valid, else why; *at tells where.
const char *json_validate(struct slice text, size_t *at);

#endif
