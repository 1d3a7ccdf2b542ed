#include "config.h"

#include "server/pages.h"

#include "server/hub.h"
#include "server/routes.h"
#include "views/flame.h"
#include "views/listing.h"

void vv_page_index(vv_json *j, const vv_page_facts *facts)
{
    char text[512];
    (void)facts;
    vv_json_obj(j);
    vv_json_kv_cstr(j, "api", "v1");
    vv_json_kv_arr(j, "resources");
    for (size_t i = 0; i < vv_route_count; i++) {
        vv_wr w = vv_wr_fixed(text, sizeof text);
        vv_route_template(&vv_routes[i], &w);
        vv_json_obj(j);
        vv_json_kv_cstr(j, "path", vv_routes[i].path);
        vv_json_key(j, "template");
        vv_json_str(j, (vv_str){text, w.len});
        vv_json_kv_cstr(j, "answers", vv_routes[i].answers);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

static void words_json(vv_json *j, const char *key, const char *const *words, size_t n)
{
    vv_json_kv_arr(j, key);
    for (size_t i = 0; i < n; i++)
        vv_json_cstr(j, words[i]);
    vv_json_end_arr(j);
}

void vv_page_meta(vv_json *j, const vv_page_facts *facts)
{
    static const char *const formats[] = {"profiles-v1", "tar", "tar.gz", "tar.zst", "zip"};
    static const char *const encodings[] = {"gzip", "zstd"};
    static const char *const features[] = {
        "executions", "functions", "flame", "bottom_up", "transforms", "callers",    "callees",    "contexts", "spans",
        "errors",     "threads",   "logs",  "values",    "search",     "checkpoint", "comparison", "merging",  "store",
        "segments",   "follow",    "as_of", "live"};
    vv_json_obj(j);
    vv_json_kv_cstr(j, "api", "v1");
    vv_json_kv_cstr(j, "version", PACKAGE_VERSION);
    vv_json_kv_cstr(j, "build", facts->build);
    vv_json_kv_obj(j, "store");
    vv_json_kv_cstr(j, "name", facts->store_name);
    vv_json_kv_bool(j, "present", facts->has_store);
    vv_json_end_obj(j);
    words_json(j, "formats", formats, VV_ARRAY_LEN(formats));
    vv_json_kv_arr(j, "segment_versions");
    vv_json_u64(j, VV_SEGMENT_VERSION);
    vv_json_end_arr(j);
    vv_json_kv_obj(j, "limits");
    vv_json_kv_u64(j, "page", VV_PAGE_MAX);
    vv_json_kv_u64(j, "executions", VV_QUERY_EXECUTIONS);
    vv_json_kv_u64(j, "transforms", VV_QUERY_TRANSFORMS);
    vv_json_kv_u64(j, "flame_nodes", VV_FLAME_MAX_NODES_LIMIT);
    vv_json_kv_u64(j, "issues", VV_EVIDENCE_ISSUES);
    vv_json_kv_u64(j, "value_body_bytes", VV_VALUE_BODY_MAX);
    vv_json_kv_u64(j, "value_json_bytes", VV_VALUE_BYTES_MAX);
    vv_json_kv_u64(j, "followers", facts->followers);
    vv_json_kv_u64(j, "follow_wait_seconds", VV_HUB_WAIT_MAX);
    vv_json_end_obj(j);
    words_json(j, "encodings", encodings, VV_ARRAY_LEN(encodings));
    words_json(j, "features", features, VV_ARRAY_LEN(features));
    vv_json_end_obj(j);
}

/* In single quotes for a shell. */
static void put_quoted(vv_wr *w, const char *text)
{
    vv_wr_cstr(w, "'");
    for (; *text; text++) {
        if (*text == '\'')
            vv_wr_cstr(w, "'\\'");
        vv_wr_u8(w, (uint8_t)*text);
    }
    vv_wr_cstr(w, "'");
}

static void line(vv_wr *w, const vv_page_facts *facts, const char *target)
{
    vv_wr_cstr(w, "  curl -s ");
    if (facts->socket) {
        vv_wr_cstr(w, "--unix-socket ");
        put_quoted(w, facts->socket);
        vv_wr_cstr(w, " ");
    }
    vv_wr_cstr(w, "'");
    vv_wr_cstr(w, facts->base);
    vv_wr_cstr(w, target);
    vv_wr_cstr(w, "'\n");
}

void vv_page_text(vv_wr *w, const vv_page_facts *facts)
{
    static const char *const targets[] = {
        "/api/v1/meta", "/api/v1/executions", "/api/v1/executions/latest",
        "/api/v1/functions?execution=latest&sort=self_ns&limit=10",
        "/api/v1/flame?execution=latest&metric=inclusive_ns&width=1200", "/api/v1/streams"};
    vv_wr_cstr(w, "varve " PACKAGE_VERSION ": shows what recorded programs did. ");
    if (facts->socket)
        vv_wr_cstr(w, "Ask here:\n\n");
    else {
        vv_wr_cstr(w, "Open ");
        vv_wr_cstr(w, facts->base);
        vv_wr_cstr(w, "/ in a browser, or ask here:\n\n");
    }
    for (size_t i = 0; i < VV_ARRAY_LEN(targets); i++)
        line(w, facts, targets[i]);
    if (!facts->has_store)
        vv_wr_cstr(w, "\nThere is no store yet. Record a program (`varve-lua SCRIPT`, or any program that uses "
                      "libvarve); this server shows it as soon as it is there.\n");
}
