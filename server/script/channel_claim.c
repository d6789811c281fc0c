// Who produces an answer that can be resumed. The claim belongs to a task, first to the one that
// asked for it, then to the producer: however that ends, and be it for lack of memory, nobody is
// left waiting.
#include <uv.h>
#include "script/channel_private.h"
#include "script/task.h"

// What resumers of an answer are told when nobody goes on producing it.
#define CHANNEL_FAILED_EVENT "photon.error"
#define CHANNEL_FAILED_DATA  "{\"message\":\"the answer could not be completed\"}"

static void channel_claim_bind(struct channel_handle *h, struct task *t)
{
    if (h->producer) h->producer->on_end = NULL;
    h->producer = t;
}

// Without memory for the event they are told by the end alone.
static void channel_claim_fail(struct channel_handle *h)
{
    static const struct slice none;
    struct channel *ch = h->object.ch;
    uint64_t now = uv_hrtime() / 1000000;
    h->is_claimed = false;
    enum channel_result result = channel_finish(ch, true, SLICE(CHANNEL_FAILED_EVENT),
                                                SLICE(CHANNEL_FAILED_DATA), now, NULL);
    if (result == CHANNEL_NO_MEMORY) channel_finish(ch, false, none, none, now, NULL);
}

void channel_lua_fail_claim(struct channel_object *o)
{
    struct channel_handle *h = (struct channel_handle *)o;
    channel_claim_bind(h, NULL);
    if (h->is_claimed) channel_claim_fail(h);
}

// A request that has failed before there was a producer leaves the answer to the next one.
static void channel_claim_on_end(struct task *t)
{
    struct channel_handle *h = t->end_data;
    h->producer = NULL;
    if (!h->is_claimed) return;
    if (t->is_kept || channel_subscribers(h->object.ch) > 0) {
        channel_claim_fail(h);
    } else {
        h->is_claimed = false;
        channel_unclaim(h->object.ch);
    }
}

static void channel_claim_give(struct channel_handle *h, struct task *t)
{
    channel_claim_bind(h, t);
    t->on_end = channel_claim_on_end;
    t->end_data = h;
}

// channel_claim(channel) → whether the caller is its producer now
static int channel_lua_claim(lua_State *L)
{
    struct channel_handle *h = channel_lua_handle(L, 1);
    struct task *t = vm_of(L)->current;
    bool is_mine = t && !t->on_end && !h->is_claimed && channel_claim(h->object.ch);
    if (is_mine) {
        h->is_claimed = true;
        channel_claim_give(h, t);
    }
    lua_pushboolean(L, is_mine);
    return 1;
}

static int channel_lua_unclaim(lua_State *L)
{
    struct channel_handle *h = channel_lua_handle(L, 1);
    channel_claim_bind(h, NULL);
    if (h->is_claimed) channel_unclaim(h->object.ch);
    h->is_claimed = false;
    return 0;
}

// channel_keep(channel, task, serial): the task is the producer from now on, and goes on after its
// generation was retired
static int channel_lua_keep(lua_State *L)
{
    struct channel_handle *h = channel_lua_handle(L, 1);
    struct task *t = lua_touserdata(L, 2);
    if (!t || t->serial != lua_tonumber(L, 3)) return 0;
    t->is_kept = true;
    channel_claim_give(h, t);
    return 0;
}

void channel_lua_open_claim(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"channel_claim", channel_lua_claim},
                                         {"channel_unclaim", channel_lua_unclaim},
                                         {"channel_keep", channel_lua_keep},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
}
