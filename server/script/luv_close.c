// The end of luv's handles and requests without luv: at the end of a VM, and of one that is lost.
#include <luv/lhandle.h>
#include <limits.h>
#include <stdlib.h>
#include "base/mem.h"
#include "script/luv_private.h"

void luv_disown(struct luv_state *state, struct luv_owned *owned)
{
    list_remove(&owned->node);
    mem_free(owned);
    state->count--;
}

void luv_finish(struct luv_state *state, struct luv_request *request)
{
    if (!list_is_linked(&request->node)) return;
    list_remove(&request->node);
    state->count--;
}

unsigned luv_open_handles(const struct vm *vm)
{
    return vm->luv ? vm->luv->count : 0;
}

bool luv_is_busy(const struct vm *vm)
{
    struct luv_state *state = vm->luv;

    if (!state) return false;
    for (struct list *n = state->handles.next; n != &state->handles; n = n->next) {
        const uv_handle_t *handle = list_entry(n, struct luv_owned, node)->handle;
        if (uv_is_active(handle) && uv_has_ref(handle) && !uv_is_closing(handle)) return true;
    }
    return !list_is_empty(&state->requests);
}

// libuv makes close callbacks in the reverse order of the closing, so the last are found first.
static void on_closed(uv_handle_t *handle)
{
    const luv_handle_t *data = handle->data;
    struct luv_state *state = data->ctx->extra;

    for (struct list *n = state->handles.prev; n != &state->handles; n = n->prev) {
        struct luv_owned *owned = list_entry(n, struct luv_owned, node);
        if (owned->handle != handle) continue;
        luv_disown(state, owned);
        break;
    }
    if (state->vm->phase != VM_ABANDONED) return;
    free(handle->data); // luv's own, and its finalizer will never run
    free(handle);
}

// From the end of the list on, where on_closed looks first.
void luv_close_handles(struct vm *vm, unsigned most)
{
    struct luv_state *state = vm->luv;
    struct list *n;

    if (!state) return;
    mem_free(state->spare);
    state->spare = NULL;
    for (n = &state->handles; most > 0 && n->prev != &state->handles; most--) n = n->prev;
    for (; n != &state->handles; n = n->next) {
        uv_handle_t *handle = list_entry(n, struct luv_owned, node)->handle;
        if (!uv_is_closing(handle)) uv_close(handle, on_closed);
    }
    for (n = state->requests.next; n != &state->requests; n = n->next) {
        uv_cancel(list_entry(n, struct luv_request, node)->req);
    }
}

// What stands in for luv's callbacks of requests in a VM that was given up. The request itself lies
// in the lost heap; its data is luv's own.
static void on_write(uv_write_t *req, int status)
{
    (void)status;
    free(req->data);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    (void)status;
    free(req->data);
}

static void on_connect(uv_connect_t *req, int status)
{
    (void)status;
    free(req->data);
}

static void on_send(uv_udp_send_t *req, int status)
{
    (void)status;
    free(req->data);
}

static void on_file(uv_fs_t *req)
{
    uv_fs_req_cleanup(req);
    free(req->data);
}

static void on_address(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    (void)status;
    uv_freeaddrinfo(found);
    free(req->data);
}

static void on_name(uv_getnameinfo_t *req, int status, const char *host, const char *service)
{
    (void)status, (void)host, (void)service;
    free(req->data);
}

static void on_random(uv_random_t *req, int status, void *bytes, size_t len)
{
    (void)status, (void)bytes, (void)len;
    free(req->data);
}

// libuv's queues: circular, each link a pair of pointers, next first.
static void **next_link(void **link)
{
    return (void **)link[0];
}

static void silence_writes(void **queue)
{
    for (void **q = next_link(queue); q && q != queue; q = next_link(q)) {
        list_entry(q, uv_write_t, queue)->cb = on_write;
    }
}

static void silence_sends(void **queue)
{
    for (void **q = next_link(queue); q && q != queue; q = next_link(q)) {
        list_entry(q, uv_udp_send_t, queue)->send_cb = on_send;
    }
}

// What a handle still owes callbacks for when it closes.
static void silence_handle(uv_handle_t *handle)
{
    if (handle->type == UV_TCP || handle->type == UV_NAMED_PIPE || handle->type == UV_TTY) {
        uv_stream_t *stream = (uv_stream_t *)handle;
        if (stream->connect_req) stream->connect_req->cb = on_connect;
        if (stream->shutdown_req) stream->shutdown_req->cb = on_shutdown;
        silence_writes(stream->write_queue);
        silence_writes(stream->write_completed_queue);
    } else if (handle->type == UV_UDP) {
        uv_udp_t *udp = (uv_udp_t *)handle;
        silence_sends(udp->write_queue);
        silence_sends(udp->write_completed_queue);
    }
}

static void silence_request(uv_req_t *req)
{
    switch (req->type) {
    case UV_FS: ((uv_fs_t *)req)->cb = on_file; break;
    case UV_GETADDRINFO: ((uv_getaddrinfo_t *)req)->cb = on_address; break;
    case UV_GETNAMEINFO: ((uv_getnameinfo_t *)req)->getnameinfo_cb = on_name; break;
    case UV_RANDOM: ((uv_random_t *)req)->cb = on_random; break;
    default: break;
    }
}

void luv_abandon(struct vm *vm)
{
    struct luv_state *state = vm->luv;
    struct list *node;

    if (!state) return;
    for (struct list *n = state->handles.next; n != &state->handles; n = n->next) {
        uv_handle_t *handle = list_entry(n, struct luv_owned, node)->handle;
        silence_handle(handle);
        if (uv_is_closing(handle)) handle->close_cb = on_closed;
    }
    luv_close_handles(vm, UINT_MAX);
    while ((node = list_take(&state->requests)) != NULL) {
        silence_request(list_entry(node, struct luv_request, node)->req);
        state->count--;
    }
}
