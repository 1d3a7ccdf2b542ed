#include "config.h"

#include "server/openapi.h"

#include <stdio.h>

#include "server/routes.h"

#define JSON_TYPE "application/json"
#define BYTES_TYPE "application/octet-stream"
#define PROBLEM_TYPE "application/problem+json"

static void ref_json(vv_json *j, const char *kind, const char *name)
{
    char text[96];
    snprintf(text, sizeof text, "#/components/%s/%s", kind, name);
    vv_json_obj(j);
    vv_json_kv_cstr(j, "$ref", text);
    vv_json_end_obj(j);
}

static void kv_ref(vv_json *j, const char *key, const char *kind, const char *name)
{
    vv_json_key(j, key);
    ref_json(j, kind, name);
}

static void number_schema(vv_json *j, const vv_route_param *p)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "type", "integer");
    vv_json_key(j, "minimum");
    vv_json_u64_full(j, p->min);
    vv_json_key(j, "maximum");
    vv_json_u64_full(j, p->max);
    vv_json_end_obj(j);
}

static void words_schema(vv_json *j, const char *words)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "type", "string");
    vv_json_kv_arr(j, "enum");
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        vv_json_str(j, (vv_str){p, n});
        p += n + (p[n] == ' ');
    }
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

static void text_schema(vv_json *j, const char *pattern)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "type", "string");
    if (pattern)
        vv_json_kv_cstr(j, "pattern", pattern);
    vv_json_end_obj(j);
}

static void value_schema(vv_json *j, const vv_route_param *p)
{
    if (p->max)
        number_schema(j, p);
    else if (p->words)
        words_schema(j, p->words);
    else
        text_schema(j, p->pattern);
}

static void list_schema(vv_json *j, const vv_route_param *p)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "type", "array");
    vv_json_key(j, "items");
    value_schema(j, p);
    vv_json_end_obj(j);
}

static void param_json(vv_json *j, const vv_route_param *p)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "name", p->name);
    vv_json_kv_cstr(j, "in", "query");
    if (p->what)
        vv_json_kv_cstr(j, "description", p->what);
    if (p->required)
        vv_json_kv_bool(j, "required", true);
    vv_json_key(j, "schema");
    if (p->several || p->repeatable) {
        list_schema(j, p);
        vv_json_kv_cstr(j, "style", "form");
        vv_json_kv_bool(j, "explode", p->repeatable);
    } else {
        value_schema(j, p);
    }
    vv_json_end_obj(j);
}

/* The parameters that stand in the path. */
static void path_params(vv_json *j, const char *path)
{
    for (const char *p = path; (p = strchr(p, '{')) != NULL; p++) {
        vv_json_obj(j);
        vv_json_key(j, "name");
        vv_json_str(j, (vv_str){p + 1, strcspn(p, "}") - 1});
        vv_json_kv_cstr(j, "in", "path");
        vv_json_kv_bool(j, "required", true);
        vv_json_key(j, "schema");
        text_schema(j, NULL);
        vv_json_end_obj(j);
    }
}

static void body_json(vv_json *j, const char *description, const char *type, const char *schema, bool tagged)
{
    vv_json_obj(j);
    vv_json_kv_cstr(j, "description", description);
    vv_json_kv_obj(j, "headers");
    if (tagged)
        kv_ref(j, "ETag", "headers", "ETag");
    kv_ref(j, "Server-Timing", "headers", "Server-Timing");
    vv_json_end_obj(j);
    vv_json_kv_obj(j, "content");
    vv_json_kv_obj(j, type);
    if (schema)
        kv_ref(j, "schema", "schemas", schema);
    vv_json_end_obj(j);
    vv_json_end_obj(j);
    vv_json_end_obj(j);
}

