// embed OUT FILE...: compiles Lua files to bytecode (debug information kept) and writes them as the
// C table of script/embedded.h. Linked to the LuaJIT that will load them, for the two must agree.
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct module {
    const char *path;
    char name[256];
};

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "embed: %s: %s\n", what, detail);
    exit(1);
}

static size_t path_skip(const char *path)
{
    return strncmp(path, "lua/", 4) == 0 ? 4 : 0;
}

// photon.lua is "photon" and lua/photon/task.lua "photon.task"; tracebacks call the latter
// photon/task.lua.
static void module_name(struct module *m)
{
    const char *path = m->path + path_skip(m->path);
    size_t len = strlen(path);

    if (len < 5 || len - 4 >= sizeof m->name || strcmp(path + len - 4, ".lua") != 0)
        fail(m->path, "not a Lua file");
    memcpy(m->name, path, len - 4);
    m->name[len - 4] = '\0';
    for (char *c = m->name; *c; c++)
        if (*c == '/') *c = '.';
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct module *)a)->name, ((const struct module *)b)->name);
}

static int write_bytes(lua_State *L, const void *bytes, size_t len, void *arg)
{
    const unsigned char *p = bytes;

    (void)L;
    for (size_t i = 0; i < len; i++) fprintf(arg, "%u,%s", p[i], i % 24 == 23 ? "\n" : "");
    return 0;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    char *text = NULL;
    size_t used = 0, got;

    if (!in) fail(path, "cannot be read");
    do {
        text = realloc(text, used + 65536);
        if (!text) fail(path, "out of memory");
        got = fread(text + used, 1, 65536, in);
        used += got;
    } while (got > 0);
    fclose(in);
    *size = used;
    return text;
}

static void write_module(lua_State *L, const struct module *m, int i, FILE *out)
{
    char chunk[300];
    size_t size;
    char *text = read_file(m->path, &size);

    snprintf(chunk, sizeof chunk, "@%s", m->path + path_skip(m->path));
    if (luaL_loadbuffer(L, text, size, chunk) != 0) fail(m->path, lua_tostring(L, -1));
    free(text);
    fprintf(out, "static const unsigned char module_%d[] = {\n", i);
    if (lua_dump(L, write_bytes, out) != 0) fail(m->path, "cannot be dumped");
    fprintf(out, "};\n");
    lua_pop(L, 1);
}

static void write_table(const struct module *modules, int count, FILE *out)
{
    fprintf(out, "const struct embedded_module embedded_modules[] = {\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "    {\"%s\", module_%d, sizeof module_%d},\n", modules[i].name, i, i);
    fprintf(out, "    {0, 0, 0},\n};\nconst unsigned embedded_module_count = %d;\n", count);
}

int main(int argc, char **argv)
{
    int count = argc - 2;
    struct module *modules = calloc(argc, sizeof *modules);
    lua_State *L = luaL_newstate();
    FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;

    if (!out || !L || !modules)
        fail(argc > 1 ? argv[1] : "usage", "cannot write embed OUT FILE...");
    for (int i = 0; i < count; i++) {
        modules[i].path = argv[i + 2];
        module_name(&modules[i]);
    }
    qsort(modules, count, sizeof *modules, compare);
    fprintf(out, "#include \"script/embedded.h\"\n\n");
    for (int i = 0; i < count; i++) write_module(L, &modules[i], i, out);
    write_table(modules, count, out);
    if (fclose(out) != 0) fail(argv[1], "cannot be written");
    free(modules);
    lua_close(L);
    return 0;
}
