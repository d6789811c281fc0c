// date: IMF-fixdate (RFC 9110 5.6.7). Pure, but for date_parse.
#ifndef PHOTON_TEXT_DATE_H
#define PHOTON_TEXT_DATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

enum { DATE_LEN = 29 };

// "Sun, 06 Nov 1994 08:49:37 GMT" of seconds since 1970, without NUL.
void date_format(char to[DATE_LEN], int64_t unix_seconds);

// Reads all three forms of RFC 9110 5.6.7. False when it is none of them. `now` places the
// two-digit years of the RFC 850 form: at most 50 years ahead of it.
bool date_parse_at(struct slice text, int64_t now, int64_t *unix_seconds);

// The same with the time of the system's clock.
bool date_parse(struct slice text, int64_t *unix_seconds);

#endif
