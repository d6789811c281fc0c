// How a request becomes a subscriber: by a route that is C alone, or after Lua has admitted it.
#include "base/mem.h"
#include "script/channel_private.h"
#include "script/request.h"
#include "script/result.h"
#include "script/stream_spec.h"
#include "script/task.h"
#include "text/url.h"

struct channel_route {
    struct channel_terms terms;
    struct headers headers; // in the arena, like their bytes
    struct arena arena;
    size_t count;
    struct channel *list[CHANNEL_MAX_JOINED];
};

// The header, or the query's last_event_id for clients that cannot set headers.
static struct slice channel_last_event_id(struct exchange *x)
{
    const struct header *h = headers_find(&x->request.headers, SLICE("last-event-id"));
    struct slice rest = x->request.query, name, value;
    if (h) return h->value;
    while (url_next_pair(&rest, &name, &value)) {
        if (!slice_equals(name, SLICE("last_event_id"))) continue;
        char *text = arena_alloc(&x->arena, value.len + 1);
        long len = text ? url_decode(text, value, true) : -1;
        return slice_of(text, len > 0 ? (size_t)len : 0);
    }
    return (struct slice){0};
}

// The fields of the spec at index 2 (photon.channel has checked them); texts are not among them.
static void channel_read_terms(lua_State *L, struct channel_terms *terms)
{
    struct stream_spec spec;
    stream_read_spec(L, &spec);
    *terms =
        (struct channel_terms){.heartbeat = spec.heartbeat,
                               .retry = spec.retry,
                               .format = spec.type == STREAM_NDJSON ? CHANNEL_NDJSON : CHANNEL_SSE};
    if (!lua_istable(L, 2) || !stream_field(L, "from")) return;
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "last");
        terms->from = CHANNEL_LAST;
        terms->last = (uint32_t)lua_tonumber(L, -1);
    } else if (lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "start") == 0) {
        terms->from = CHANNEL_START;
    }
}

// The channels of the list at `index`; they stay held by their handles.
static size_t channel_read_list(lua_State *L, int index, struct channel **list)
{
    size_t count = lua_objlen(L, index);
    if (count > CHANNEL_MAX_JOINED)
        luaL_error(L, "a connection carries at most %d channels, not %d", (int)CHANNEL_MAX_JOINED,
                   (int)count);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (int)i + 1);
        list[i] = channel_lua_arg(L, -1);
        lua_pop(L, 1);
    }
    return count;
}

// Routes ------------------------------------------------------------------------------------------

static bool channel_route_copy_headers(struct channel_route *route, const struct headers *from)
{
    struct arena *a = &route->arena;
    for (uint32_t i = 0; i < from->count; i++) {
        struct slice name = arena_copy(a, from->items[i].name);
        struct slice value = arena_copy(a, from->items[i].value);
        if (!name.ptr || !value.ptr || !headers_add(&route->headers, a, name, value)) return false;
    }
    return true;
}

// (nil, spec, route): fills the route. Protected, so that it is not lost when something raises.
static int channel_route_read(lua_State *L)
{
    struct channel_route *route = lua_touserdata(L, 3);
    struct header items[RESULT_MAX_HEADERS];
    struct headers headers = {items, 0, RESULT_MAX_HEADERS};
    struct channel *list[CHANNEL_MAX_JOINED];
    int64_t length = -1;
    luaL_checkstack(L, 3 * RESULT_MAX_HEADERS, "headers");
    channel_read_terms(L, &route->terms);
    if (stream_field(L, "headers") && !result_add_headers(L, lua_gettop(L), &headers, &length))
        return lua_error(L);
    size_t count = channel_read_list(L, 2, list);
    if (!channel_route_copy_headers(route, &headers)) return luaL_error(L, "not enough memory");
    for (size_t i = 0; i < count; i++) route->list[route->count++] = channel_retain(list[i]);
    return 0;
}

struct channel_route *channel_route_new(lua_State *L, int index)
{
    struct channel_route *route = mem_zalloc(sizeof *route);
    if (!route) luaL_error(L, "not enough memory for a channel's route");
    lua_pushvalue(L, index);
    lua_pushcfunction(L, channel_route_read);
    lua_insert(L, -2);
    lua_pushnil(L);
    lua_insert(L, -2);
    lua_pushlightuserdata(L, route);
    if (lua_pcall(L, 3, 0, 0) == 0) return route;
    channel_route_free(route);
    lua_error(L);
    return NULL;
}

void channel_route_free(struct channel_route *route)
{
    if (!route) return;
    for (size_t i = 0; i < route->count; i++) channel_release(route->list[i]);
    arena_reset(&route->arena);
    mem_free(route);
}

void channel_route_serve(const struct channel_route *route, struct channel_worker *w,
                         struct exchange *x)
{
    struct channel_terms terms = route->terms;
    terms.headers = &route->headers;
    terms.last_event_id = channel_last_event_id(x);
    channel_subscribe(w, x, route->list, route->count, &terms);
}

// Admission ---------------------------------------------------------------------------------------

// The VM has no part in the exchange any more, unless something in it waits for its end.
static void channel_let_go(struct vm *vm, struct task *t)
{
    struct vm_slot *slot = t->slot;
    struct exchange *x = t->x;
    if (!x || x->phase == EXCHANGE_OVER || slot->has_closers) return;
    if (slot->tasks.next != &t->scoped || slot->tasks.prev != &t->scoped) return;
    if (!vm->let_go || !vm->let_go(x)) return;
    list_remove(&t->scoped);
    t->slot = NULL;
    t->x = NULL;
    vm_slot_close(slot);
}

// channel_subscribe(list, spec, headers, [member, info]): the request of the running task becomes a
// subscriber of the channels
static int channel_lua_subscribe(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct task *t = vm->current;
    struct header items[RESULT_MAX_HEADERS];
    struct headers headers = {items, 0, RESULT_MAX_HEADERS};
    struct channel *list[CHANNEL_MAX_JOINED];
    struct channel_terms terms;
    int64_t length = -1;
    lua_settop(L, 5);
    if (!t || !t->x || t->x->phase != EXCHANGE_OPEN) return 0;
    luaL_checkstack(L, 3 * RESULT_MAX_HEADERS, "headers");
    channel_read_terms(L, &terms);
    if (lua_istable(L, 3) && !result_add_headers(L, 3, &headers, &length)) return lua_error(L);
    size_t count = channel_read_list(L, 1, list);
    if (!lua_isnil(L, 4)) terms.member.ptr = luaL_checklstring(L, 4, &terms.member.len);
    if (!lua_isnil(L, 5)) terms.info.ptr = luaL_checklstring(L, 5, &terms.info.len);
    terms.headers = &headers;
    terms.last_event_id = channel_last_event_id(t->x);
    if (!t->x->is_head_request && !request_admit_ip(vm, t->x)) return 0;
    if (channel_subscribe(vm->channels, t->x, list, count, &terms)) channel_let_go(vm, t);
    return 0;
}

void channel_lua_end_all(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->slot_count; i++) {
        struct vm_slot *slot = vm->slots[i];
        if (slot->x && slot->x->is_stream && !slot->stream) exchange_end(slot->x);
    }
}

void channel_lua_open_serving(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"channel_subscribe", channel_lua_subscribe},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
}
