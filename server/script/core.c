#include "script/core.h"

#include "script/channel.h"
#include "script/json.h"
#include "script/logging.h"
#include "script/luv.h"
#include "script/metrics.h"
#include "script/offload.h"
#include "script/request.h"
#include "script/result.h"
#include "script/shared.h"
#include "script/stream.h"
#include "script/task.h"

void core_open(lua_State *L, struct vm *vm)
{
    task_open(L, vm);
    request_open(L, vm);
    result_open(L, vm);
    stream_lua_open(L, vm);
    channel_lua_open(L, vm);
    logging_open(L, vm);
    metrics_lua_open(L, vm);
    shared_lua_open(L, vm);
    luv_lua_open(L, vm);
    offload_open(L, vm, core_open);
    json_open(L, &vm->scratches);
    lua_setfield(L, -2, "json");
}
