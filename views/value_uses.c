#include "config.h"

#include <stdlib.h>

#include "views/facts.h"
#include "views/listing.h"
#include "views/values.h"

enum { ITEMS_MAX = 256 << 20, GROUP_MAX = 1 << 30 };

/* What a value stands in: the order of a page inside of an execution. */
typedef enum { USE_SPAN, USE_ERROR, USE_LOG, USE_SCOPE } use_kind;

/* Where: by kind, then by call, capture or number, then by part. */
enum { USE_KEY = 1 + 40 + 1, CURSOR = VV_FOUND_PLACE + USE_KEY };
typedef struct {
    vv_query *q;
    vv_cid cid;
    uint64_t left; /* of the page */
    bool has_after, more;
    uint8_t after[CURSOR], last[CURSOR];
    vv_page found; /* in one execution: rows are places in the fold's list of the kind */
    vv_value_use_fn *tell;
    void *state;
    vv_evidence *evidence;
} search;

static void offer(search *s, use_kind kind, const uint8_t *id, size_t n, uint8_t part, size_t at)
{
    uint8_t key[USE_KEY] = {(uint8_t)kind};
    memcpy(key + 1, id, n);
    key[USE_KEY - 1] = part;
    vv_page_offer(&s->found, key, (uint32_t)at);
}

static bool is_it(const search *s, const vv_value_state *v)
{
    return !v->lost && memcmp(&v->cid, &s->cid, sizeof s->cid) == 0;
}

/* The uses in a fold that come after a key (may be NULL): as many as the page has room for, and one more. */
static void find_uses(search *s, const vv_fold *f, const uint8_t *after)
{
    uint8_t number[8];
    vv_page_again(&s->found, s->left + 1, after);
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *x = &f->spans[i];
        if (x->has_input && is_it(s, &x->input))
            offer(s, USE_SPAN, x->call.b, sizeof x->call.b, 0, i);
        if (x->has_output && is_it(s, &x->output))
            offer(s, USE_SPAN, x->call.b, sizeof x->call.b, 1, i);
    }
    for (size_t i = 0; i < f->error_count; i++)
        if (is_it(s, &f->errors[i].value))
            offer(s, USE_ERROR, f->errors[i].id.b, sizeof f->errors[i].id.b, 0, i);
    for (size_t i = 0; i < f->log_count; i++) {
        vv_put64(number, i);
        if (is_it(s, &f->logs[i].context))
            offer(s, USE_LOG, number, sizeof number, 0, i);
        if (is_it(s, &f->logs[i].data))
            offer(s, USE_LOG, number, sizeof number, 1, i);
    }
    for (size_t i = 0; i < f->scope_count; i++) {
        vv_put64(number, i);
        if (is_it(s, &f->scopes[i].context))
            offer(s, USE_SCOPE, number, sizeof number, 0, i);
    }
    vv_page_order(&s->found);
}

static vv_value_use span_facts(const vv_fold_span *x, bool output)
{
    return (vv_value_use){.role = output ? "output" : "input", .call = &x->call, .has_function = x->has_start,
                          .function = x->start.function_id, .context = x->has_start ? &x->start.context : NULL,
                          .value = output ? &x->output : &x->input};
}

static vv_value_use error_facts(const vv_error_capture *e)
{
    return (vv_value_use){.role = "error", .call = &e->throw_call, .capture = &e->id, .has_function = true,
                          .function = e->function_id, .context = &e->context, .value = &e->value};
}

static vv_value_use log_facts(const vv_log_event *l, uint64_t at, bool data)
{
    return (vv_value_use){.role = data ? "log_data" : "log_context", .call = l->has_call ? &l->call : NULL,
                          .has_log = true, .log = at, .value = data ? &l->data : &l->context};
}

static vv_value_use use_of(const vv_fold *f, const vv_page_item *u)
{
    bool second = u->key[USE_KEY - 1];
    switch ((use_kind)u->key[0]) {
    case USE_SPAN:
        return span_facts(&f->spans[u->row], second);
    case USE_ERROR:
        return error_facts(&f->errors[u->row]);
    case USE_LOG:
        return log_facts(&f->logs[u->row], u->row, second);
    case USE_SCOPE:
        break;
    }
    const vv_call_scope *c = &f->scopes[u->row];
    return (vv_value_use){.role = "scope_context", .call = &c->call, .value = &c->context};
}

/* Tells of the uses in one loaded execution, until the page is full. */
static void take_uses(search *s, const vv_found *f, const vv_profile *p, const uint8_t position[VV_FOUND_PLACE],
                      const uint8_t *after)
{
    find_uses(s, p->fold, after);
    for (size_t i = 0; i < s->found.count; i++) {
        if (s->left == 0) {
            s->more = true;
            return;
        }
        const vv_value_use u = use_of(p->fold, &s->found.items[i]);
        s->tell(s->state, f, p, &u);
        memcpy(s->last, position, VV_FOUND_PLACE);
        memcpy(s->last + VV_FOUND_PLACE, s->found.items[i].key, USE_KEY);
        s->left--;
    }
}

