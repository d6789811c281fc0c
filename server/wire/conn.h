// conn: a peer's bytes over a stream socket. Reads into the loop's buffer, keeps what the protocol
// did not take, writes at once and queues the rest. Nothing above sees a uv handle or a descriptor.
//
// Close law: a conn is freed after its uv close callback; on_close is the last call that its
// protocol gets. A failed read or write only begins the close; on_close comes on a later turn,
// never from inside a call that the protocol made. Once a close (graceful or not) or a failure has
// begun, no other call comes, and what the protocol still asks for does nothing.
#ifndef PHOTON_WIRE_CONN_H
#define PHOTON_WIRE_CONN_H

#include "base/payload.h"
#include "wire/loop.h"
#include "wire/timer.h"

struct conn;

// The peer's address, compact. family AF_UNIX has neither ip nor port.
struct peer {
    uint8_t ip[16];
    uint16_t port; // host order
    uint8_t family;
};

enum conn_end {
    CONN_CLOSED, // by us
    CONN_EOF,    // the peer is gone after its end of file
    CONN_RESET,  // the peer reset it
    CONN_STALLED // write_timeout: the peer took nothing, or acknowledged nothing (TCP_USER_TIMEOUT)
};

// Seam: conn to protocol.
struct conn_protocol {
    // `len` bytes at `bytes` (which may be changed in place), everything not yet taken. Returns how
    // many were taken; the rest is kept and comes again with more, or at conn_poke.
    size_t (*on_bytes)(struct conn *c, char *bytes, size_t len);
    // The peer will send no more, c->is_eof is set. The conn can still be written to. While reading
    // is stopped the peer's hang-up is noticed with its last bytes still unread: then this is
    // called with is_eof not yet set, and again when they have been read.
    void (*on_eof)(struct conn *c);
    // Everything written has gone to the kernel, after there was a backlog.
    void (*on_drain)(struct conn *c);
    // The last call; the protocol frees its own state.
    void (*on_close)(struct conn *c, enum conn_end how);
};

struct conn {
    uv_poll_t poll;
    struct loop *loop;
    const struct conn_protocol *protocol;
    void *state;        // the protocol's
    struct list node;   // for the owner's list of its conns
    struct list pieces; // what goes before `out`: parts of payloads, older contents of `out`
    struct buf in;      // bytes not taken yet
    struct buf out;     // staged and unsent bytes; out.ptr[0..out_sent) have gone
    size_t out_sent;
    size_t queued;               // bytes in `pieces`
    struct timer stall;          // runs while there is a backlog, and while lingering
    struct loop_turn news;       // carries conn_poke to the next turn
    uint32_t max_in;             // reading stops when `in` holds that many
    uint32_t write_timeout;      // milliseconds without progress of a backlog; 0: for ever
    uint64_t sent, acknowledged; // bytes so far; the latter when it was looked at last
    uint64_t progress_at;        // loop->now when that had changed
    uint32_t linger_left;        // bytes that may still be dropped
    struct peer peer;
    int fd;
    uint8_t events; // what is polled for now
    uint8_t end;    // enum conn_end, once closing
    bool is_read_stopped, is_eof;
    bool is_hung_up;    // RDHUP was noticed while reading was stopped
    bool is_blocked;    // the socket is full; its drain goes on writing
    bool is_watched;    // since it was full, until all is acknowledged: `stall` looks for progress
    bool is_delivering; // inside on_bytes
    bool is_lingering;  // closing gracefully
    bool is_shut;       // our end of file has been sent
    bool is_closing;
};

// Takes over the connected, non-blocking descriptor. NULL when there is no memory (the descriptor
// is closed then). The first bytes come on a later turn.
struct conn *conn_open(struct loop *loop, int fd, const struct peer *peer,
                       const struct conn_protocol *protocol, void *state);

// Where output is staged: append to it (buf_append…), then conn_flush. Nothing leaves before that.
static inline struct buf *conn_stage(struct conn *c)
{
    if (!c->out.ptr) loop_take_buffer(c->loop, &c->out);
    return &c->out;
}

// Sends what is staged and queued, as far as the socket takes it: one send. The rest waits for the
// socket.
void conn_flush(struct conn *c);

// Stages shared bytes; `part` lies in the payload (its framed or inner slice). Small parts are
// copied, others keep a reference until they are sent. Nothing leaves before conn_flush.
void conn_stage_payload(struct conn *c, struct payload *p, struct slice part);

// The same and conn_flush, but only what could not be sent at once keeps a reference.
void conn_send_payload(struct conn *c, struct payload *p, struct slice part);

// Sends what is staged and then the payloads (`is_framed`: with their frames), in one gathered
// write; returns how many were taken. Of those only one can be unsent, in part or whole: it keeps a
// reference. When fewer than `count` were taken there is a backlog and on_drain follows.
size_t conn_send_payloads(struct conn *c, struct payload *const *list, size_t count,
                          bool is_framed);

// Bytes that the kernel has not taken yet.
static inline size_t conn_backlog(const struct conn *c)
{
    return c->out.len - c->out_sent + c->queued;
}

// Delivers kept bytes (if any) to on_bytes again on the next turn, and reads on when reading was
// stopped for want of room.
void conn_poke(struct conn *c);

// Lets reading go on only while `max` bytes at most are kept; no read takes more. Until it is
// called that is the size of the read buffer. Outside of on_bytes, conn_poke makes a larger limit
// felt.
static inline void conn_limit_in(struct conn *c, uint32_t max)
{
    c->max_in = max;
}

// Stops or resumes reading. While stopped, the peer's hang-up (RDHUP) is still noticed.
void conn_stop_reading(struct conn *c, bool stop);

// Closes: at once (what is unsent is lost) or gracefully: sends what is left, then half-closes and
// reads and drops what comes until the peer's end of file, or 2 s, or 1 MiB, so that the peer can
// read an error reply before a reset. on_close follows on a later turn.
void conn_close(struct conn *c);
void conn_close_gracefully(struct conn *c);

// The peer's address as text ("127.0.0.1", "::1", "unix"); returns its length (46 bytes of room).
size_t conn_peer_text(const struct peer *peer, char to[46]);

#endif
