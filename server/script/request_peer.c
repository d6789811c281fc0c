// Who asks: the peer of the connection, or, when that is a trusted proxy, whom it speaks for.
#include "script/request.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include "serve/server.h"
#include "serve/stream_ip.h"

// An address as IPv6; IPv4 as ::ffff:a.b.c.d.
struct request_net {
    uint8_t ip[16];
    uint8_t bits;
};

struct request_trust {
    unsigned count;
    bool trusts_unix;
    struct request_net nets[];
};

static bool request_parse_ip(struct slice text, struct request_net *net)
{
    char copy[64];
    if (text.len == 0 || text.len >= sizeof copy) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    net->bits = 128;
    if (inet_pton(AF_INET6, copy, net->ip) == 1) return true;
    memset(net->ip, 0, 10);
    net->ip[10] = net->ip[11] = 0xff;
    return inet_pton(AF_INET, copy, net->ip + 12) == 1;
}

static bool request_parse_net(struct slice text, struct request_net *net)
{
    const char *slash = memchr(text.ptr, '/', text.len);
    struct slice ip = {text.ptr, slash ? (size_t)(slash - text.ptr) : text.len};
    char *end;
    if (!request_parse_ip(ip, net)) return false;
    if (!slash) return true;
    bool is_v4 = memchr(ip.ptr, ':', ip.len) == NULL;
    unsigned long bits = strtoul(slash + 1, &end, 10); // Lua's strings end with a NUL
    if (end == slash + 1 || end != text.ptr + text.len || bits > (is_v4 ? 32u : 128u)) return false;
    net->bits = (uint8_t)(is_v4 ? bits + 96 : bits);
    return true;
}

static bool request_is_in(const struct request_net *net, const uint8_t ip[16])
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    if (memcmp(net->ip, ip, whole) != 0) return false;
    return rest == 0 || ((net->ip[whole] ^ ip[whole]) >> (8 - rest)) == 0;
}

static bool request_is_trusted(const struct request_trust *trust, const uint8_t ip[16])
{
    for (unsigned i = 0; trust && i < trust->count; i++)
        if (request_is_in(&trust->nets[i], ip)) return true;
    return false;
}

static bool request_trust_add(struct request_trust *trust, struct slice text)
{
    if (slice_equals(text, SLICE("unix"))) {
        trust->trusts_unix = true;
        return true;
    }
    return request_parse_net(text, &trust->nets[trust->count++]);
}

// What a flag or the environment says stands instead of the app's list.
static const struct config *request_config(struct vm *vm)
{
    const struct config *config = vm->server ? vm->server->config : NULL;
    return config && config->has_trusted ? config : NULL;
}

static int request_refuse_entry(lua_State *L, struct slice text)
{
    lua_pushnil(L);
    request_push_slice(L, text);
    return 2;
}

// core.request_trust(list): the trusted proxies: addresses, networks (10.0.0.0/8) and "unix"; or
// nil and the entry that is none of these.
static int request_set_trust(lua_State *L)
{
    struct vm *vm = vm_of(L);
    const struct config *config = request_config(vm);
    luaL_checktype(L, 1, LUA_TTABLE);
    int count = config ? (int)config->trusted_count : (int)lua_objlen(L, 1);
    struct request_trust *trust =
        lua_newuserdata(L, sizeof *trust + (size_t)count * sizeof *trust->nets);
    trust->count = 0;
    trust->trusts_unix = false;
    for (int i = 0; i < count; i++) {
        struct slice text;
        lua_rawgeti(L, 1, i + 1); // the table keeps the text alive
        if (config)
            text = config->trusted[i];
        else
            text.ptr = luaL_checklstring(L, -1, &text.len);
        lua_pop(L, 1);
        if (!request_trust_add(trust, text)) return request_refuse_entry(L, text);
    }
    luaL_unref(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_TRUST]);
    vm->refs[VM_REF_TRUST] = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushboolean(L, true);
    return 1;
}

static const struct request_trust *request_trust_of(lua_State *L, struct vm *vm)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_TRUST]);
    const struct request_trust *trust = lua_touserdata(L, -1);
    lua_pop(L, 1); // the registry keeps it
    return trust;
}

