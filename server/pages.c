#include "config.h"

#include "server/pages.h"

#include <stdio.h>

#include "views/flame.h"
#include "views/values.h"

static const struct {
    const char *path, *query, *answers;
} resources[] = {
    {"/api/v1", "", "this index"},
    {"/api/v1/meta", "", "versions, store, formats, limits, encodings, features"},
    {"/api/v1/streams", "{?limit,cursor,as_of}", "recorded processes"},
    {"/api/v1/streams/{euid}", "{?as_of}", "one recorded process"},
    {"/api/v1/executions", "{?status,q,since,until,stream,program,limit,cursor,as_of}", "executions, newest first"},
    {"/api/v1/executions/{id}", "{?as_of}", "one execution: states, issues, health, equations, totals"},
    {"/api/v1/executions/{id}/errors", "{?limit,cursor,as_of}", "recorded errors: where from, how often"},
    {"/api/v1/executions/{id}/errors/{error}", "{?as_of}", "one of them: value, stack, the calls it ended"},
    {"/api/v1/executions/{id}/threads", "{?limit,cursor,as_of}", "threads: spawned by what, from when to when"},
    {"/api/v1/executions/{id}/spans",
     "{?function,status,thread,context,reason,from,to,min_duration,order,limit,cursor,as_of}",
     "calls that were recorded one by one"},
    {"/api/v1/executions/{id}/spans/{call}", "{?as_of}", "one of them: values, error, parents, its context's totals"},
    {"/api/v1/functions", "{?execution,sort,q,limit,cursor,as_of}", "functions of an execution"},
    {"/api/v1/flame", "{?execution,metric,order,root,depth,width,max_nodes,edges,ids,as_of}",
     "calling contexts of an execution as a flat table"},
    {"/api/v1/values/{cid}", "{?path,max_bytes,max_depth}", "a captured value"},
    {"/api/v1/values/{cid}/raw", "", "its body as it is stored"},
    {"/api/v1/values/{cid}/uses", "{?limit,cursor,as_of}", "where it was captured, in all executions"},
};

void vv_page_index(vv_json *j, const vv_page_facts *facts)
{
    char text[256];
    (void)facts;
    vv_json_obj(j);
    vv_json_kv_cstr(j, "api", "v1");
    vv_json_kv_arr(j, "resources");
    for (size_t i = 0; i < VV_ARRAY_LEN(resources); i++) {
        snprintf(text, sizeof text, "%s%s", resources[i].path, resources[i].query);
        vv_json_obj(j);
        vv_json_kv_cstr(j, "path", resources[i].path);
        vv_json_kv_cstr(j, "template", text);
        vv_json_kv_cstr(j, "answers", resources[i].answers);
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
    static const char *const features[] = {"executions", "functions", "flame", "spans", "errors", "threads", "values",
                                           "as_of", "live"};
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
