#include "config.h"

#include "views/search.h"

#include <stdlib.h>

#include "views/listing.h"
#include "views/search_inside.h"

const char *const vv_hit_words[] = {"function", "execution", "thread", "error", "span"};

/* An execution that is loaded. */
typedef struct {
    vv_searching *s;
    const vv_profile *profile;
    const char **words; /* of each function of the table: what matched, or no_word, or NULL: not looked at yet */
    uint8_t *named;     /* whether a span has a fact of an id that matches */
    vv_page page;       /* rows are places in the fold's list of the kind */
} inside;

static const char no_word[] = "";

static const char *word_of_function(inside *x, uint32_t id)
{
    const vv_function *d = vv_function_of(x->profile, id);
    if (!d)
        return NULL;
    const char **word = &x->words[d - x->profile->table.functions];
    if (!*word) {
        const char *found = vv_search_function_word(x->s, d);
        *word = found ? found : no_word;
    }
    return *word == no_word ? NULL : *word;
}

static const char *word_if(const inside *x, vv_str text, const char *word)
{
    return vv_text_contains(text, x->s->text) ? word : NULL;
}

static const char *word_of_thread(const inside *x, const vv_fold_thread *t)
{
    return t->has_start ? word_if(x, t->start.name, "thread_name") : NULL;
}

static const char *word_of_error(inside *x, const vv_error_capture *e)
{
    const char *word = word_of_function(x, e->function_id);
    if (!word)
        word = word_if(x, vv_cstr(vv_capture_kinds[e->kind]), "kind");
    return word ? word : word_if(x, vv_cstr(vv_capture_sources[e->source]), "source");
}

static const char *word_of_id(const inside *x, const vv_runtime_id *id)
{
    char text[VV_RUNTIME_TEXT];
    vv_runtime_text(text, id);
    return word_if(x, vv_cstr(text), "runtime_id");
}

/* By the function, else by an id that the program gave it: at its start, or in a fact of its own. */
static const char *word_of_span(inside *x, size_t at)
{
    const vv_fold_span *s = &x->profile->fold->spans[at];
    const char *word = s->has_start ? word_of_function(x, s->start.function_id) : NULL;
    if (!word && s->has_start && s->start.has_runtime_id)
        word = word_of_id(x, &s->start.runtime_id);
    return !word && x->named[at] ? "runtime_id" : word;
}

static const char *word_of(inside *x, vv_hit_type type, size_t at)
{
    const vv_fold *f = x->profile->fold;
    if (type == VV_HIT_THREAD)
        return word_of_thread(x, &f->threads[at]);
    return type == VV_HIT_ERROR ? word_of_error(x, &f->errors[at]) : word_of_span(x, at);
}

static void note_named(inside *x)
{
    const vv_fold *f = x->profile->fold;
    for (size_t i = 0; i < f->runtime_id_count; i++) {
        uint32_t at = vv_map_find(&f->span_map, f->runtime_ids[i].call.b);
        if (at != VV_MAP_NONE && word_of_id(x, &f->runtime_ids[i].id))
            x->named[at] = 1;
    }
}

static void offer(inside *x, vv_hit_type type, const uint8_t *id, size_t n, size_t at)
{
    uint8_t key[VV_SEARCH_ID] = {(uint8_t)type};
    if (!word_of(x, type, at))
        return;
    memcpy(key + 1, id, n);
    vv_page_offer(&x->page, key, (uint32_t)at);
}

static void offer_all(inside *x)
{
    const vv_fold *f = x->profile->fold;
    for (size_t i = 0; i < f->thread_count && vv_search_wants(x->s, VV_HIT_THREAD); i++)
        offer(x, VV_HIT_THREAD, f->threads[i].thread.b, sizeof f->threads[i].thread.b, i);
    for (size_t i = 0; i < f->error_count && vv_search_wants(x->s, VV_HIT_ERROR); i++)
        offer(x, VV_HIT_ERROR, f->errors[i].id.b, sizeof f->errors[i].id.b, i);
    for (size_t i = 0; i < f->span_count && vv_search_wants(x->s, VV_HIT_SPAN); i++)
        offer(x, VV_HIT_SPAN, f->spans[i].call.b, sizeof f->spans[i].call.b, i);
}

