#include "script/result_kinds.h"

#include "script/json.h"
#include "script/task.h"
#include "text/json.h"

static bool result_has_mark(lua_State *L, struct vm *vm, enum vm_ref ref)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[ref]);
    bool is = lua_rawequal(L, -1, -2);
    lua_pop(L, 1);
    return is;
}

enum result_kind result_kind_of(lua_State *L, struct vm *vm, int index)
{
    enum result_kind kind = RESULT_PLAIN;
    if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return RESULT_PLAIN;
    if (result_has_mark(L, vm, VM_REF_RESPONSE))
        kind = RESULT_RESPONSE;
    else if (result_has_mark(L, vm, VM_REF_PROBLEM))
        kind = RESULT_PROBLEM;
    else if (result_has_mark(L, vm, VM_REF_FAILURE))
        kind = RESULT_FAILURE;
    else if (result_has_mark(L, vm, VM_REF_REQUEST))
        kind = RESULT_REQUEST;
    lua_pop(L, 1);
    if (kind != RESULT_PLAIN) return kind;
    lua_pushvalue(L, index);
    if (result_has_mark(L, vm, VM_REF_CANCELLED)) kind = RESULT_CANCELLED;
    lua_pop(L, 1);
    return kind;
}

void result_mark(lua_State *L, struct vm *vm, enum vm_ref ref)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[ref]);
    lua_setmetatable(L, -2);
}

struct exchange *result_exchange(struct vm *vm)
{
    return vm->current ? vm->current->x : NULL;
}

void result_push_described(lua_State *L, int index)
{
    size_t len;
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        lua_pushvalue(L, index);
        lua_pushfstring(L, "a number (%s)", lua_tostring(L, -1));
        lua_remove(L, -2);
        break;
    case LUA_TBOOLEAN:
        lua_pushfstring(L, "a boolean (%s)", lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TSTRING:
        lua_tolstring(L, index, &len);
        lua_pushlstring(L, lua_tostring(L, index), len < 40 ? len : 40);
        lua_pushfstring(L, "a string (\"%s\"%s)", lua_tostring(L, -1), len < 40 ? "" : "…");
        lua_remove(L, -2);
        break;
    default: lua_pushfstring(L, "a %s", luaL_typename(L, index));
    }
}

// A text with bytes that are no UTF-8 (taken from a request perhaps) must not turn a 400 into a
// 500.
static bool result_write_text(struct buf *to, struct slice s)
{
    enum json_result result = json_write_string(to, s);
    if (result != JSON_BAD_UTF8) return result == JSON_OK;
    if (!buf_append(to, "\"", 1)) return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool is_plain = c >= ' ' && c < 0x7f && c != '"' && c != '\\';
        if (!buf_append(to, is_plain ? s.ptr + i : "?", 1)) return false;
    }
    return buf_append(to, "\"", 1);
}

// The member `name` of the table at `index`, or `otherwise` when it is no string there.
static bool result_write_member(lua_State *L, int index, const char *name, const char *otherwise,
                                const char *before, struct buf *to)
{
    struct slice text = slice_of_text(otherwise);
    if (index) {
        lua_getfield(L, index, name);
        if (lua_type(L, -1) == LUA_TSTRING) text.ptr = lua_tolstring(L, -1, &text.len);
        lua_pop(L, 1); // the table keeps it alive
    }
    if (!text.ptr) return true;
    return buf_append_format(to, "%s\"%s\":", before, name) && result_write_text(to, text);
}

static bool result_is_known_member(struct slice name)
{
    static const char *const known[] = {"type", "title", "status", "detail", "request_id"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (slice_equals(name, slice_of_text(known[i]))) return true;
    return false;
}

static const char *result_write_extra(lua_State *L, int index, struct buf *to)
{
    luaL_checkstack(L, 6, "problem");
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        struct slice name;
        if (lua_type(L, -2) != LUA_TSTRING) return "the extra members of a problem have names";
        name.ptr = lua_tolstring(L, -2, &name.len);
        if (result_is_known_member(name)) continue;
        if (!buf_append(to, ",", 1) || !result_write_text(to, name) || !buf_append(to, ":", 1))
            return "no memory";
        const char *error = json_encode(L, -1, to);
        if (error) return error;
    }
    return NULL;
}

const char *result_write_problem(lua_State *L, int index, int status, const struct exchange *x,
                                 struct buf *to)
{
    char id[EXCHANGE_ID];
    const char *error = NULL;
    int top = lua_gettop(L), extra = 0;
    if (index) {
        lua_pushliteral(L, "extra");
        lua_rawget(L, index);
        if (lua_istable(L, -1)) extra = top + 1;
    }
    bool ok = result_write_member(L, extra, "type", "about:blank", "{", to) &&
              result_write_member(L, extra, "title", message_reason(status), ",", to) &&
              buf_append_format(to, ",\"status\":%d", status) &&
              result_write_member(L, index, "detail", NULL, ",", to);
    if (ok && x) {
        exchange_id(x, id);
        ok = buf_append_format(to, ",\"request_id\":\"%.*s\"", EXCHANGE_ID, id);
    }
    if (ok && extra) error = result_write_extra(L, extra, to);
    lua_settop(L, top);
    if (error) return error;
    return ok && buf_append(to, "}\n", 2) ? NULL : "no memory";
}

// The metatables are empty here; photon.response gives them their methods.
void result_kinds_open(lua_State *L, struct vm *vm)
{
    static const struct {
        const char *name;
        enum vm_ref ref;
    } marks[] = {{"response_meta", VM_REF_RESPONSE},
                 {"problem_meta", VM_REF_PROBLEM},
                 {"failure_meta", VM_REF_FAILURE},
                 {"fields_meta", VM_REF_FIELDS},
                 {"failures", VM_REF_FAILURES}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        lua_newtable(L);
        lua_pushvalue(L, -1);
        vm->refs[marks[i].ref] = luaL_ref(L, LUA_REGISTRYINDEX);
        lua_setfield(L, -2, marks[i].name);
    }
}
