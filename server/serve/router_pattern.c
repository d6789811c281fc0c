#include "serve/router_pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include "text/url.h"

enum { SHOWN = 200 }; // how much of a long text a message repeats

static int shown(struct slice s)
{
    return s.len > SHOWN ? SHOWN : (int)s.len;
}

static const char *dots(struct slice s)
{
    return s.len > SHOWN ? "..." : "";
}

bool router_pattern_refuse(const struct route *route, char *error, size_t size, const char *format,
                           ...)
{
    struct slice p = route->pattern, place = route->place;
    char text[640], where[2 * SHOWN];
    va_list args;

    if (!size) return false;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(where, sizeof(where), "%s%.*s%s%s", place.len ? " (" : "", shown(place),
             place.len ? place.ptr : "", dots(place), place.len ? ")" : "");
    snprintf(error, size, "%.*s %s%.*s%s%s%s: %s", shown(route->method), route->method.ptr,
             p.len ? "" : "\"", shown(p), p.len ? p.ptr : "", dots(p), p.len ? "" : "\"", where,
             text);
    for (char *c = error; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return false;
}

static bool is_token_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_name_byte(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

static bool check_method(const struct route *route, char *error, size_t size)
{
    struct slice m = route->method;

    for (size_t i = 0; i < m.len; i++)
        if (!is_token_byte(m.ptr[i]))
            return router_pattern_refuse(route, error, size,
                                         "the method is not an HTTP token; write \"GET\", for "
                                         "instance, or \"*\" for any");
    if (m.len) return true;
    return router_pattern_refuse(route, error, size,
                                 "the method is empty; write \"GET\", for "
                                 "instance, or \"*\" for any");
}

static bool check_escape(const struct route *route, size_t at, char *error, size_t size)
{
    struct slice escape = slice_from(route->pattern, at);
    char byte[3];

    if (escape.len > 3) escape.len = 3;
    if (url_decode(byte, escape, false) != 1)
        return router_pattern_refuse(route, error, size,
                                     "\"%%\" at byte %zu needs two hex digits; write %%25 for a "
                                     "percent sign",
                                     at + 1);
    if (byte[0] == '/')
        return router_pattern_refuse(route, error, size,
                                     "an escaped slash at byte %zu cannot be a literal; take that "
                                     "segment as a parameter",
                                     at + 1);
    if ((unsigned char)byte[0] < 0x20 || byte[0] == 0x7f)
        return router_pattern_refuse(route, error, size,
                                     "an escaped control byte at byte %zu cannot be a literal; "
                                     "take that segment as a parameter",
                                     at + 1);
    return true;
}

static bool check_bytes(const struct route *route, char *error, size_t size)
{
    struct slice p = route->pattern;

    for (size_t i = 0; i < p.len; i++) {
        unsigned char c = (unsigned char)p.ptr[i];
        if (c == '%' && !check_escape(route, i, error, size)) return false;
        if (c == '?' || c == '#')
            return router_pattern_refuse(route, error, size,
                                         "\"%c\" at byte %zu; a pattern is a path alone, without "
                                         "query and fragment (write %%%02X for the character)",
                                         c, i + 1, c);
        if (c == ' ')
            return router_pattern_refuse(route, error, size,
                                         "a space at byte %zu; write %%20 for it", i + 1);
        if (c < 0x20 || c == 0x7f)
            return router_pattern_refuse(
                route, error, size, "a control byte (0x%02x) at byte %zu; remove it", c, i + 1);
    }
    return true;
}

static bool check_name(const struct route *route, char sign, struct slice name, char *error,
                       size_t size)
{
    if (!name.len)
        return router_pattern_refuse(route, error, size,
                                     "\"%c\" without a name; write %cname, or %%%02X for the "
                                     "character",
                                     sign, sign, sign);
    if (memchr(name.ptr, ':', name.len))
        return router_pattern_refuse(route, error, size,
                                     "two parameters in one segment; put a \"/\" between them, or "
                                     "write %%3A for a colon");
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_byte(name.ptr[i], i == 0))
            return router_pattern_refuse(
                route, error, size,
                "\"%.*s%s\" is not a name for a parameter, which reaches to the end of its "
                "segment; use letters, digits and _, and no digit first",
                shown(name), name.ptr, dots(name));
    return true;
}

static bool check_segment(const struct route *route, const struct router_segment *s, bool is_last,
                          char *error, size_t size)
{
    if (s->kind == ROUTER_REST && !check_name(route, '*', s->name, error, size)) return false;
    if (s->kind == ROUTER_REST && !is_last)
        return router_pattern_refuse(route, error, size,
                                     "*%.*s takes the rest of the path and must be last; use "
                                     ":%.*s for one segment",
                                     shown(s->name), s->name.ptr, shown(s->name), s->name.ptr);
    if (s->kind == ROUTER_REST) return true;
    if ((s->literal.len && memchr(s->literal.ptr, '*', s->literal.len)) ||
        (s->name.len && memchr(s->name.ptr, '*', s->name.len)))
        return router_pattern_refuse(route, error, size,
                                     "\"*\" inside a segment; it may only begin the last one "
                                     "(write %%2A for the character)");
    return s->kind == ROUTER_LITERAL || check_name(route, ':', s->name, error, size);
}

static bool check_segments(const struct route *route, char *error, size_t size)
{
    struct slice names[ROUTER_MAX_PARAMS], p = route->pattern;
    struct router_segment s;
    unsigned count = 0;

    for (size_t at = 0; router_pattern_next(p, &at, &s);) {
        if (!check_segment(route, &s, at == p.len, error, size)) return false;
        if (s.kind == ROUTER_LITERAL) continue;
        if (count == ROUTER_MAX_PARAMS)
            return router_pattern_refuse(route, error, size,
                                         "more than %d parameters; take the rest with *name",
                                         ROUTER_MAX_PARAMS);
        for (unsigned i = 0; i < count; i++)
            if (slice_equals(names[i], s.name))
                return router_pattern_refuse(route, error, size,
                                             "the name \"%.*s\" stands twice; give each parameter "
                                             "its own",
                                             shown(s.name), s.name.ptr);
        names[count++] = s.name;
    }
    return true;
}

bool router_pattern_check(const struct route *route, char *error, size_t size)
{
    struct slice p = route->pattern;

    if (!check_method(route, error, size)) return false;
    if (!p.len)
        return router_pattern_refuse(route, error, size,
                                     "the pattern is empty; write \"/\" for the root");
    if (p.len > ROUTER_MAX_PATTERN)
        return router_pattern_refuse(route, error, size,
                                     "the pattern has %zu bytes, more than %d; shorten it", p.len,
                                     ROUTER_MAX_PATTERN);
    if (p.ptr[0] != '/')
        return router_pattern_refuse(route, error, size,
                                     "a pattern begins with \"/\"; write \"/%.*s%s\"", shown(p),
                                     p.ptr, dots(p));
    return check_bytes(route, error, size) && check_segments(route, error, size);
}

bool router_pattern_next(struct slice pattern, size_t *at, struct router_segment *segment)
{
    const char *start, *end, *stop = pattern.ptr + pattern.len, *colon;

    if (*at >= pattern.len) return false;
    start = pattern.ptr + *at + 1;
    end = memchr(start, '/', (size_t)(stop - start));
    if (!end) end = stop;
    *at = (size_t)(end - pattern.ptr);
    colon = memchr(start, ':', (size_t)(end - start));
    if (start < end && *start == '*') {
        *segment = (struct router_segment){
            ROUTER_REST, {start, 0}, {start + 1, (size_t)(end - start - 1)}};
    } else if (colon) {
        *segment = (struct router_segment){colon > start ? ROUTER_PREFIX : ROUTER_BARE,
                                           {start, (size_t)(colon - start)},
                                           {colon + 1, (size_t)(end - colon - 1)}};
    } else {
        *segment =
            (struct router_segment){ROUTER_LITERAL, {start, (size_t)(end - start)}, {end, 0}};
    }
    return true;
}

unsigned router_pattern_count(struct slice pattern)
{
    struct router_segment s;
    unsigned count = 0;

    for (size_t at = 0; router_pattern_next(pattern, &at, &s);) count += s.kind != ROUTER_LITERAL;
    return count;
}
