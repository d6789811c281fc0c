-- The rooms of base and text as FFI sees them, with what their specs share: slices and buffers made
-- of Lua strings, and a way to fail each allocation in turn.
local ffi = require "ffi"
local lib = require "spec.lib"

local rooms = {}
local kept = {} -- slices borrow their bytes, so the strings must outlive them

-- Declarations that another spec has made before are passed over; each stands alone, between blank
-- lines.
local function declare(text)
  for piece in (text .. "\n\n"):gmatch "(.-)\n\n" do
    local ok, message = pcall(ffi.cdef, piece)
    if not ok and not message:find "attempt to redefine" then error(message, 2) end
  end
end

declare [[
void *malloc(size_t size);
void free(void *ptr);

struct slice { const char *ptr; size_t len; };

struct buf { char *ptr; size_t len, cap; };

struct arena_pool { struct arena_chunk *free[3]; unsigned count[3]; };

struct arena { struct arena_pool *pool; struct arena_chunk *chunks; char *next, *end; unsigned size; };

struct payload { uint32_t refs; uint8_t head_len, tail_len; size_t len; char bytes[?]; };

struct header { struct slice name, value; };

struct headers { struct header *items; uint32_t count, cap; };

struct request {
  int method;
  struct slice method_name, target, path, query, host;
  struct headers headers;
  int64_t content_length;
  bool is_http10, keep_alive, expects_continue;
};

struct reply { int status; int64_t content_length; struct headers headers; struct slice http1; };

struct http1_finish { struct slice date; bool close, keep_alive, chunked, server; };

struct sse_event {
  struct slice event, id, data, comment;
  bool has_data, has_id, has_comment;
  int64_t retry;
};

struct log_access { struct slice method, target, ip, id; int status; uint64_t bytes, micros; };

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *ptr, size_t size);
void mem_free(void *ptr);
unsigned long mem_count(void);
void mem_fail_rate(unsigned one_in, unsigned seed);
void mem_fail_after(long n);

char *buf_reserve_slow(struct buf *b, size_t extra);
bool buf_append_decimal(struct buf *b, uint64_t value);
bool buf_append_format(struct buf *b, const char *format, ...);
void buf_consume(struct buf *b, size_t n);
void buf_reset(struct buf *b);

void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
struct slice arena_copy(struct arena *a, struct slice s);
void arena_reset(struct arena *a);
void arena_pool_reset(struct arena_pool *pool);

struct payload *payload_new(size_t len);
struct payload *payload_new_copy(struct slice bytes);
void payload_release(struct payload *p);

bool log_open(int form, int least);
void log_close(void);
void log_write(int level, const char *format, ...);
void log_write_slice(int level, struct slice text);
void log_write_access(const struct log_access *entry);
uint64_t log_dropped(void);

const struct header *headers_find(const struct headers *h, struct slice name);
unsigned headers_count(const struct headers *h, struct slice name);
bool headers_add(struct headers *h, struct arena *a, struct slice name, struct slice value);
bool headers_is_name(struct slice s);
bool headers_is_value(struct slice s);
bool headers_has_token(struct slice value, struct slice token);

int message_method(struct slice name);
struct slice message_method_name(int m);
const char *message_reason(int status);
bool message_copy_request(struct request *to, const struct request *from, struct arena *a);

long url_decode(char *to, struct slice s, bool plus);
bool url_is_escaped_well(struct slice s);
bool url_next_pair(struct slice *rest, struct slice *name, struct slice *value);

void date_format(char *to, int64_t unix_seconds);
bool date_parse_at(struct slice text, int64_t now, int64_t *unix_seconds);
bool date_parse(struct slice text, int64_t *unix_seconds);

struct slice mime_of_name(struct slice file_name);
struct slice mime_essence(struct slice content_type);
bool mime_is_json(struct slice content_type);
bool mime_parameter(struct slice content_type, struct slice name, struct slice *value);

const char *sse_check(const struct sse_event *e);
bool sse_write(struct buf *to, const struct sse_event *e);
bool sse_write_data(struct buf *to, struct slice event, struct slice data);

bool http1_write_head(struct buf *to, const struct reply *reply);
bool http1_write_finish(struct buf *to, const struct http1_finish *f);
size_t http1_write_chunk_head(char *to, size_t len);
]]

rooms.c = lib.load()

-- A slice over an exact copy on the heap, so that a sanitizer sees every byte read beside it.
function rooms.slice(text)
  local bytes = ffi.gc(ffi.cast("char *", ffi.C.malloc(#text)), ffi.C.free)
  ffi.copy(bytes, text, #text)
  kept[#kept + 1] = bytes
  return ffi.new("struct slice", bytes, #text)
end

function rooms.text(slice)
  return ffi.string(slice.ptr, slice.len)
end

-- An empty struct buf that frees itself.
function rooms.buf()
  return ffi.gc(ffi.new "struct buf", rooms.c.buf_reset)
end

-- An empty arena that frees itself, without a pool.
function rooms.arena()
  return ffi.gc(ffi.new "struct arena", rooms.c.arena_reset)
end

-- Calls attempt() with the first allocation failing, then the second, and so on, until none fails.
-- attempt returns whether it succeeded. Returns how many allocations were failed; an attempt that
-- succeeds in spite of a failed allocation, or fails without one, is an error.
function rooms.fail_each(attempt)
  for n = 0, 1000 do
    local before = rooms.c.mem_count()
    rooms.c.mem_fail_after(n)
    local ok = attempt()
    rooms.c.mem_fail_after(-1)
    local has_failed = tonumber(rooms.c.mem_count() - before) > n
    assert(ok ~= has_failed, ok and "succeeded without memory" or "failed without reason")
    if ok then return n end
  end
  error "never succeeds"
end

return rooms
