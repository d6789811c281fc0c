#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include "base/log_line.h"
#include "base/log_ring.h"

static atomic_int log_form = LOG_TEXT, log_least = LOG_INFO;

bool log_open(enum log_form form, enum log_level least)
{
    atomic_store(&log_form, (int)form);
    atomic_store(&log_least, (int)least);
    return form == LOG_OFF || log_ring_open(form == LOG_JSON);
}

void log_close(void)
{
    log_ring_close();
}

void log_write_slice(enum log_level level, struct slice text)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    int form = atomic_load_explicit(&log_form, memory_order_relaxed);
    int least = atomic_load_explicit(&log_least, memory_order_relaxed);
    if (form == LOG_OFF || (int)level < least) return;
    struct log_line line;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    log_line_message(&line, form == LOG_JSON, &now, names[level], text);
    log_ring_put(slice_of(line.bytes, line.len));
}

void log_write(enum log_level level, const char *format, ...)
{
    char text[LOG_MESSAGE + 2]; // one more than a message may have, so that it is seen to be cut
    if ((int)level < atomic_load_explicit(&log_least, memory_order_relaxed)) return;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0) return;
    log_write_slice(level,
                    slice_of(text, (size_t)len < sizeof text ? (size_t)len : LOG_MESSAGE + 1));
}

void log_write_access(const struct log_access *entry)
{
    int form = atomic_load_explicit(&log_form, memory_order_relaxed);
    if (form == LOG_OFF) return;
    struct log_line line;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    log_line_access(&line, form == LOG_JSON, &now, entry);
    log_ring_put(slice_of(line.bytes, line.len));
}

uint64_t log_dropped(void)
{
    return log_ring_lost();
}
