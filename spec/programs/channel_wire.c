// Channels over HTTP/1.1 and 1.0 on real sockets: frames and ends.
#include "channel_client.h"
#include "text/http1_write.h"

// A reply of unframed and framed payloads, as any handler may give them.
static void on_serve_payloads(struct handler *self, struct exchange *x)
{
    struct reply reply = {.status = 200, .content_length = -1};
    struct payload *list[2] = {payload_new_copy(SLICE("plain")), payload_new_copy(SLICE("framed"))};
    (void)self;
    site.served++;
    http1_write_frame(list[1]);
    exchange_head(x, &reply);
    exchange_body_payload(x, list[0]);
    exchange_body_payload(x, list[1]);
    // A full socket takes none or one: the others are staged behind it.
    for (size_t i = exchange_payloads(x, list, 2); i < 2; i++) exchange_body_payload(x, list[i]);
    exchange_end(x);
    payload_release(list[0]);
    payload_release(list[1]);
}

static void test_frames(void)
{
    struct client c;
    begin(NULL);
    connect_client(&c, "1.1", 0);
    publish(1, 3);
    turns(2);
    publish(2, 20);
    turns(2);
    receive_all(&c);
    struct slice all = buf_slice(&c.got), body = body_of(&c);
    CHECK(memmem(all.ptr, all.len, "transfer-encoding: chunked\r\n", 28) != NULL);
    CHECK(memmem(all.ptr, all.len, "content-type: text/event-stream\r\n", 33) != NULL);
    // "data: xxx\n" "id: eeeeeeee-1\n" "\n"
    CHECK(body.len > 4 && memcmp(body.ptr, "1a\r\ndata: xxx\nid: ", 18) == 0);
    bool is_whole;
    struct buf plain = unchunk(body, &is_whole);
    CHECK(!is_whole);
    check_sequence(buf_slice(&plain), 1, 3);
    buf_reset(&plain);
    channel_finish(site.channel, true, SLICE(""), SLICE("end"), 0, NULL);
    turns(3);
    receive_all(&c);
    plain = unchunk(body_of(&c), &is_whole);
    CHECK(is_whole && !c.is_over); // the connection lives on
    check_sequence(buf_slice(&plain), 1, 4);
    buf_reset(&plain);
    leave(&c);
    finish();
}

static void test_http10(void)
{
    struct client c;
    begin(NULL);
    connect_client(&c, "1.0", 0);
    publish(3, 20);
    turns(3);
    receive_all(&c);
    check_sequence(body_of(&c), 1, 3);
    channel_finish(site.channel, false, SLICE(""), SLICE(""), 0, NULL);
    turns(3);
    receive_all(&c);
    CHECK(c.is_over);
    leave(&c);
    finish();
}

static void test_payloads(void)
{
    struct client c;
    bool is_whole;
    begin(NULL);
    site.handler.serve = on_serve_payloads;
    connect_client(&c, "1.1", 0);
    receive_all(&c);
    struct buf plain = unchunk(body_of(&c), &is_whole);
    CHECK(is_whole && slice_equals(buf_slice(&plain), SLICE("plainframedplainframed")));
    buf_reset(&plain);
    leave(&c);
    connect_client(&c, "1.0", 0);
    receive_all(&c);
    CHECK(slice_equals(body_of(&c), SLICE("plainframedplainframed")));
    leave(&c);
    finish();
}

int main(void)
{
    static const struct report_case cases[] = {
        {"events are framed as one chunk each", test_frames},
        {"HTTP/1.0 clients get the bare events", test_http10},
        {"payloads leave with their frames, or are given one", test_payloads},
        {NULL, NULL},
    };
    return report_run(cases);
}
