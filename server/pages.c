#include "config.h"

#include "server/pages.h"

#include "server/routes.h"
#include "views/flame.h"

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
    static const char *const features[] = {"executions", "functions", "flame", "spans", "errors", "threads",
                                           "contexts", "search", "values", "as_of", "live"};
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
    vv_json_kv_u64(j, "page", 1000);
    vv_json_kv_u64(j, "flame_nodes", VV_FLAME_MAX_NODES_LIMIT);
    vv_json_kv_u64(j, "issues", VV_EVIDENCE_ISSUES);
    vv_json_kv_u64(j, "value_body_bytes", VV_VALUE_BODY_MAX);
    vv_json_kv_u64(j, "value_json_bytes", VV_VALUE_BYTES_MAX);
    vv_json_end_obj(j);
    words_json(j, "encodings", encodings, VV_ARRAY_LEN(encodings));
    words_json(j, "features", features, VV_ARRAY_LEN(features));
    vv_json_end_obj(j);
}

static void line(vv_wr *w, const char *before, const char *base, const char *after)
{
    vv_wr_bytes(w, before, strlen(before));
    vv_wr_bytes(w, base, strlen(base));
    vv_wr_bytes(w, after, strlen(after));
}

void vv_page_text(vv_wr *w, const vv_page_facts *facts)
{
    line(w, "varve " PACKAGE_VERSION ": shows what recorded programs did. Open ", facts->base,
         "/ in a browser, or ask here:\n\n");
    line(w, "  curl -s '", facts->base, "/api/v1/meta'\n");
    line(w, "  curl -s '", facts->base, "/api/v1/executions'\n");
    line(w, "  curl -s '", facts->base, "/api/v1/executions/latest'\n");
    line(w, "  curl -s '", facts->base, "/api/v1/functions?execution=latest&sort=self_ns&limit=10'\n");
    line(w, "  curl -s '", facts->base, "/api/v1/flame?execution=latest&metric=inclusive_ns&width=1200'\n");
    line(w, "  curl -s '", facts->base, "/api/v1/streams'\n");
    if (!facts->has_store)
        line(w, "\nThere is no store yet. Record a program (`varve-lua SCRIPT`, or any program that uses libvarve); ",
             "this server shows it", " as soon as it is there.\n");
}
