#include "config.h"

#include <ctype.h>
#include <stdio.h>

#include "views/functions.h"
#include "views/search.h"
#include "views/spans.h"

enum { ITEMS_MAX = 256 << 20, HREF = 1024 };

/* Items are written while what they are of is at hand; what stands before them is known at the end. */
typedef struct {
    vv_wr w;
    vv_json j;
} item_list;

/* Appends a text to a query; false where it does not fit, or holds a NUL, which no query may. */
static bool escape(char out[HREF], vv_str text)
{
    size_t at = strlen(out);
    for (size_t i = 0; i < text.n && at + 4 < HREF; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == 0)
            return false;
        if (isalnum(c) || strchr("-._~", c))
            out[at++] = (char)c;
        else
            at += (size_t)snprintf(out + at, 4, "%%%02X", c);
        out[at] = 0;
        if (i + 1 == text.n)
            return true;
    }
    return text.n == 0;
}

/* Where the hit itself is, or null: of a function that no execution has, or whose name no query takes. */
static void href_json(vv_json *j, const vv_hit *h)
{
    char href[HREF], id[VV_THREAD_TEXT], text[VV_CAPTURE_TEXT];
    bool good = h->found != NULL;
    if (good)
        vv_thread_text(id, &h->found->execution->root);
    switch (good ? h->type : VV_HIT_TYPES) {
    case VV_HIT_FUNCTION:
        snprintf(href, sizeof href, "/api/v1/functions?execution=%s&q=", id);
        good = escape(href, h->function.def->fqn);
        break;
    case VV_HIT_EXECUTION:
        snprintf(href, sizeof href, "/api/v1/executions/%s", id);
        break;
    case VV_HIT_THREAD:
        vv_thread_text(text, &h->profile->fold->threads[h->at].thread);
        snprintf(href, sizeof href, "/api/v1/executions/%s/spans?thread=%s", id, text);
        break;
    case VV_HIT_ERROR:
        vv_capture_text(text, &h->profile->fold->errors[h->at].id);
        snprintf(href, sizeof href, "/api/v1/executions/%s/errors/%s", id, text);
        break;
    case VV_HIT_SPAN:
        vv_call_text(text, &h->profile->fold->spans[h->at].call);
        snprintf(href, sizeof href, "/api/v1/executions/%s/spans/%s", id, text);
        break;
    case VV_HIT_TYPES:
        break;
    }
    vv_json_kv_cstr(j, "href", good ? href : NULL);
}

static void execution_ids_json(vv_json *j, const vv_found *f)
{
    char short_id[VV_SHORT_ID];
    if (f)
        vv_short_id(short_id, &f->execution->root);
    vv_thread_id_json(j, "execution_id", f ? &f->execution->root : NULL);
    vv_json_kv_cstr(j, "execution_short_id", f ? short_id : NULL);
}

static void function_json(vv_json *j, const vv_hit *h)
{
    vv_function_fields_json(j, &h->function);
    vv_json_kv_u64(j, "executions", h->executions);
    execution_ids_json(j, h->found);
}

static void thread_json(vv_json *j, const vv_hit *h)
{
    const vv_fold_thread *t = &h->profile->fold->threads[h->at];
    char short_id[VV_PART_ID];
    vv_thread_short(short_id, &h->found->execution->root, &t->thread);
    execution_ids_json(j, h->found);
    vv_thread_id_json(j, "thread_id", &t->thread);
    vv_short_json(j, "short_id", short_id);
    vv_json_kv_str(j, "name", t->start.name);
    vv_json_kv_cstr(j, "state", vv_life_word(vv_life_of(h->found->execution, true, t->has_end)));
}

static void error_json(vv_json *j, const vv_hit *h)
{
    const vv_profile *p = h->profile;
    const vv_error_capture *e = &p->fold->errors[h->at];
    const vv_value_view value = vv_value_of(&e->value);
    char text[VV_CAPTURE_TEXT], short_id[VV_PART_ID];
    vv_capture_text(text, &e->id);
    vv_capture_short(short_id, &h->found->execution->root, &e->id);
    execution_ids_json(j, h->found);
    vv_json_kv_cstr(j, "error_id", text);
    vv_short_json(j, "short_id", short_id);
    vv_json_kv_cstr(j, "kind", vv_capture_kinds[e->kind]);
    vv_json_kv_cstr(j, "source", vv_capture_sources[e->source]);
    vv_function_id_json(j, p, "throw_", true, e->function_id);
    vv_site_json(j, p, "throw_site", e->has_site ? &e->site : NULL);
    vv_value_view_json(j, "value", &value);
}

static void span_json(vv_json *j, const vv_hit *h)
{
    const vv_fold_span *s = &h->profile->fold->spans[h->at];
    char text[VV_RUNTIME_TEXT];
    if (s->has_runtime_id)
        vv_runtime_text(text, &s->runtime_id);
    execution_ids_json(j, h->found);
    vv_span_brief_json(j, h->found, h->profile, s);
    vv_json_kv_cstr(j, "runtime_id", s->has_runtime_id ? text : NULL);
}

static void execution_json(vv_json *j, const vv_hit *h)
{
    vv_execution_fields_json(j, h->found, h->digest);
}

static void item_json(void *state, const vv_hit *h)
{
    static void (*const writers[VV_HIT_TYPES])(vv_json *, const vv_hit *) = {
        [VV_HIT_FUNCTION] = function_json, [VV_HIT_EXECUTION] = execution_json, [VV_HIT_THREAD] = thread_json,
        [VV_HIT_ERROR] = error_json,       [VV_HIT_SPAN] = span_json,
    };
    vv_json *j = &((item_list *)state)->j;
    vv_json_obj(j);
    vv_json_kv_cstr(j, "type", vv_hit_words[h->type]);
    vv_json_kv_cstr(j, "matched", h->matched);
    writers[h->type](j, h);
    href_json(j, h);
    vv_json_end_obj(j);
}

vv_code vv_view_search(vv_json *j, vv_query *q, vv_error *err)
{
    item_list items = {.w = vv_wr_growing(ITEMS_MAX)};
    vv_search_result r;
    items.j = vv_json_init(&items.w);
    vv_json_arr(&items.j);
    vv_code rc = vv_search(q, item_json, &items, &r, err);
    vv_json_end_arr(&items.j);
    if (rc == VV_OK)
        rc = vv_wr_error(&items.w, "answer", err);
    if (rc == VV_OK) {
        vv_head_json(j, q->look, &r.evidence, r.next[0], NULL);
        vv_json_kv_obj(j, "tables");
        vv_json_kv_u64(j, "searched", r.tables);
        vv_json_kv_u64(j, "unreadable", r.tables_unreadable);
        vv_json_end_obj(j);
        vv_json_key(j, "items");
        vv_json_raw(j, (vv_str){(const char *)items.w.buf, items.w.len});
        vv_json_kv_cstr(j, "next", r.next[0] ? r.next : NULL);
        vv_json_end_obj(j);
    }
    vv_wr_done(&items.w);
    vv_search_result_done(&r);
    return rc;
}
