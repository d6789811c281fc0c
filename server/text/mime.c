#include "text/mime.h"

#include "text/headers.h"

enum { MIME_EXTENSION = 12 };

struct mime_type {
    const char *extension;
    struct slice type;
};

#define MIME_TEXT(subtype) SLICE_INIT("text/" subtype "; charset=utf-8")

static const struct mime_type mime_types[] = {
    {"html", MIME_TEXT("html")},
    {"css", MIME_TEXT("css")},
    {"js", MIME_TEXT("javascript")},
    {"json", SLICE_INIT("application/json")},
    {"png", SLICE_INIT("image/png")},
    {"svg", SLICE_INIT("image/svg+xml")},
    {"jpg", SLICE_INIT("image/jpeg")},
    {"webp", SLICE_INIT("image/webp")},
    {"woff2", SLICE_INIT("font/woff2")},
    {"ico", SLICE_INIT("image/x-icon")},
    {"txt", MIME_TEXT("plain")},
    {"mjs", MIME_TEXT("javascript")},
    {"map", SLICE_INIT("application/json")},
    {"wasm", SLICE_INIT("application/wasm")},
    {"7z", SLICE_INIT("application/x-7z-compressed")},
    {"aac", SLICE_INIT("audio/aac")},
    {"apng", SLICE_INIT("image/apng")},
    {"atom", SLICE_INIT("application/atom+xml")},
    {"avif", SLICE_INIT("image/avif")},
    {"bmp", SLICE_INIT("image/bmp")},
    {"br", SLICE_INIT("application/x-brotli")},
    {"bz2", SLICE_INIT("application/x-bzip2")},
    {"csv", MIME_TEXT("csv")},
    {"doc", SLICE_INIT("application/msword")},
    {"docx", SLICE_INIT("application/vnd.openxmlformats-officedocument.wordprocessingml.document")},
    {"eot", SLICE_INIT("application/vnd.ms-fontobject")},
    {"epub", SLICE_INIT("application/epub+zip")},
    {"flac", SLICE_INIT("audio/flac")},
    {"geojson", SLICE_INIT("application/geo+json")},
    {"gif", SLICE_INIT("image/gif")},
    {"gz", SLICE_INIT("application/gzip")},
    {"heic", SLICE_INIT("image/heic")},
    {"htm", MIME_TEXT("html")},
    {"ics", MIME_TEXT("calendar")},
    {"jar", SLICE_INIT("application/java-archive")},
    {"jpeg", SLICE_INIT("image/jpeg")},
    {"jsonld", SLICE_INIT("application/ld+json")},
    {"jxl", SLICE_INIT("image/jxl")},
    {"log", MIME_TEXT("plain")},
    {"lua", MIME_TEXT("x-lua")},
    {"m3u8", SLICE_INIT("application/vnd.apple.mpegurl")},
    {"m4a", SLICE_INIT("audio/mp4")},
    {"md", MIME_TEXT("markdown")},
    {"mp3", SLICE_INIT("audio/mpeg")},
    {"mp4", SLICE_INIT("video/mp4")},
    {"mpeg", SLICE_INIT("video/mpeg")},
    {"ndjson", SLICE_INIT("application/x-ndjson")},
    {"odp", SLICE_INIT("application/vnd.oasis.opendocument.presentation")},
    {"ods", SLICE_INIT("application/vnd.oasis.opendocument.spreadsheet")},
    {"odt", SLICE_INIT("application/vnd.oasis.opendocument.text")},
    {"oga", SLICE_INIT("audio/ogg")},
    {"ogg", SLICE_INIT("audio/ogg")},
    {"ogv", SLICE_INIT("video/ogg")},
    {"opus", SLICE_INIT("audio/ogg")},
    {"otf", SLICE_INIT("font/otf")},
    {"pdf", SLICE_INIT("application/pdf")},
    {"ppt", SLICE_INIT("application/vnd.ms-powerpoint")},
    {"pptx",
     SLICE_INIT("application/vnd.openxmlformats-officedocument.presentationml.presentation")},
    {"rss", SLICE_INIT("application/rss+xml")},
    {"rtf", SLICE_INIT("application/rtf")},
    {"tar", SLICE_INIT("application/x-tar")},
    {"tif", SLICE_INIT("image/tiff")},
    {"tiff", SLICE_INIT("image/tiff")},
    {"toml", SLICE_INIT("application/toml")},
    {"ts", SLICE_INIT("video/mp2t")},
    {"ttf", SLICE_INIT("font/ttf")},
    {"vtt", MIME_TEXT("vtt")},
    {"wav", SLICE_INIT("audio/wav")},
    {"weba", SLICE_INIT("audio/webm")},
    {"webm", SLICE_INIT("video/webm")},
    {"webmanifest", SLICE_INIT("application/manifest+json")},
    {"woff", SLICE_INIT("font/woff")},
    {"xhtml", SLICE_INIT("application/xhtml+xml")},
    {"xls", SLICE_INIT("application/vnd.ms-excel")},
    {"xlsx", SLICE_INIT("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")},
    {"xml", SLICE_INIT("application/xml")},
    {"yaml", SLICE_INIT("application/yaml")},
    {"yml", SLICE_INIT("application/yaml")},
    {"zip", SLICE_INIT("application/zip")},
    {"zst", SLICE_INIT("application/zstd")},
};