/* One object, or a stream of them. */
static void follow_json(vv_json *j, const vv_route *r)
{
    static const char *const streams[] = {"text/event-stream", "application/x-ndjson"};
    vv_json_obj(j);
    vv_json_kv_cstr(j, "description", r->answers);
    vv_json_kv_obj(j, "content");
    vv_json_kv_obj(j, JSON_TYPE);
    kv_ref(j, "schema", "schemas", r->schema);
    vv_json_end_obj(j);
    for (size_t i = 0; i < VV_ARRAY_LEN(streams); i++) {
        vv_json_kv_obj(j, streams[i]);
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
    vv_json_end_obj(j);
}

static void responses_json(vv_json *j, const vv_route *r)
{
    vv_json_kv_obj(j, "responses");
    vv_json_key(j, "200");
    if (r->follow)
        follow_json(j, r);
    else
        body_json(j, r->answers, r->schema ? JSON_TYPE : BYTES_TYPE, r->schema, !r->untagged);
    if (r->raw) {
        vv_json_key(j, "206");
        body_json(j, "the range that was asked for", BYTES_TYPE, NULL, true);
    }
    if (!r->follow && !r->untagged)
        kv_ref(j, "304", "responses", "Unchanged");
    kv_ref(j, "4XX", "responses", "Problem");
    kv_ref(j, "5XX", "responses", "Problem");
    vv_json_end_obj(j);
}

static void operation_json(vv_json *j, const vv_route *r, const char *method)
{
    vv_json_kv_obj(j, method);
    vv_json_kv_cstr(j, "summary", r->answers);
    vv_json_kv_arr(j, "parameters");
    path_params(j, r->path);
    for (const vv_route_param *p = r->params; p && p->name; p++)
        param_json(j, p);
    vv_json_end_arr(j);
    responses_json(j, r);
    vv_json_end_obj(j);
}

/* The one path outside the table: a page for browsers, and words for anybody else. */
static void root_json(vv_json *j)
{
    static const char *const types[] = {"text/plain", "text/html"};
    vv_json_kv_obj(j, "/");
    vv_json_kv_obj(j, "get");
    vv_json_kv_cstr(j, "summary", "the dashboard for a browser, else plain text with lines to try");
    vv_json_kv_obj(j, "responses");
    vv_json_kv_obj(j, "200");
    vv_json_kv_cstr(j, "description", "text");
    vv_json_kv_obj(j, "content");
    for (size_t i = 0; i < VV_ARRAY_LEN(types); i++) {
        vv_json_kv_obj(j, types[i]);
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
    vv_json_end_obj(j);
    kv_ref(j, "304", "responses", "Unchanged");
    kv_ref(j, "4XX", "responses", "Problem");
    kv_ref(j, "5XX", "responses", "Problem");
    vv_json_end_obj(j);
    vv_json_end_obj(j);
    vv_json_end_obj(j);
}

static void info_json(vv_json *j)
{
    vv_json_kv_obj(j, "info");
    vv_json_kv_cstr(j, "title", "Varve");
    vv_json_kv_cstr(j, "summary", "What recorded programs did: exact calls, times, errors and values");
    vv_json_kv_cstr(j, "version", PACKAGE_VERSION);
    vv_json_end_obj(j);
}

void vv_page_openapi(vv_json *j, const vv_page_facts *facts)
{
    (void)facts;
    vv_json_obj(j);
    vv_json_kv_cstr(j, "openapi", "3.1.0");
    info_json(j);
    vv_json_kv_obj(j, "paths");
    root_json(j);
    for (size_t i = 0; i < vv_route_count; i++) {
        vv_json_kv_obj(j, vv_routes[i].path);
        operation_json(j, &vv_routes[i], "get");
        operation_json(j, &vv_routes[i], "head");
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
    vv_json_key(j, "components");
    vv_json_raw(j, (vv_str){vv_openapi_components, vv_openapi_components_len});
    /* A token is only asked for by a server that was started with one. */
    vv_json_kv_arr(j, "security");
    vv_json_obj(j);
    vv_json_end_obj(j);
    vv_json_obj(j);
    vv_json_kv_arr(j, "token");
    vv_json_end_arr(j);
    vv_json_end_obj(j);
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}
