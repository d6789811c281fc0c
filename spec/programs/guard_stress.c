// guard_stress [ROUNDS]: lets Lua run over its budget in every way we know, and after each escape
// proves that a fresh state still computes what it should. A line for each way: ok, with how each
// round ended (h: the hook's error, j: the jump), or not ok.
#include "script/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>
#include <lualib.h>

enum { BUDGET = 15 };

struct way {
    const char *name;
    const char *code;
    bool must_jump, must_raise;
};

static const struct way ways[] = {
    {"empty loop", "while true do end", true, false},
    {"counting loop", "local n = 0 while true do n = n + 1 end", true, false},
    {"table loop", "local t = {} local i = 0 while true do i = i + 1 t[i % 1000 + 1] = { i } end",
     false, false},
    {"string loop", "local s, i = '', 0 while true do i = i + 1 s = ('x' .. i):upper() end", false,
     false},
    {"string.rep", "while true do local s = ('abc'):rep(100000) end", false, false},
    {"string.rep, small", "while true do local s = ('x'):rep(40) end", false, false},
    {"tail calls", "local function f(n) return f(n + 1) end f(1)", false, false},
    {"endless calls", "local function f() local function g() end g() end while true do f() end",
     false, false},
    {"pcall(error)", "while true do pcall(error) end", false, true},
    {"pcall of a loop", "pcall(function() while true do pcall(error, 'x') end end)", false, true},
    {"pcall of an empty loop", "while true do pcall(function() while true do end end) end", true,
     false},
    {"pattern", "(('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40))", true, false},
    {"pattern with captures", "(('a'):rep(64)):match(('(a*)'):rep(30) .. 'b')", true, false},
    {"pattern after errors",
     "for i = 1, 300 do pcall(error, {}) pcall(string.rep) xpcall(error, debug.traceback, i) end "
     "(('a'):rep(40)):find(('.-'):rep(20) .. 'b')",
     true, false},
    {"gsub with a function",
     "while true do (('a'):rep(1000)):gsub('a', function(c) return c end) end", false, false},
    {"sort with a function",
     "local t = {} for i = 1, 1e5 do t[i] = (i * 7919) % 100003 end "
     "while true do table.sort(t, function(a, b) return a < b end) "
     "table.sort(t, function(a, b) return a > b end) end",
     false, false},
    {"user coroutine", "local co = coroutine.wrap(function() while true do end end) co()", true,
     false},
    {"many coroutines",
     "while true do local co = coroutine.wrap(function(a) return coroutine.yield(a) end) co(1) end",
     false, false},
    {"loop with many locals",
     "local a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p = 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 while true do "
     "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p = "
     "b+a,c+b,d+c,e+d,f+e,g+f,h+g,i+h,j+i,k+j,l+k,m+l,n+m,o+n,p+o,"
     "a+p end",
     true, false},
    {"metamethods",
     "local t = setmetatable({}, { __index = function(_, k) return k end }) local n = 0 "
     "while true do n = n + t[n] end",
     false, false},
    {"loop in a metamethod",
     "local t = setmetatable({}, { __concat = function() while true do end end }) return t .. 'x'",
     true, false},
    {"interpreted loop", "jit.off(true, true) local n = 0 while true do n = n + 1 end", false,
     true},
    {"table.concat",
     "local t = {} for i = 1, 1000 do t[i] = 'abc' end "
     "while true do local s = table.concat(t) end",
     false, false},
    {"cdata loop",
     "local ffi = require 'ffi' local a = ffi.new('int64_t', 1) "
     "while true do a = a * 3 + 1 end",
     false, false},
};

enum { WAYS = sizeof ways / sizeof *ways };

static int traceback(lua_State *L)
{
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
    return 1;
}

// A C function that is not LuaJIT's stands on the stack while the loop runs: it must be let through
// to its end, or what it holds is lost. (The hook's error passes it as any Lua error does.)
static int entered, left;

static int call_through(lua_State *L)
{
    entered++;
    int status = lua_pcall(L, 0, 0, 0);
    left++;
    return status ? lua_error(L) : 0;
}

static const char loop_under_c[] = "local n = 0 call_through(function() for i = 1, 4e8 do n = n + "
                                   "i % 3 end end) while true do end";

// The door: what is at the base of each task. It must live through the hook's error.
static const char door[] = "local run, traceback = ... return function() "
                           "local ok, err = xpcall(run, traceback) "
                           "return ok, ok or tostring(err) end";

