// The requests of specs: made from a table's data, their replies given out as they come.
#include <sys/socket.h>
#include <arpa/inet.h>
#include "base/mem.h"
#include "script/testing_private.h"

enum { TESTING_HEADERS = 200 };

static void testing_on_news(struct memory *m)
{
    testing_wake_all(m->owner);
}

void testing_client_close(struct testing_client *c)
{
    testing_wake_all(c);
    list_remove(&c->node);
    memory_close(c->m);
    mem_free(c);
}

static struct slice testing_text(lua_State *L, int index)
{
    struct slice s;
    s.ptr = luaL_checklstring(L, index, &s.len);
    return s;
}

// The list { name, value, name, value, … } at `index`; the texts stay on the stack.
static void testing_read_headers(lua_State *L, int index, struct headers *h)
{
    int count = (int)lua_objlen(L, index);
    if (count > 2 * TESTING_HEADERS) luaL_error(L, "too many header fields");
    luaL_checkstack(L, count, "headers");
    for (int i = 1; i < count; i += 2) {
        lua_rawgeti(L, index, i);
        lua_rawgeti(L, index, i + 1);
        h->items[h->count++] = (struct header){testing_text(L, -2), testing_text(L, -1)};
    }
}

static struct peer testing_peer(lua_State *L, int index)
{
    struct peer peer = {.port = 40000, .family = AF_INET};
    const char *ip = luaL_optstring(L, index, "127.0.0.1");
    if (inet_pton(AF_INET, ip, peer.ip) == 1) return peer;
    peer.family = AF_INET6;
    if (inet_pton(AF_INET6, ip, peer.ip) != 1) luaL_error(L, "%s is not an IP address", ip);
    return peer;
}

// test_request(app, method, target, headers, body, is_chunked, ip or nil, [bytes per second]) →
// client, request id
static int testing_lua_request(lua_State *L)
{
    struct testing *t = testing_of(L);
    struct testing_app *app = testing_app_find(t, (unsigned)lua_tointeger(L, 1));
    struct header items[TESTING_HEADERS];
    struct memory_request r = {.headers = {items, 0, TESTING_HEADERS},
                               .serial = (uint64_t)t->last_client + 1};
    char id[EXCHANGE_ID];
    if (!app) return luaL_error(L, "the app of this client is closed: its describe has ended");
    lua_settop(L, 8);
    r.method = testing_text(L, 2);
    r.target = testing_text(L, 3);
    r.body = testing_text(L, 5);
    r.is_chunked = lua_toboolean(L, 6);
    r.peer = testing_peer(L, 7);
    double rate = luaL_optnumber(L, 8, -1);
    testing_read_headers(L, 4, &r.headers);
    struct testing_client *c = mem_zalloc(sizeof *c);
    struct memory *m = c ? memory_open(&app->wire, &r) : NULL;
    if (!m) {
        mem_free(c);
        return luaL_error(L, "not enough memory");
    }
    *c = (struct testing_client){.id = ++t->last_client, .t = t, .m = m};
    list_init(&c->waits);
    list_append(&t->clients, &c->node);
    m->owner = c;
    m->on_news = testing_on_news;
    memory_slow(m, rate);
    exchange_id(&m->x, id);
    lua_pushnumber(L, c->id);
    lua_pushlstring(L, id, EXCHANGE_ID);
    return 2;
}

static struct testing_client *testing_client_at(struct testing *t, uint32_t id)
{
    for (struct list *n = t->clients.prev; n != &t->clients; n = n->prev) {
        struct testing_client *c = list_entry(n, struct testing_client, node);
        if (c->id == id) return c;
    }
    return NULL;
}

static struct testing_client *testing_client_arg(lua_State *L)
{
    return testing_client_at(testing_of(L), (uint32_t)lua_tonumber(L, 1));
}

// test_head(client) → status, { name, value, … }; nothing when the head has not come
static int testing_lua_head(lua_State *L)
{
    struct testing_client *c = testing_client_arg(L);
    if (!c || !c->m->has_head) return 0;
    const struct headers *h = &c->m->headers;
    lua_pushinteger(L, c->m->x.status);
    lua_createtable(L, (int)h->count * 2, 0);
    for (uint32_t i = 0; i < h->count; i++) {
        lua_pushlstring(L, h->items[i].name.ptr, h->items[i].name.len);
        lua_rawseti(L, -2, (int)i * 2 + 1);
        lua_pushlstring(L, h->items[i].value.ptr, h->items[i].value.len);
        lua_rawseti(L, -2, (int)i * 2 + 2);
    }
    return 2;
}

// test_take(client) → bytes, state ("open", "done", "broken", "lost")
static int testing_lua_take(lua_State *L)
{
    static const char *const names[] = {[MEMORY_OPEN] = "open",
                                        [MEMORY_DONE] = "done",
                                        [MEMORY_BROKEN] = "broken",
                                        [MEMORY_LOST] = "lost"};
    struct testing_client *c = testing_client_arg(L);
    lua_pushlstring(L, c ? c->m->received.ptr : NULL, c ? c->m->received.len : 0);
    if (c) memory_take(c->m);
    lua_pushstring(L, c ? names[memory_state(c->m)] : "lost");
    return 2;
}

// test_slow(client, bytes per second)
static int testing_lua_slow(lua_State *L)
{
    struct testing_client *c = testing_client_arg(L);
    if (c) memory_slow(c->m, luaL_checknumber(L, 2));
    return 0;
}

static int testing_lua_drop(lua_State *L)
{
    struct testing_client *c = testing_client_arg(L);
    if (c) memory_drop(c->m);
    return 0;
}

static int testing_lua_close(lua_State *L)
{
    struct testing_client *c = testing_client_arg(L);
    if (c) testing_client_close(c);
    return 0;
}

// test_last_client() → a number: later ones have greater ones
static int testing_lua_last_client(lua_State *L)
{
    lua_pushnumber(L, testing_of(L)->last_client);
    return 1;
}

// test_close_clients(after): those that were made after that one
static int testing_lua_close_clients(lua_State *L)
{
    struct testing *t = testing_of(L);
    double after = luaL_checknumber(L, 1);
    for (struct list *n = t->clients.next, *next; n != &t->clients; n = next) {
        struct testing_client *c = list_entry(n, struct testing_client, node);
        next = n->next;
        if (c->id > after) testing_client_close(c);
    }
    return 0;
}

void testing_client_open(lua_State *L, struct testing *t)
{
    static const luaL_Reg functions[] = {{"test_request", testing_lua_request},
                                         {"test_head", testing_lua_head},
                                         {"test_take", testing_lua_take},
                                         {"test_slow", testing_lua_slow},
                                         {"test_drop", testing_lua_drop},
                                         {"test_close", testing_lua_close},
                                         {"test_last_client", testing_lua_last_client},
                                         {"test_close_clients", testing_lua_close_clients},
                                         {NULL, NULL}};
    testing_register(L, t, functions);
}