// In-process tests have no peer.
static struct slice request_peer_text(const struct exchange *x, char to[46])
{
    return x->peer ? slice_of(to, conn_peer_text(x->peer, to)) : SLICE("127.0.0.1");
}

static bool request_peer_is_trusted(const struct request_trust *trust, const struct exchange *x)
{
    struct request_net net;
    char text[46];
    if (!trust) return false;
    if (x->peer && x->peer->family == AF_UNIX) return trust->trusts_unix;
    return request_parse_ip(request_peer_text(x, text), &net) && request_is_trusted(trust, net.ip);
}

// The last element of a list, which is taken off it.
static struct slice request_take_last(struct slice *list)
{
    size_t at = list->len;
    while (at && list->ptr[at - 1] != ',') at--;
    struct slice last = slice_trim(slice_from(*list, at));
    list->len = at ? at - 1 : 0;
    return last;
}

// `[2001:db8::1]:4711` and `192.0.2.1:4711` without what is not the address.
static struct slice request_bare_ip(struct slice s)
{
    const char *colon = s.len ? memchr(s.ptr, ':', s.len) : NULL;
    if (s.len && s.ptr[0] == '[') {
        const char *end = memchr(s.ptr, ']', s.len);
        return end ? slice_of(s.ptr + 1, (size_t)(end - s.ptr - 1)) : s;
    }
    bool is_v4_with_port = colon && !memchr(colon + 1, ':', (size_t)(s.ptr + s.len - colon - 1));
    return is_v4_with_port ? slice_of(s.ptr, (size_t)(colon - s.ptr)) : s;
}

// From the right, each proxy tells who spoke to it; the first that is not trusted is the client.
static struct slice request_forwarded_for(const struct request_trust *trust,
                                          const struct exchange *x)
{
    const struct headers *h = &x->request.headers;
    struct slice found = {0};
    for (uint32_t i = h->count; i-- > 0;) {
        struct slice list = h->items[i].value;
        if (!slice_equals(h->items[i].name, SLICE("x-forwarded-for"))) continue;
        while (list.len) {
            struct request_net net;
            struct slice ip = request_bare_ip(request_take_last(&list));
            if (!request_parse_ip(ip, &net)) return found;
            found = ip;
            if (!request_is_trusted(trust, net.ip)) return found;
        }
    }
    return found;
}

static struct slice request_client_text(const struct request_trust *trust, const struct exchange *x,
                                        char to[46])
{
    if (request_peer_is_trusted(trust, x)) {
        struct slice ip = request_forwarded_for(trust, x);
        if (ip.len) return ip;
    }
    return request_peer_text(x, to);
}

static int request_ip(lua_State *L)
{
    char text[46];
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    return request_push_slice(L, request_client_text(request_trust_of(L, vm_of(L)), x, text));
}

bool request_admit_ip(struct vm *vm, struct exchange *x)
{
    char text[46];
    struct request_net net;
    if (!x->limits->max_streams_per_ip) return true;
    struct slice ip = request_client_text(request_trust_of(vm->L, vm), x, text);
    return !request_parse_ip(ip, &net) || stream_ip_enter(x, net.ip);
}

static int request_scheme(lua_State *L)
{
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    const struct header *proto = headers_find(&x->request.headers, SLICE("x-forwarded-proto"));
    if (proto && request_peer_is_trusted(request_trust_of(L, vm_of(L)), x)) {
        struct slice list = proto->value;
        if (slice_equals_nocase(request_take_last(&list), SLICE("https")))
            return request_push_slice(L, SLICE("https"));
    }
    return request_push_slice(L, SLICE("http"));
}

static int request_host(lua_State *L)
{
    struct exchange *x = request_arg(L);
    return x ? request_push_slice(L, x->request.host) : 0;
}

void request_peer_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"request_ip", request_ip},
                                         {"request_scheme", request_scheme},
                                         {"request_host", request_host},
                                         {"request_trust", request_set_trust},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
}