/* Loads an execution only where its facts name the value; what is known of its evidence counts all the same. */
static vv_code search_one(search *s, const vv_found *f, const uint8_t position[VV_FOUND_PLACE], const uint8_t *after,
                          vv_error *err)
{
    bool named;
    vv_loaded x = {0};
    vv_query *q = s->q;
    vv_code rc = vv_execution_mentions(&named, q->look->store, f->stream, f->execution, &s->cid, sizeof s->cid,
                                       GROUP_MAX, err);
    if (rc == VV_OK)
        rc = vv_library_digest(q->library, q->look, f->stream, f->execution, &x.digest, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_evidence_merge(s->evidence, &x.digest->evidence, err);
    if (rc == VV_OK && named && x.digest->known)
        rc = vv_library_profile(q->library, q->look, f->stream, f->execution, &x.profile, err);
    if (rc == VV_ERR_LIMIT) {
        vv_error_clear(err);
        rc = vv_evidence_refused(s->evidence, f->execution, err);
    }
    if (rc == VV_OK && x.profile && !x.profile->fold->failed)
        take_uses(s, f, x.profile, position, after);
    vv_loaded_release(q->library, &x);
    return rc;
}

static vv_code search_all(search *s, vv_error *err)
{
    const vv_order *o;
    vv_code rc = vv_library_order(s->q->library, s->q->look, &o, err);
    if (rc != VV_OK)
        return rc;
    for (size_t i = 0; i < o->count && rc == VV_OK && !s->more; i++) {
        uint8_t position[VV_FOUND_PLACE];
        vv_found_place(position, &o->items[i]);
        int c = s->has_after ? memcmp(position, s->after, VV_FOUND_PLACE) : -1;
        if (c <= 0)
            rc = search_one(s, &o->items[i], position, c == 0 ? s->after + VV_FOUND_PLACE : NULL, err);
    }
    vv_order_unref(o);
    return rc == VV_OK ? vv_evidence_unreadable(s->evidence, s->q->look, err) : rc;
}

/* The name that cursors are tied to. */
enum { VIEW = VV_CID_TEXT + 8 };
static void name_view(const vv_cid *cid, char out[VIEW])
{
    memcpy(out, "uses ", 5);
    vv_cid_text(out + 5, cid);
}

static vv_code begin(search *s, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"limit", "cursor", NULL};
    char view[VIEW];
    uint64_t limit = VV_VALUE_USES;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_cid(q, &s->cid, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "limit", 1, VV_VALUE_USES_MAX, &limit, err);
    if (rc != VV_OK)
        return rc;
    name_view(&s->cid, view);
    rc = vv_query_cursor(q, view, s->after, sizeof s->after, &s->has_after, err);
    if (rc != VV_OK)
        return rc;
    s->left = limit;
    s->found = (vv_page){.key_len = USE_KEY, .limit = limit + 1};
    return vv_page_room(&s->found, err);
}

vv_code vv_value_uses(vv_query *q, vv_value_use_fn *tell, void *state, vv_evidence *ret_evidence,
                      char ret_next[VV_CURSOR_TEXT], vv_error *err)
{
    search s = {.q = q, .tell = tell, .state = state, .evidence = ret_evidence};
    char view[VIEW];
    vv_code rc = begin(&s, q, err);
    if (rc == VV_OK)
        rc = search_all(&s, err);
    vv_page_done(&s.found);
    name_view(&s.cid, view);
    ret_next[0] = 0;
    if (s.more)
        vv_query_cursor_text(q, view, s.last, sizeof s.last, ret_next);
    return rc;
}

/* Items are written while the profiles that they are of are at hand; what stands before them is known at the end. */
typedef struct {
    vv_wr w;
    vv_json j;
} item_list;

static void item_json(void *state, const vv_found *f, const vv_profile *p, const vv_value_use *u)
{
    vv_json *j = &((item_list *)state)->j;
    char short_id[VV_SHORT_ID], capture[VV_CAPTURE_TEXT];
    vv_thread_ref thread;
    vv_short_id(short_id, &f->execution->root);
    if (u->call)
        thread = vv_call_thread(u->call);
    if (u->capture)
        vv_capture_text(capture, u->capture);
    vv_json_obj(j);
    vv_execution_id_json(j, f);
    vv_json_kv_cstr(j, "execution_short_id", short_id);
    vv_json_kv_cstr(j, "role", u->role);
    vv_call_id_json(j, "call_id", u->call);
    vv_thread_id_json(j, "thread_id", u->call ? &thread : NULL);
    vv_json_kv_cstr(j, "error_id", u->capture ? capture : NULL);
    vv_number_json(j, "log", u->has_log, u->log);
    vv_function_id_json(j, p, "", u->has_function, u->function);
    vv_context_ref_json(j, "call_path_id", "call_path_overflow_reason", u->context);
    vv_json_kv_u64(j, "codec", u->value->codec);
    vv_json_kv_u64(j, "bytes", u->value->bytes);
    vv_json_end_obj(j);
}

vv_code vv_view_value_uses(vv_json *j, vv_query *q, vv_error *err)
{
    item_list items = {.w = vv_wr_growing(ITEMS_MAX)};
    vv_evidence evidence = {0};
    char next[VV_CURSOR_TEXT], cid_text[VV_CID_TEXT];
    vv_cid cid;
    items.j = vv_json_init(&items.w);
    vv_json_arr(&items.j);
    vv_code rc = vv_value_uses(q, item_json, &items, &evidence, next, err);
    vv_json_end_arr(&items.j);
    if (rc == VV_OK)
        rc = vv_wr_error(&items.w, "answer", err);
    if (rc == VV_OK)
        rc = vv_query_cid(q, &cid, err);
    if (rc == VV_OK) {
        vv_cid_text(cid_text, &cid);
        vv_head_json(j, q->look, &evidence, next[0], NULL);
        vv_json_kv_cstr(j, "cid", cid_text);
        vv_json_key(j, "items");
        vv_json_raw(j, (vv_str){(const char *)items.w.buf, items.w.len});
        vv_json_kv_cstr(j, "next", next[0] ? next : NULL);
        vv_json_end_obj(j);
    }
    vv_wr_done(&items.w);
    vv_evidence_done(&evidence);
    return rc;
}
