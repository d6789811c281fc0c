// Channels in the VM of the specs: every scope (a file, a describe, an `it`) that makes any has a
// registry of its own, and so has every app that is loaded by its path; they end with the scope.
#include "base/mem.h"
#include "script/app_private.h"
#include "script/testing_private.h"

struct testing_registry {
    struct list node;
    struct channel_registry *r;
    unsigned depth;
};

static struct channel_registry *testing_add_registry(struct testing *t)
{
    struct testing_registry *entry = mem_zalloc(sizeof *entry);
    if (!entry) return NULL;
    entry->depth = t->depth;
    entry->r = channel_registry_new(t->limits.max_channels);
    if (!entry->r) {
        mem_free(entry);
        return NULL;
    }
    list_append(&t->registries, &entry->node);
    return entry->r;
}

struct channel_registry *testing_find_channels(struct vm *vm)
{
    struct testing *t = list_entry(vm->channels, struct testing, channels);
    struct exchange *x = vm->current && vm->current->slot ? vm->current->slot->x : NULL;
    if (x) {
        struct app_part *part = x->generation;
        return list_entry(part->host, struct testing_app, host)->channels;
    }
    if (list_is_empty(&t->registries)) return testing_add_registry(t);
    return list_entry(t->registries.prev, struct testing_registry, node)->r;
}

static bool testing_has_app(struct testing *t, const struct channel_registry *r)
{
    for (struct list *n = t->apps.next; n != &t->apps; n = n->next)
        if (list_entry(n, struct testing_app, node)->channels == r) return true;
    return false;
}

void testing_channels_free(struct testing *t, unsigned depth)
{
    for (struct list *n = t->registries.next, *next; n != &t->registries; n = next) {
        struct testing_registry *entry = list_entry(n, struct testing_registry, node);
        next = n->next;
        if (entry->depth < depth || testing_has_app(t, entry->r)) continue;
        channel_lua_drop(t->vm, entry->r);
        channel_registry_free(entry->r);
        list_remove(&entry->node);
        mem_free(entry);
    }
}

// test_channels_enter(): a scope begins
static int testing_lua_enter(lua_State *L)
{
    testing_of(L)->depth++;
    return 0;
}

// test_channels_leave(): it ends, after its apps
static int testing_lua_leave(lua_State *L)
{
    struct testing *t = testing_of(L);
    testing_channels_free(t, t->depth--);
    return 0;
}

// test_channels_new(): what comes in this scope has channels of its own
static int testing_lua_new(lua_State *L)
{
    return testing_add_registry(testing_of(L)) ? 0 : luaL_error(L, "not enough memory");
}

void testing_channels_open(lua_State *L, struct testing *t)
{
    static const luaL_Reg functions[] = {{"test_channels_enter", testing_lua_enter},
                                         {"test_channels_leave", testing_lua_leave},
                                         {"test_channels_new", testing_lua_new},
                                         {NULL, NULL}};
    testing_register(L, t, functions);
}