// Compiles, collects, catches errors, sorts: the same checksum each time when all is well.
static const char proof[] =
    "local sum, words = 0, {} for i = 1, 20000 do local t = { i, tostring(i) } "
    "sum = sum + #t[2] * i % 7 words[i % 500 + 1] = t[2]:rep(3):upper() end "
    "for i = 1, 200 do local ok, e = pcall(error, 'e' .. i) if ok or e ~= 'e' .. i then return -1 "
    "end end "
    "table.sort(words) collectgarbage() "
    "return sum + #table.concat(words):gsub('%d', '') + #(words[1]:match('^%d+'))";

static lua_State *new_state(void)
{
    lua_State *L = luaL_newstate();
    if (!L) abort();
    luaL_openlibs(L);
    return L;
}

static double prove(struct guard *g)
{
    lua_State *L = new_state();
    double sum;
    if (luaL_loadstring(L, proof) != 0 || guard_pcall(g, L, 0, 1, 0, 60000) != 0) {
        fprintf(stderr, "proof failed: %s\n", lua_tostring(L, -1));
        return -2;
    }
    sum = lua_tonumber(L, -1);
    lua_close(L);
    return sum;
}

// 'j' when it was left by a jump, 'h' when the hook stopped it, '?' when it ended otherwise.
static char run_way(struct guard *g, const struct way *way, bool is_task)
{
    lua_State *L = new_state();
    lua_State *co = lua_newthread(L);
    int status;

    if (luaL_loadstring(co, door) != 0) abort();
    if (luaL_loadbuffer(co, way->code, strlen(way->code), way->name) != 0) {
        fprintf(stderr, "%s: %s\n", way->name, lua_tostring(co, -1));
        abort();
    }
    lua_pushcfunction(co, traceback);
    if (lua_pcall(co, 2, 1, 0) != 0) abort();
    status = is_task ? guard_resume(g, co, 0, BUDGET) : guard_pcall(g, co, 0, 2, 0, BUDGET);
    if (status == GUARD_ABANDONED) return 'j';

    const char *text = lua_tostring(co, -1);
    char how = text && strstr(text, "lua_budget (0.015 s)") && guard_is_stopped(g) ? 'h' : '?';
    if (is_task && (status != 0 || lua_toboolean(co, -2))) how = '?';
    if (lua_gethookmask(co) & ~0x10) how = '?';
    if (how == '?') fprintf(stderr, "%s: status %d: %s\n", way->name, status, text ? text : "-");
    // Another loop in the same state must be stopped as well.
    if (how == 'h' && luaL_loadstring(co, "jit.off(true, true) while true do end") == 0) {
        status = guard_pcall(g, co, 0, 0, 0, BUDGET);
        if (status != LUA_ERRRUN) how = '!';
    }
    lua_close(L);
    return how;
}

// The number of failures.
static int check_c_function(struct guard *g)
{
    lua_State *L = new_state();
    int status;

    lua_register(L, "call_through", call_through);
    if (luaL_loadstring(L, loop_under_c) != 0) abort();
    status = guard_pcall(g, L, 0, 0, 0, BUDGET);
    if (status != GUARD_ABANDONED) lua_close(L);
    bool is_wrong =
        entered != 1 || left != 1 || (status != GUARD_ABANDONED && status != LUA_ERRRUN);
    printf(is_wrong ? "not ok %s: cut off\n" : "ok %s\n", "a loop under a C function ends first");
    return is_wrong;
}

int main(int argc, char **argv)
{
    static struct guard g;
    int rounds = argc > 1 ? atoi(argv[1]) : 6;
    int jumps = 0, failures = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!guard_start() || !guard_join_thread(&g)) return 2;
    double expected = prove(&g);
    if (expected <= 0) return 2;
    for (unsigned w = 0; w < WAYS; w++) {
        char seen[64] = {0};
        int wrong = 0;
        for (int i = 0; i < rounds && i < 60; i++) {
            char how = run_way(&g, &ways[w], i % 3 != 2);
            bool is_wrong = (ways[w].must_jump && how != 'j') ||
                            (ways[w].must_raise && how != 'h') || (how != 'j' && how != 'h');
            double sum = prove(&g);
            if (sum != expected) fprintf(stderr, "%s: proof %f\n", ways[w].name, sum);
            seen[i] = how;
            jumps += how == 'j';
            wrong += is_wrong || sum != expected;
        }
        failures += wrong;
        if (wrong)
            printf("not ok %s: %s\n", ways[w].name, seen);
        else
            printf("ok %s (%s)\n", ways[w].name, seen);
    }
    failures += check_c_function(&g);
    guard_leave_thread(&g);
    guard_stop();
    if (jumps < rounds)
        printf("not ok jumps: %d\n", jumps);
    else
        printf("ok %d jumps\n", jumps);
    return failures ? 1 : 0;
}
