// log: lines for people and machines, on standard error. A line is put into a bounded ring and
// written by a thread of its own, so that no loop ever waits for a slow terminal; when the ring is
// full the line is dropped and counted. Before log_open and after log_close lines are written
// directly. Safe from every thread; not from signal handlers.
#ifndef PHOTON_BASE_LOG_H
#define PHOTON_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_form { LOG_TEXT, LOG_JSON, LOG_OFF };

// Starts the writer thread. False when it cannot be started.
bool log_open(enum log_form form, enum log_level least);

// Writes out what the ring holds and ends the thread.
void log_close(void);

// One line; newlines inside are indented in text form and escaped in JSON form. Text lines look
// like `2026-11-30T16:10:19.123Z error message`.
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_write_slice(enum log_level level, struct slice text);

// A line of the access log: already formatted fields, the form decides on the wrapping.
struct log_access {
    struct slice method, target, ip, id;
    int status;
    uint64_t bytes, micros;
};
void log_write_access(const struct log_access *entry);

// How many lines were dropped since the start.
uint64_t log_dropped(void);

#endif
