// log_line: how one line of the log reads. Pure; part of the room `log`, whose header says what the
// forms are. A line that is too long is cut and says so; it still ends as its form demands.
#ifndef PHOTON_BASE_LOG_LINE_H
#define PHOTON_BASE_LOG_LINE_H

#include <stdbool.h>
#include <time.h>
#include "base/slice.h"

struct log_access;

// Text of a message that is kept, and room for its line when many of its bytes must be escaped.
enum { LOG_MESSAGE = 16384, LOG_LINE = 3 * LOG_MESSAGE };

struct log_line {
    size_t len;
    char bytes[LOG_LINE];
};

// Both fill `line` anew, with the newline that ends it.
void log_line_message(struct log_line *line, bool is_json, const struct timespec *time,
                      const char *level, struct slice text);
void log_line_access(struct log_line *line, bool is_json, const struct timespec *time,
                     const struct log_access *entry);

#endif
