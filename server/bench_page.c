#include "bench_page.h"

#include <stdarg.h>
#include <stdio.h>

enum { PAGE_PIECE = 1024 };

void bench_page_add(struct bench_page *p, const char *format, ...)
{
    char piece[PAGE_PIECE];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    if (len < 0 || len >= PAGE_PIECE) p->has_failed = true;
    if (!p->has_failed && !buf_append(p->to, piece, (size_t)len)) p->has_failed = true;
}

static const char *page_escape(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default: return NULL;
    }
}

void bench_page_text(struct bench_page *p, struct slice text)
{
    for (size_t i = 0; i < text.len && !p->has_failed; i++) {
        const char *escaped = page_escape(text.ptr[i]);
        if (!(escaped ? buf_append(p->to, escaped, strlen(escaped))
                      : buf_append(p->to, text.ptr + i, 1)))
            p->has_failed = true;
    }
}

static void page_add_whole(struct bench_page *p, const char *text)
{
    if (!p->has_failed && !buf_append(p->to, text, strlen(text))) p->has_failed = true;
}

static const char page_style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2330;--soft:#5c6778;"
    "--line:#dfe3ea;--main:#2563c9;--fill:#2563c92e;--mark:#c2410c;--warn:#fff3df;--bad:#b42318}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#12161d;--card:#1a202a;--ink:#e6e9ef;"
    "--soft:#98a3b5;--line:#2d3644;--main:#6ea8ff;--fill:#6ea8ff33;--mark:#ff9a5c;--warn:#3a2d14;"
    "--bad:#ff8a80}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:1.5rem 1rem 3rem}\n"
    "h1{font-size:1.35rem;line-height:1.3;margin:0;overflow-wrap:anywhere;font-weight:650}\n"
    "h2{font-size:1.05rem;margin:0 0 .75rem;font-weight:650}\n"
    ".about{color:var(--soft);margin:.35rem 0 1.25rem}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;"
    "margin:0 0 1rem}\n"
    ".tiles div,section,figure{background:var(--card);border:1px solid var(--line);"
    "border-radius:10px}\n"
    ".tiles div{padding:.8rem 1rem}\n"
    ".tiles dt{color:var(--soft);font-size:.85rem}\n"
    ".tiles dd{margin:.1rem 0 0;font-size:1.45rem;line-height:1.25;font-weight:650;"
    "font-variant-numeric:tabular-nums}\n"
    ".tiles .bad{color:var(--bad)}\n"
    "section{padding:1rem;margin:0 0 1rem}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));"
    "gap:1rem;margin:0 0 1rem}\n"
    "figure{margin:0;padding:1rem 1.4rem 1rem 1rem;min-width:0}\n"
    "figcaption{margin:0 0 1.5rem}\n"
    "figcaption b{font-weight:650}\n"
    "figcaption span{color:var(--soft);font-size:.85rem;display:block}\n"
    ".plot{position:relative;height:210px;margin:0 0 1.7rem 3.9rem}\n"
    ".plot svg{display:block;width:100%;height:100%;overflow:visible}\n"
    ".plot line,.plot path{vector-effect:non-scaling-stroke;fill:none}\n"
    ".plot .grid{stroke:var(--line)}.plot .axis{stroke:var(--soft)}\n"
    ".plot .bar{fill:var(--main)}.plot .bar:hover{fill:var(--mark)}\n"
    ".plot .curve{stroke:var(--main);stroke-width:2;stroke-linejoin:round}\n"
    ".plot .area{fill:var(--fill);stroke:none}\n"
    ".plot .mark{stroke:var(--mark);stroke-dasharray:4 3}\n"
    ".plot .hit{fill:transparent}.plot .hit:hover{fill:var(--fill)}\n"
    ".plot span{position:absolute;color:var(--soft);font-size:.75rem;line-height:1;"
    "white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    ".plot .y{right:calc(100% + .5rem);transform:translateY(50%)}\n"
    ".plot .x{top:calc(100% + .5rem);transform:translateX(-50%)}\n"
    ".plot .m{bottom:calc(100% + .25rem);transform:translateX(-50%);color:var(--mark)}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}\n"
    "th,td{text-align:right;padding:.35rem .6rem;border-bottom:1px solid var(--line)}\n"
    "th{color:var(--soft);font-weight:500;font-size:.85rem}\n"
    "th:first-child,td:first-child{text-align:left;padding-left:0}\n"
    "td.long{text-align:left;white-space:normal;overflow-wrap:anywhere}\n"
    "tr:last-child td{border-bottom:0}\n"
    ".warn{background:var(--warn)}\n"
    "section p{margin:0}footer{color:var(--soft);font-size:.85rem}\n";

void bench_page_begin(struct bench_page *p, struct slice title)
{
    page_add_whole(p, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                      "<title>");
    bench_page_text(p, title);
    page_add_whole(p, "</title>\n<style>\n");
    page_add_whole(p, page_style);
    page_add_whole(p, "</style>\n<main>\n");
}

void bench_page_end(struct bench_page *p)
{
    page_add_whole(p, "</main>\n</html>\n");
}
