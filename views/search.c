#include "config.h"

#include "views/search.h"

#include <stdlib.h>

#include "views/search_inside.h"

const char *const vv_hit_words[] = {"function", "execution", "thread", "error", "span"};

/* A hit in an execution that is loaded. */
typedef struct {
    uint8_t key[VV_SEARCH_ID];
    uint32_t at;
    const char *matched;
} hit;

/* Those of one execution: the first ones, twice as many as can be wanted. */
typedef struct {
    vv_searching *s;
    const vv_profile *profile;
    const uint8_t *after; /* or NULL */
    const char **words;   /* of each function of the table: what matched, or no_word, or NULL: not looked at yet */
    hit *hits;
    size_t count, cap;
} inside;

static const char no_word[] = "";

static int by_key(const void *a, const void *b)
{
    return memcmp(((const hit *)a)->key, ((const hit *)b)->key, VV_SEARCH_ID);
}

/* Sorts what was found, and forgets what is beyond the page and one more. */
static void settle(inside *x)
{
    qsort(x->hits, x->count, sizeof *x->hits, by_key);
    if (x->count > x->s->left + 1)
        x->count = (size_t)x->s->left + 1;
}

static void offer(inside *x, vv_hit_type type, const uint8_t *id, size_t n, size_t at, const char *matched)
{
    hit h = {.key = {(uint8_t)type}, .at = (uint32_t)at, .matched = matched};
    if (!matched)
        return;
    memcpy(h.key + 1, id, n);
    if (x->after && memcmp(h.key, x->after, VV_SEARCH_ID) <= 0)
        return;
    if (x->count == x->cap)
        settle(x);
    x->hits[x->count++] = h;
}

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

static void find_threads(inside *x)
{
    const vv_fold *f = x->profile->fold;
    for (size_t i = 0; i < f->thread_count; i++) {
        const vv_fold_thread *t = &f->threads[i];
        if (t->has_start)
            offer(x, VV_HIT_THREAD, t->thread.b, sizeof t->thread.b, i, word_if(x, t->start.name, "thread_name"));
    }
}

static void find_errors(inside *x)
{
    const vv_fold *f = x->profile->fold;
    for (size_t i = 0; i < f->error_count; i++) {
        const vv_error_capture *e = &f->errors[i];
        const char *word = word_of_function(x, e->function_id);
        if (!word)
            word = word_if(x, vv_cstr(vv_capture_kinds[e->kind]), "kind");
        if (!word)
            word = word_if(x, vv_cstr(vv_capture_sources[e->source]), "source");
        offer(x, VV_HIT_ERROR, e->id.b, sizeof e->id.b, i, word);
    }
}

static const char *word_of_id(const inside *x, const vv_runtime_id *id)
{
    char text[VV_RUNTIME_TEXT];
    vv_runtime_text(text, id);
    return word_if(x, vv_cstr(text), "runtime_id");
}

/* By the function, else by an id that the program gave it: at its start, or in a fact of its own. */
static vv_code find_spans(inside *x, vv_error *err)
{
    const vv_fold *f = x->profile->fold;
    uint8_t *named = calloc(f->span_count + 1, 1);
    if (!named)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a search of calls");
    for (size_t i = 0; i < f->runtime_id_count; i++) {
        uint32_t at = vv_map_find(&f->span_map, f->runtime_ids[i].call.b);
        if (at != VV_MAP_NONE && word_of_id(x, &f->runtime_ids[i].id))
            named[at] = 1;
    }
    for (size_t i = 0; i < f->span_count; i++) {
        const vv_fold_span *s = &f->spans[i];
        const char *word = s->has_start ? word_of_function(x, s->start.function_id) : NULL;
        if (!word && s->has_start && s->start.has_runtime_id)
            word = word_of_id(x, &s->start.runtime_id);
        if (!word && named[i])
            word = "runtime_id";
        offer(x, VV_HIT_SPAN, s->call.b, sizeof s->call.b, i, word);
    }
    free(named);
    return VV_OK;
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

static vv_code find_inside(inside *x, const vv_found *f, vv_error *err)
{
    vv_searching *s = x->s;
    vv_code rc = VV_OK;
    x->cap = 2 * ((size_t)s->left + 1);
    x->words = calloc((size_t)x->profile->table.function_count + 1, sizeof *x->words);
    x->hits = malloc(x->cap * sizeof *x->hits);
    if (!x->words || !x->hits)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a search");
    if (vv_search_wants(s, VV_HIT_THREAD))
        find_threads(x);
    if (vv_search_wants(s, VV_HIT_ERROR))
        find_errors(x);
    if (vv_search_wants(s, VV_HIT_SPAN))
        rc = find_spans(x, err);
    settle(x);
    for (size_t i = 0; i < x->count && rc == VV_OK && !s->more; i++) {
        const vv_hit h = {.type = x->hits[i].key[0], .matched = x->hits[i].matched, .found = f, .profile = x->profile,
                          .at = x->hits[i].at};
        tell(s, &h, x->hits[i].key);
    }
    return rc;
}

static vv_code search_loaded(vv_searching *s, const vv_found *f, const uint8_t *after, vv_error *err)
{
    inside x = {.s = s, .after = after};
    vv_query *q = s->q;
    vv_code rc = vv_library_profile(q->library, q->look, f->stream, f->execution, &x.profile, err);
    if (rc == VV_OK && !x.profile->fold->failed)
        rc = find_inside(&x, f, err);
    free(x.words);
    free(x.hits);
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
    vv_found *list = NULL;
    vv_code rc = read_query(&s, err);
    if (rc == VV_OK)
        rc = vv_list_executions(q->look, &list, &s.count, err);
    s.list = list;
    if (rc == VV_OK && vv_search_wants(&s, VV_HIT_FUNCTION) && !(s.has_after && s.after[0]))
        rc = vv_search_functions(&s, err);
    if (rc == VV_OK && !s.more && !(s.only && s.type == VV_HIT_FUNCTION))
        rc = search_executions(&s, err);
    if (rc == VV_OK)
        rc = note_damage(&s, err);
    free(list);
    if (s.more)
        vv_query_cursor_text(q, "search", s.last, sizeof s.last, ret->next);
    return rc;
}

void vv_search_result_done(vv_search_result *r)
{
    vv_evidence_done(&r->evidence);
}
