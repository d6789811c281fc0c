// fixed: what is rendered, what is matched, and that serving allocates nothing.
#include "serve/fixed.h"

#include "serve_probe.h"

enum { LARGE = 300000 };

static char large[LARGE];

static struct fixed *make(int status, struct slice type, struct slice body)
{
    struct header items[] = {{SLICE("content-type"), type}};
    struct headers headers = {items, 1, 1};
    return fixed_new(status, &headers, body);
}

static void get(const struct fixed *f, enum method method, const char *if_none_match)
{
    probe_begin(method);
    if (if_none_match) probe_add("if-none-match", if_none_match);
    fixed_serve(f, &probe.x);
}

// The value of a field of the head that was sent; empty when there is none.
static struct slice field(const char *name)
{
    static char lines[sizeof probe.head + 1];
    memcpy(lines, probe.head, probe.head_len);
    lines[probe.head_len] = '\0';
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    char *at = strstr(lines, wanted);
    if (!at) return (struct slice){0};
    at += strlen(wanted);
    return slice_of(at, strcspn(at, "\r"));
}

static void a_reply_is_whole(void)
{
    struct fixed *f = make(200, SLICE("text/plain"), SLICE("Hello\n"));
    get(f, METHOD_GET, NULL);
    EQUAL(probe.heads, 1);
    EQUAL(probe.ends, 1);
    EQUAL(probe.content_length, 6);
    CHECK(strncmp(probe.head, "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(slice_equals(field("content-type"), SLICE("text/plain")));
    CHECK(slice_equals(field("content-length"), SLICE("6")));
    CHECK(slice_equals(probe_body_text(), SLICE("Hello\n")));
    probe_finish();
    fixed_free(f);
}

static void the_etag(char to[64], struct slice type, struct slice body)
{
    struct fixed *f = make(200, type, body);
    get(f, METHOD_GET, NULL);
    snprintf(to, 64, "%.*s", (int)field("etag").len, field("etag").ptr);
    probe_finish();
    fixed_free(f);
}

static void the_etag_is_of_type_and_body(void)
{
    char one[64], same[64], type[64], body[64], moved[64];
    the_etag(one, SLICE("text/plain"), SLICE("abc"));
    the_etag(same, SLICE("text/plain"), SLICE("abc"));
    the_etag(type, SLICE("text/html"), SLICE("abc"));
    the_etag(body, SLICE("text/plain"), SLICE("abd"));
    the_etag(moved, SLICE("text/plaina"), SLICE("bc"));
    EQUAL(strlen(one), 34);
    CHECK(one[0] == '"' && one[33] == '"');
    CHECK(strcmp(one, same) == 0);
    CHECK(strcmp(one, type) && strcmp(one, body) && strcmp(one, moved));
}

static struct fixed *make_tagged(const char *etag)
{
    struct header items[] = {
        {SLICE("Cache-Control"), SLICE("max-age=60")},
        {SLICE("vary"), SLICE("accept")},
        {SLICE("expires"), SLICE("0")},
        {SLICE("content-location"), SLICE("/a")},
        {SLICE("content-type"), SLICE("text/html")},
        {SLICE("x-other"), SLICE("1")},
        {SLICE("ETag"), slice_of_text(etag)},
    };
    struct headers headers = {items, 7, 7};
    return fixed_new(200, &headers, SLICE("<p>"));
}

static void matches_are_found(void)
{
    static const struct {
        const char *value;
        bool is_match;
    } cases[] = {
        {"\"a,b\"", true},
        {"W/\"a,b\"", true},
        {"*", true},
        {" * ", true},
        {"\"x\", \"a,b\"", true},
        {"\"x\" ,,\tW/\"a,b\"", true},
        {"\"a,b\",\"x\"", true},
        {"\"A,B\"", false},
        {"a,b", false},
        {"\"a\",\"b\"", false},
        {"", false},
        {",", false},
        {"\"a,b", false},
        {"w/\"a,b\"", false},
        {"\"x\"junk, \"a,b\"", false},
        {"W/", false},
        {"W/W/\"a,b\"", false},
        {"\"x\", *", false},
        {"\"\"", false},
        {"\"", false},
        {"\"a,b\"\"x\"", true},
    };
    for (int weak = 0; weak < 2; weak++) {
        struct fixed *f = make_tagged(weak ? "W/\"a,b\"" : "\"a,b\"");
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            get(f, METHOD_GET, cases[i].value);
            report_equal(probe.x.status, cases[i].is_match ? 304 : 200, cases[i].value, __FILE__,
                         __LINE__);
            EQUAL(probe.body_len, cases[i].is_match ? 0 : 3);
            EQUAL(probe.ends, 1);
            probe_finish();
        }
        fixed_free(f);
    }
}

static void matches_are_found_in_any_line(void)
{
    struct fixed *f = make_tagged("\"1\"");
    probe_begin(METHOD_GET);
    probe_add("accept", "*");
    probe_add("if-none-match", "\"0\"");
    probe_add("if-none-match", "\"1\"");
    fixed_serve(f, &probe.x);
    EQUAL(probe.x.status, 304);
    probe_finish();
    fixed_free(f);
}

static void not_modified_says_what_it_must(void)
{
    struct fixed *f = make_tagged("\"1\"");
    get(f, METHOD_HEAD, "\"1\"");
    CHECK(strncmp(probe.head, "HTTP/1.1 304 Not Modified\r\n", 27) == 0);
    CHECK(slice_equals(field("etag"), SLICE("\"1\"")));
    CHECK(slice_equals(field("cache-control"), SLICE("max-age=60")));
    CHECK(slice_equals(field("vary"), SLICE("accept")));
    CHECK(slice_equals(field("expires"), SLICE("0")));
    CHECK(slice_equals(field("content-location"), SLICE("/a")));
    CHECK(!field("content-type").ptr && !field("content-length").ptr && !field("x-other").ptr);
    EQUAL(probe.body_len, 0);
    probe_finish();
    fixed_free(f);
}

static void head_is_get_without_body(void)
{
    for (size_t len = 5; len <= LARGE; len *= 60) {
        char head[sizeof probe.head];
        struct fixed *f = make(200, SLICE("text/plain"), slice_of(large, len));
        get(f, METHOD_GET, NULL);
        size_t head_len = probe.head_len;
        memcpy(head, probe.head, head_len);
        EQUAL(probe.body_len, len);
        probe_finish();
        get(f, METHOD_HEAD, NULL);
        CHECK(slice_equals(probe_head_text(), slice_of(head, head_len)));
        EQUAL(probe.body_len, 0);
        EQUAL(probe.content_length, len);
        EQUAL(probe.ends, 1);
        EQUAL(probe.x.bytes_out, 0);
        probe_finish();
        fixed_free(f);
    }
}

static void only_a_200_is_conditional(void)
{
    static const int statuses[] = {201, 404, 301};
    for (int i = 0; i < 3; i++) {
        struct fixed *f = make(statuses[i], SLICE("text/plain"), SLICE("x"));
        get(f, METHOD_GET, "*");
        EQUAL(probe.x.status, statuses[i]);
        EQUAL(probe.body_len, 1);
        EQUAL(field("etag").len > 0, statuses[i] < 300);
        probe_finish();
        fixed_free(f);
    }
}

static void a_204_has_no_body(void)
{
    struct fixed *f = fixed_new(204, NULL, SLICE("dropped"));
    get(f, METHOD_GET, NULL);
    CHECK(slice_equals(probe_head_text(), SLICE("HTTP/1.1 204 No Content\r\n")));
    EQUAL(probe.body_len, 0);
    probe_finish();
    fixed_free(f);
}

static void large_bodies_are_shared(void)
{
    static const size_t lens[] = {0, 16384, 16385, LARGE};
    for (int i = 0; i < 4; i++) {
        struct fixed *f = make(200, SLICE("text/plain"), slice_of(large, lens[i]));
        get(f, METHOD_GET, NULL);
        EQUAL(probe.payloads, lens[i] > 16384);
        CHECK(slice_equals(probe_body_text(), slice_of(large, lens[i])));
        probe_finish();
        fixed_free(f);
    }
}

static void serving_allocates_nothing(void)
{
    struct fixed *little = make_tagged("\"1\"");
    struct fixed *big = make(200, SLICE("text/plain"), slice_of(large, LARGE));
    unsigned long before = mem_count();
    for (int i = 0; i < 3; i++) {
        get(little, METHOD_GET, "\"0\", \"2\"");
        get(little, METHOD_GET, "\"0\", \"1\"");
        get(little, METHOD_HEAD, NULL);
        get(big, METHOD_GET, NULL);
    }
    EQUAL(mem_count() - before, 0);
    CHECK(before > 0);
    fixed_free(little);
    fixed_free(big);
}

static void every_allocation_may_fail(void)
{
    for (size_t len = 5; len <= LARGE; len *= 60) {
        struct fixed *f = NULL;
        for (long n = 0; n < 50 && !f; n++) {
            mem_fail_after(n);
            f = make(200, SLICE("text/plain"), slice_of(large, len));
            mem_fail_after(-1);
            CHECK(f || n < 49);
            CHECK(!f || n > 1);
        }
        fixed_free(f);
    }
}

int main(void)
{
    static const struct report_case cases[] = {
        {"a reply is whole", a_reply_is_whole},
        {"the ETag is of type and body", the_etag_is_of_type_and_body},
        {"If-None-Match is a list that compares weakly", matches_are_found},
        {"If-None-Match may come in several lines", matches_are_found_in_any_line},
        {"a 304 says what it must, and no more", not_modified_says_what_it_must},
        {"HEAD is GET without the body", head_is_get_without_body},
        {"only a 200 is conditional", only_a_200_is_conditional},
        {"a 204 has no body", a_204_has_no_body},
        {"large bodies are shared, small ones copied", large_bodies_are_shared},
        {"serving allocates nothing", serving_allocates_nothing},
        {"every allocation may fail", every_allocation_may_fail},
        {0},
    };
    uint32_t seed = 1;
    for (size_t i = 0; i < LARGE; i++) large[i] = (char)('a' + report_random(&seed) % 26);
    return report_run(cases);
}