static struct slice mime_extension(struct slice name)
{
    size_t at = name.len;
    while (at && name.ptr[at - 1] != '.' && name.ptr[at - 1] != '/') at--;
    bool has_dot = at && name.ptr[at - 1] == '.';
    return has_dot ? slice_from(name, at) : (struct slice){0};
}

struct slice mime_of_name(struct slice file_name)
{
    struct slice extension = mime_extension(file_name);
    if (extension.len && extension.len < MIME_EXTENSION) {
        for (size_t i = 0; i < sizeof mime_types / sizeof *mime_types; i++) {
            if ((extension.ptr[0] | 0x20) != mime_types[i].extension[0]) continue;
            struct slice known = slice_of_text(mime_types[i].extension);
            if (slice_equals_nocase(known, extension)) return mime_types[i].type;
        }
    }
    return SLICE("application/octet-stream");
}

struct slice mime_essence(struct slice content_type)
{
    const char *end = content_type.len ? memchr(content_type.ptr, ';', content_type.len) : NULL;
    if (end) content_type.len = (size_t)(end - content_type.ptr);
    return slice_trim(content_type);
}

bool mime_is_json(struct slice content_type)
{
    struct slice essence = mime_essence(content_type), suffix = SLICE("+json");
    if (slice_equals_nocase(essence, SLICE("application/json"))) return true;
    const char *slash = essence.len ? memchr(essence.ptr, '/', essence.len) : NULL;
    if (!slash || slash == essence.ptr) return false;
    struct slice subtype = slice_from(essence, (size_t)(slash + 1 - essence.ptr));
    if (subtype.len <= suffix.len || !headers_is_name(subtype)) return false;
    return slice_equals_nocase(slice_from(subtype, subtype.len - suffix.len), suffix);
}

// The value that `text` begins with: *len is how much of the text it takes with its quotes. False
// when a quote is left open.
static bool mime_read_value(struct slice text, struct slice *value, size_t *len)
{
    size_t at = 0;
    if (!text.len || text.ptr[0] != '"') {
        while (at < text.len && text.ptr[at] != ';') at++;
        *value = slice_trim(slice_of(text.ptr, at));
        *len = at;
        return true;
    }
    for (at = 1; at < text.len && text.ptr[at] != '"'; at++) at += text.ptr[at] == '\\';
    if (at >= text.len) return false;
    *value = slice_of(text.ptr + 1, at - 1);
    *len = at + 1;
    return true;
}

bool mime_parameter(struct slice content_type, struct slice name, struct slice *value)
{
    struct slice rest = content_type;
    const char *next;
    while (rest.len && (next = memchr(rest.ptr, ';', rest.len))) {
        rest = slice_trim(slice_from(rest, (size_t)(next + 1 - rest.ptr)));
        size_t len = 0;
        while (len < rest.len && rest.ptr[len] != '=' && rest.ptr[len] != ';') len++;
        if (len == rest.len || rest.ptr[len] == ';') {
            rest = slice_from(rest, len);
            continue;
        }
        struct slice found = slice_of(rest.ptr, len), text;
        rest = slice_from(rest, len + 1);
        if (!mime_read_value(rest, &text, &len)) return false;
        rest = slice_from(rest, len);
        if (!slice_equals_nocase(found, name)) continue;
        *value = text;
        return true;
    }
    return false;
}
