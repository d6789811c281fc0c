#include "script/library.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "script/embedded.h"

// lua-cjson's header declares neither in a way that holds in every version.
int luaopen_cjson(lua_State *L);
int luaopen_cjson_safe(lua_State *L);

static char library_path[PATH_MAX];

static bool library_is_at(const char *root)
{
    char probe[PATH_MAX + 16];
    snprintf(probe, sizeof probe, "%s/lua/photon", root);
    return access(probe, R_OK) == 0;
}

void library_locate(void)
{
    const char *given = getenv("PHOTON_LIBRARY");
    char *slash;
    ssize_t len;
    if (given) {
        snprintf(library_path, sizeof library_path, "%s", given);
        return;
    }
    len = readlink("/proc/self/exe", library_path, sizeof library_path - 1);
    library_path[len > 0 ? len : 0] = '\0';
    // build/photon, build/san-…/photon: the checkout is one or two folders above the binary's.
    for (int up = 0; up < 4 && (slash = strrchr(library_path, '/')) != NULL; up++) {
        *slash = '\0';
        if (library_is_at(library_path)) return;
    }
    library_path[0] = '\0';
}

const char *library_root(void)
{
    return library_path[0] ? library_path : NULL;
}

bool library_owns(const char *source)
{
    size_t len = strlen(library_path);
    if (*source++ != '@') return false;
    if (len > 0) { // root/photon.lua, root/lua/photon/…
        if (strncmp(source, library_path, len) != 0 || source[len] != '/') return false;
        source += len + 1;
        if (strncmp(source, "lua/", 4) == 0) source += 4;
    }
    return strncmp(source, "photon/", 7) == 0 || strcmp(source, "photon.lua") == 0;
}

static int library_load_file(lua_State *L, const char *name)
{
    char path[2 * PATH_MAX];
    int at = snprintf(path, sizeof path, "%s/%s", library_path, strchr(name, '.') ? "lua/" : "");
    for (const char *p = name; *p && at < (int)sizeof path - 8; p++) {
        path[at++] = *p == '.' ? '/' : *p;
    }
    strcpy(path + at, ".lua");
    if (access(path, R_OK) != 0) return 0;
    if (luaL_loadfile(L, path) != 0) return lua_error(L);
    return 1;
}

static int library_load_embedded(lua_State *L, const char *name)
{
    char chunk[128];
    for (unsigned i = 0; i < embedded_module_count; i++) {
        const struct embedded_module *m = &embedded_modules[i];
        if (strcmp(m->name, name) != 0) continue;
        snprintf(chunk, sizeof chunk, "@%s", name);
        if (luaL_loadbuffer(L, (const char *)m->bytes, m->size, chunk) != 0) return lua_error(L);
        return 1;
    }
    return 0;
}

static int library_search(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    if (strcmp(name, "photon") != 0 && strncmp(name, "photon.", 7) != 0) return 0;
    if (library_root() ? library_load_file(L, name) : library_load_embedded(L, name)) return 1;
    lua_pushfstring(L, "\n\tno module '%s' in photon's library", name);
    return 1;
}

static void library_preload(lua_State *L, const char *name, lua_CFunction open)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
    lua_pushcfunction(L, open);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
}

void library_open(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "loaders");
    for (int i = (int)lua_objlen(L, -1); i >= 2; i--) { // after the preload searcher
        lua_rawgeti(L, -1, i);
        lua_rawseti(L, -2, i + 1);
    }
    lua_pushcfunction(L, library_search);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 2);
    library_preload(L, "cjson", luaopen_cjson);
    library_preload(L, "cjson.safe", luaopen_cjson_safe);
}
