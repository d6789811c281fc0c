#include "http/http1_conn.h"

#include <sys/random.h>
#include "base/mem.h"

bool http1_host_open(struct http1_host *host, struct loop *loop, const struct limits *limits,
                     struct handler *handler)
{
    *host = (struct http1_host){.loop = loop, .limits = limits, .handler = handler};
    list_init(&host->conns);
    // A random beginning makes request ids unique across workers and restarts.
    if (getrandom(&host->serial, sizeof host->serial, 0) < 0) host->serial = uv_hrtime();
    return http1_host_set_limits(host, limits);
}

bool http1_host_set_limits(struct http1_host *host, const struct limits *limits)
{
    uint32_t cap = limits->max_headers + 1; // Host does not count
    host->limits = limits;
    if (cap <= host->scratch_cap) return true;
    struct header *scratch = mem_realloc(host->scratch, cap * sizeof *scratch);
    if (!scratch) return false;
    host->scratch = scratch;
    host->scratch_cap = cap;
    return true;
}

// Closing changes the list only on later turns, so walking it is safe.
void http1_host_drain(struct http1_host *host)
{
    host->is_draining = true;
    for (struct list *n = host->conns.next; n != &host->conns; n = n->next) {
        struct http1 *h = list_entry(n, struct http1, node);
        if (h->current || h->is_closing) {
            h->is_last = true;
        } else if (h->wait == HTTP1_WAIT_IDLE) {
            h->is_closing = true;
            conn_close_gracefully(h->conn);
        }
    }
}

bool http1_host_is_done(const struct http1_host *host)
{
    for (struct list *n = host->conns.next; n != &host->conns; n = n->next) {
        if (!list_entry(n, struct http1, node)->conn->is_shut) return false;
    }
    return true;
}

void http1_host_abort(struct http1_host *host)
{
    for (struct list *n = host->conns.next; n != &host->conns; n = n->next) {
        struct http1 *h = list_entry(n, struct http1, node);
        h->is_closing = true;
        conn_close(h->conn);
    }
}

void http1_host_close(struct http1_host *host)
{
    while (host->spare) {
        struct http1_exchange *e = host->spare;
        host->spare = e->node.next;
        mem_free(e);
    }
    mem_free(host->scratch);
    *host = (struct http1_host){0};
}
