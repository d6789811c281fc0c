// What a stream is asked to be: the spec table, and where its client left off.
#include "script/stream_spec.h"

#include <math.h>
#include "script/json.h"
#include "text/json.h"
#include "text/url.h"

struct slice stream_text(lua_State *L, int index)
{
    struct slice text = {0};
    double n = lua_tonumber(L, index);
    if (lua_type(L, index) == LUA_TNUMBER && isfinite(n)) { // Lua's own form has 14 digits only
        char digits[JSON_NUMBER];
        size_t len = json_write_number(digits, n);
        if (index < 0) index = lua_gettop(L) + 1 + index;
        lua_pushlstring(L, digits, len);
        lua_replace(L, index);
    }
    text.ptr = lua_tolstring(L, index, &text.len);
    return text;
}

struct slice stream_name_arg(lua_State *L, int index, const char *what)
{
    int type = lua_type(L, index);
    if (type != LUA_TSTRING && type != LUA_TNUMBER) {
        luaL_error(L, "%s is a string, not %s", what, luaL_typename(L, index));
    }
    return stream_text(L, index);
}

struct slice stream_data_arg(lua_State *L, int index, const char *what)
{
    struct vm *vm = vm_of(L);
    int type = lua_type(L, index);
    if (type == LUA_TSTRING || type == LUA_TNUMBER) return stream_text(L, index);
    if (type != LUA_TTABLE) {
        luaL_error(L, "%s takes a string, a number or a table, not %s", what,
                   luaL_typename(L, index));
    }
    vm->scratch.len = 0;
    const char *error = json_encode(L, index, &vm->scratch);
    if (error) luaL_error(L, "%s: %s", what, error);
    return buf_slice(&vm->scratch);
}

bool stream_field(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_rawget(L, 2);
    return !lua_isnil(L, -1);
}

// A misspelt name would be lost without a word.
static void stream_check_names(lua_State *L)
{
    static const char *const names[] = {"event", "data", "id", "retry", "comment"};
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "number";
        unsigned i = 0;
        while (i < 5 && strcmp(name, names[i]) != 0) i++;
        if (i == 5) {
            luaL_error(L, "stream:event: an event has no %s, but event, data, id, retry, comment",
                       name);
        }
    }
}

void stream_read_event(lua_State *L, struct sse_event *e)
{
    stream_check_names(L);
    e->retry = -1;
    if (stream_field(L, "event")) e->event = stream_name_arg(L, -1, "event");
    if ((e->has_id = stream_field(L, "id"))) e->id = stream_name_arg(L, -1, "id");
    if ((e->has_comment = stream_field(L, "comment"))) {
        e->comment = stream_name_arg(L, -1, "comment");
    }
    if (stream_field(L, "retry")) {
        double retry = lua_tonumber(L, -1);
        if (lua_type(L, -1) != LUA_TNUMBER || retry < 0 || retry > 1e15 ||
            retry != (int64_t)retry) {
            luaL_error(L, "retry is a whole number of milliseconds");
        }
        e->retry = (int64_t)retry;
    }
    if ((e->has_data = stream_field(L, "data"))) {
        e->data = stream_data_arg(L, lua_gettop(L), "stream:event");
    }
}

static double stream_spec_number(lua_State *L, const char *name, double otherwise, double least)
{
    double value;
    if (!stream_field(L, name)) return otherwise;
    value = lua_tonumber(L, -1);
    if (lua_type(L, -1) != LUA_TNUMBER || !(value >= least)) {
        luaL_error(L, "%s of a stream is a number from %f up", name, least);
    }
    return value < 1e12 ? value : 1e12; // math.huge fits into no integer
}

bool stream_spec_flag(lua_State *L, const char *name)
{
    return stream_field(L, name) && lua_toboolean(L, -1);
}

// Reads the spec table at index 2.
void stream_read_spec(lua_State *L, struct stream_spec *spec)
{
    *spec = (struct stream_spec){.heartbeat = 15000, .retry = -1, .buffer = 65536};
    if (!lua_istable(L, 2)) return;
    spec->heartbeat = (uint64_t)(stream_spec_number(L, "heartbeat", 15, 0) * 1000);
    spec->retry = (int64_t)stream_spec_number(L, "retry", -1, 0);
    spec->buffer = (size_t)stream_spec_number(L, "buffer", 65536, 1);
    spec->max_duration = (uint64_t)(stream_spec_number(L, "max_duration", 0, 0) * 1000);
    spec->compresses = stream_spec_flag(L, "compress");
    if (stream_field(L, "reload")) {
        spec->reconnects = strcmp(luaL_checkstring(L, -1), "reconnect") == 0;
    }
    if (stream_field(L, "type")) {
        spec->content_type = stream_name_arg(L, -1, "the type of a stream");
        bool is_sse = strncasecmp(spec->content_type.ptr, "text/event-stream", 17) == 0;
        bool is_lines = strncasecmp(spec->content_type.ptr, "application/x-ndjson", 20) == 0;
        spec->type = is_sse ? STREAM_SSE : is_lines ? STREAM_NDJSON : STREAM_BYTES;
    }
}

// The header, or the query's last_event_id for clients that cannot set headers.
bool stream_push_last_id(lua_State *L, struct exchange *x)
{
    const struct header *h = headers_find(&x->request.headers, SLICE("last-event-id"));
    struct slice rest = x->request.query, name, value;
    if (h) {
        lua_pushlstring(L, h->value.ptr, h->value.len);
        return true;
    }
    while (url_next_pair(&rest, &name, &value)) {
        if (!slice_equals(name, SLICE("last_event_id"))) continue;
        char *text = lua_newuserdata(L, value.len + 1);
        long len = url_decode(text, value, true);
        if (len >= 0) lua_pushlstring(L, text, (size_t)len);
        return len >= 0;
    }
    return false;
}