/* Tells of a hit, or notes that the page is full before it. */
static void tell(vv_searching *s, const vv_hit *h, const uint8_t key[VV_SEARCH_ID])
{
    if (s->left == 0) {
        s->more = true;
        return;
    }
    s->tell(s->state, h);
    s->last[0] = 1;
    vv_found_place(s->last + 1, h->found);
    memcpy(s->last + 1 + VV_FOUND_PLACE, key, VV_SEARCH_ID);
    s->left--;
}

static vv_code find_inside(inside *x, const vv_found *f, const uint8_t *after, vv_error *err)
{
    vv_searching *s = x->s;
    x->words = calloc((size_t)x->profile->table.function_count + 1, sizeof *x->words);
    x->named = calloc(x->profile->fold->span_count + 1, 1);
    x->page = (vv_page){.key_len = VV_SEARCH_ID, .limit = s->left + 1};
    vv_code rc = vv_page_room(&x->page, err);
    if (rc == VV_OK && (!x->words || !x->named))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a search");
    if (rc != VV_OK)
        return rc;
    vv_page_again(&x->page, x->page.limit, after);
    if (vv_search_wants(s, VV_HIT_SPAN))
        note_named(x);
    offer_all(x);
    vv_page_order(&x->page);
    for (size_t i = 0; i < x->page.count && !s->more; i++) {
        const vv_page_item *item = &x->page.items[i];
        vv_hit_type type = item->key[0];
        const vv_hit h = {.type = type, .matched = word_of(x, type, item->row), .found = f, .profile = x->profile,
                          .at = item->row};
        tell(s, &h, item->key);
    }
    return VV_OK;
}

static vv_code search_loaded(vv_searching *s, const vv_found *f, const uint8_t *after, vv_error *err)
{
    inside x = {.s = s};
    vv_query *q = s->q;
    vv_code rc = vv_library_profile(q->library, q->look, f->stream, f->execution, &x.profile, err);
    if (rc == VV_OK && !x.profile->fold->failed)
        rc = find_inside(&x, f, after, err);
    free(x.words);
    free(x.named);
    vv_page_done(&x.page);
    vv_profile_release(q->library, x.profile);
    return rc;
}

/* What of the execution itself holds the text. */
static const char *word_of_execution(const vv_searching *s, const vv_execution *x, const vv_digest *d)
{
    char runtime[VV_RUNTIME_TEXT];
    const char *word = vv_execution_word(x, d, s->text);
    if (word || !x->has_start)
        return word;
    vv_runtime_text(runtime, &x->runtime_id);
    return vv_text_contains(vv_cstr(runtime), s->text) ? "runtime_id" : NULL;
}

static bool wants_inside(const vv_searching *s)
{
    return vv_search_wants(s, VV_HIT_THREAD) || vv_search_wants(s, VV_HIT_ERROR) || vv_search_wants(s, VV_HIT_SPAN);
}

/* after: of a page that begins in this execution the hit before it, else NULL. */
static vv_code search_one(vv_searching *s, const vv_found *f, const uint8_t *after, vv_error *err)
{
    static const uint8_t key[VV_SEARCH_ID] = {VV_HIT_EXECUTION};
    const vv_digest *d;
    vv_query *q = s->q;
    vv_code rc = vv_library_digest(q->library, q->look, f->stream, f->execution, &d, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_evidence_merge(&s->result->evidence, &d->evidence, err);
    bool may = d->known && vv_sieve_may_contain(&d->text_sieve, s->text);
    const char *word = vv_search_wants(s, VV_HIT_EXECUTION) && !after ? word_of_execution(s, f->execution, d) : NULL;
    if (rc == VV_OK && word) {
        const vv_hit h = {.type = VV_HIT_EXECUTION, .matched = word, .found = f, .digest = d};
        tell(s, &h, key);
    }
    vv_digest_release(q->library, d);
    if (rc == VV_OK && may && !s->more && wants_inside(s))
        rc = search_loaded(s, f, after, err);
    if (rc == VV_ERR_LIMIT) {
        vv_error_clear(err);
        rc = vv_evidence_refused(&s->result->evidence, f->execution, err);
    }
    return rc;
}

static vv_code search_executions(vv_searching *s, vv_error *err)
{
    vv_code rc = VV_OK;
    bool from = s->has_after && s->after[0] == 1;
    for (size_t i = 0; i < s->count && rc == VV_OK && !s->more; i++) {
        uint8_t place[VV_FOUND_PLACE];
        vv_found_place(place, &s->list[i]);
        int c = from ? memcmp(place, s->after + 1, VV_FOUND_PLACE) : -1; /* newest first: later ones are smaller */
        if (c <= 0)
            rc = search_one(s, &s->list[i], c == 0 ? s->after + 1 + VV_FOUND_PLACE : NULL, err);
    }
    return rc;
}

/* What could not be searched, whatever the page holds: hits may be missing. */
static vv_code note_damage(vv_searching *s, vv_error *err)
{
    vv_evidence *e = &s->result->evidence;
    vv_code rc = vv_evidence_unreadable(e, s->q->look, err);
    if (s->result->tables_unreadable)
        e->verdict = VV_VERDICT_DAMAGED;
    return rc;
}

static vv_code read_query(vv_searching *s, vv_error *err)
{
    static const char *const names[] = {"q", "kind", "limit", "cursor", NULL};
    vv_query *q = s->q;
    unsigned type = 0;
    s->left = VV_SEARCH_LIMIT;
    s->only = vv_query_value(q, "kind") != NULL;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "kind", vv_hit_words, VV_HIT_TYPES, &type, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "limit", 1, VV_SEARCH_LIMIT_MAX, &s->left, err);
    if (rc != VV_OK)
        return rc;
    s->type = (vv_hit_type)type;
    const vv_str *text = vv_query_value(q, "q");
    if (!text || text->n == 0 || text->n > VV_SEARCH_TEXT_MAX)
        return vv_query_fail(q, "q", err, "must be a text of 1 to %d bytes", VV_SEARCH_TEXT_MAX);
    s->text = *text;
    return vv_query_cursor(q, "search", s->after, sizeof s->after, &s->has_after, err);
}

vv_code vv_search(vv_query *q, vv_hit_fn *tell_hit, void *state, vv_search_result *ret, vv_error *err)
{
    *ret = (vv_search_result){.tables = 0};
    vv_searching s = {.q = q, .tell = tell_hit, .state = state, .result = ret};
    const vv_order *o = NULL;
    vv_code rc = read_query(&s, err);
    if (rc == VV_OK)
        rc = vv_library_order(q->library, q->look, &o, err);
    s.list = o ? o->items : NULL;
    s.count = o ? o->count : 0;
    if (rc == VV_OK && vv_search_wants(&s, VV_HIT_FUNCTION) && !(s.has_after && s.after[0]))
        rc = vv_search_functions(&s, err);
    if (rc == VV_OK && !s.more && !(s.only && s.type == VV_HIT_FUNCTION))
        rc = search_executions(&s, err);
    if (rc == VV_OK)
        rc = note_damage(&s, err);
    vv_order_unref(o);
    if (s.more)
        vv_query_cursor_text(q, "search", s.last, sizeof s.last, ret->next);
    return rc;
}

void vv_search_result_done(vv_search_result *r)
{
    vv_evidence_done(&r->evidence);
}
