#include "config.h"

#include "views/executions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/text.h"
#include "views/facts.h"

void vv_short_id(char out[VV_SHORT_ID], const vv_thread_ref *root)
{
    snprintf(out, VV_SHORT_ID, "%08" PRIx32 ".%" PRIu64 ".%" PRIu64, vv_be32(root->b + 12), vv_thread_engine(root),
             vv_thread_number(root));
}

void vv_time_text(char out[VV_TIME_TEXT], uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(out, VV_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, VV_TIME_TEXT - n, ".%09uZ", (unsigned)(unix_ns % 1000000000u));
}

void vv_found_place(uint8_t out[VV_FOUND_PLACE], const vv_found *f)
{
    out[0] = f->has_time;
    vv_put64(out + 1, f->unix_ns);
    memcpy(out + 9, f->execution->root.b, 32);
}

vv_code vv_evidence_unreadable(vv_evidence *e, const vv_look *look, vv_error *err)
{
    vv_code rc = VV_OK;
    for (size_t i = 0; i < look->store->stream_count && rc == VV_OK; i++)
        if (look->store->streams[i].failed)
            rc = vv_evidence_stream_error(e, &look->store->streams[i], err);
    return rc;
}

static vv_code not_found(vv_query *q, const char *name, vv_error *err)
{
    q->parameter = name;
    return vv_fail(err, VV_ERR_NOTFOUND, "no execution of that name in this store");
}

/* Reads decimal digits at *p, not beyond end. A number is written one way: without zeros before it. */
static bool take_number(const char **p, const char *end, uint64_t *ret)
{
    vv_str s = {*p, vv_str_digits((vv_str){*p, (size_t)(end - *p)})};
    *p += s.n;
    return !(s.n > 1 && *s.p == '0') && vv_str_u64(s, ret);
}

static vv_code find_latest(vv_query *q, uint64_t back, const char *name, vv_found *ret, vv_error *err)
{
    const vv_order *o;
    vv_code rc = vv_library_order(q->library, q->look, &o, err);
    if (rc != VV_OK)
        return rc;
    if (back < o->count && o->items[back].has_time)
        *ret = o->items[back];
    else
        rc = not_found(q, name, err);
    vv_order_unref(o);
    return rc;
}

/*
 * The execution of a root. A damaged record may sit in another stream than the one its root names: all are asked then.
 */
static bool find_root(const vv_store *store, const vv_thread_ref *root, vv_found *ret)
{
    vv_euid euid;
    memcpy(euid.b, root->b, sizeof euid.b);
    const vv_stream *s = vv_store_stream(store, &euid);
    const vv_execution *x = s ? vv_stream_execution(s, root) : NULL;
    for (size_t i = 0; i < store->stream_count && !x; i++) {
        s = &store->streams[i];
        x = vv_stream_execution(s, root);
    }
    if (x)
        *ret = vv_found_of(s, x);
    return x != NULL;
}

static vv_code find_short(vv_query *q, const uint8_t tail[4], uint64_t engine, uint64_t thread, const char *name,
                          vv_found *ret, vv_error *err)
{
    const vv_store *store = q->look->store;
    q->match_count = 0;
    for (size_t i = 0; i < store->stream_count; i++)
        for (size_t k = 0; k < store->streams[i].execution_count; k++) {
            const vv_execution *x = vv_stream_execution_at(&store->streams[i], k);
            if (memcmp(x->root.b + 12, tail, 4) != 0 || vv_thread_engine(&x->root) != engine
                || vv_thread_number(&x->root) != thread || q->match_count == VV_QUERY_MATCHES)
                continue;
            *ret = vv_found_of(&store->streams[i], x);
            q->matches[q->match_count++] = x->root;
        }
    if (q->match_count == 0)
        return not_found(q, name, err);
    if (q->match_count == 1)
        return VV_OK;
    q->parameter = name;
    return vv_fail(err, VV_ERR_AMBIGUOUS, "that short id stands for several executions");
}

vv_code vv_query_execution(vv_query *q, vv_str id, const char *name, vv_found *ret, vv_error *err)
{
    static const char latest[] = "latest";
    const char *p = id.p, *end = id.p + id.n;
    q->named = id;
    if (id.n >= strlen(latest) && memcmp(p, latest, strlen(latest)) == 0) {
        uint64_t back = 0;
        p += strlen(latest);
        if (p == end || (*p++ == '~' && take_number(&p, end, &back) && p == end))
            return find_latest(q, back, name, ret, err);
    } else if (id.n > 9 && p[8] == '.') {
        uint8_t tail[4];
        uint64_t engine, thread;
        bool good = vv_unhex(tail, 4, (vv_str){p, 8});
        p += 9;
        if (good && take_number(&p, end, &engine) && p < end && *p++ == '.' && take_number(&p, end, &thread)
            && p == end)
            return find_short(q, tail, engine, thread, name, ret, err);
    } else {
        vv_thread_ref root;
        if (vv_thread_parse(id, &root, NULL) == VV_OK) {
            if (!find_root(q->look->store, &root, ret))
                return not_found(q, name, err);
            return VV_OK;
        }
    }
    return vv_query_fail(q, name, err,
                         "is not an execution's id: use its full id, its short id, latest or latest~N");
}

vv_code vv_query_scope(vv_query *q, vv_found *ret, vv_error *err)
{
    const vv_str *id = vv_query_value(q, "execution");
    if (!id)
        return vv_query_fail(q, "execution", err, "is needed: an execution's id, or latest");
    return vv_query_execution(q, *id, "execution", ret, err);
}

vv_code vv_query_load(const vv_query *q, const vv_found *f, vv_loaded *ret, vv_error *err)
{
    vv_loaded x = {NULL, NULL};
    vv_code rc = vv_library_digest(q->library, q->look, f->stream, f->execution, &x.digest, err);
    if (rc == VV_OK)
        rc = vv_library_profile(q->library, q->look, f->stream, f->execution, &x.profile, err);
    if (rc == VV_OK)
        *ret = x;
    else
        vv_loaded_release(q->library, &x);
    return rc;
}

vv_code vv_query_load_own(vv_query *q, vv_found *ret_found, vv_loaded *ret, vv_error *err)
{
    vv_code rc = vv_query_execution(q, q->id, "id", ret_found, err);
    return rc == VV_OK ? vv_query_load(q, ret_found, ret, err) : rc;
}

vv_code vv_query_absent(vv_query *q, const vv_profile *p, const char *name, vv_error *err)
{
    if (p->fold->failed)
        return VV_OK;
    q->parameter = name;
    return vv_fail(err, VV_ERR_NOTFOUND, "that execution has no such %s", name);
}

void vv_loaded_release(vv_library *l, vv_loaded *x)
{
    vv_profile_release(l, x->profile);
    vv_digest_release(l, x->digest);
    *x = (vv_loaded){NULL, NULL};
}

static void time_fields_json(vv_json *j, const char *unix_key, const char *at_key, bool has, uint64_t unix_ns)
{
    if (!has) {
        vv_json_kv_null(j, unix_key);
        vv_json_kv_null(j, at_key);
        return;
    }
    char text[VV_TIME_TEXT];
    vv_time_text(text, unix_ns);
    vv_json_kv_u64(j, unix_key, unix_ns);
    vv_json_kv_cstr(j, at_key, text);
}

static void identity_fields_json(vv_json *j, const vv_found *f)
{
    const vv_execution *x = f->execution;
    char text[VV_THREAD_TEXT], shorter[VV_SHORT_ID], runtime[VV_RUNTIME_TEXT];
    vv_thread_text(text, &x->root);
    vv_short_id(shorter, &x->root);
    vv_json_kv_cstr(j, "execution_id", text);
    vv_json_kv_cstr(j, "short_id", shorter);
    vv_json_kv_hex(j, "process_id", f->stream->euid.b, sizeof f->stream->euid.b);
    vv_number_json(j, "pid", f->stream->has_header, f->stream->header.pid);
    vv_json_kv_u64(j, "engine_id", vv_thread_engine(&x->root));
    vv_json_kv_opt_hex(j, "program_id", x->first_engine ? x->first_engine->program.b : NULL,
                       sizeof x->engine->program.b);
    vv_json_kv_opt_str(j, "revision_id", x->engine ? &x->engine->revision : NULL);
    vv_json_kv_opt_str(j, "source_label", x->engine ? &x->engine->source : NULL);
    if (x->has_start) {
        vv_runtime_text(runtime, &x->runtime_id);
        vv_json_kv_cstr(j, "runtime_id", runtime);
    } else {
        vv_json_kv_null(j, "runtime_id");
    }
}

static void range_fields_json(vv_json *j, const vv_execution *x)
{
    bool has = x->has_end && x->count;
    vv_number_json(j, "data_first_seq", has, x->first);
    vv_number_json(j, "data_last_seq", has, x->last);
    vv_number_json(j, "data_file_count", x->has_end, x->count);
}

static void number_fields_json(vv_json *j, const vv_digest *d)
{
    vv_number_json(j, "total_calls", d->known, d->totals.calls);
    vv_number_json(j, "total_errors", d->known, d->totals.errors);
    vv_number_json(j, "total_cancelled", d->known, d->totals.cancelled);
    vv_number_json(j, "calls_retained", d->known, d->spans);
    vv_number_json(j, "errors_captured", d->known, d->errors_captured);
    vv_number_json(j, "threads_total", d->known, d->threads);
    vv_number_json(j, "contexts_total", d->known, d->contexts);
}

const char *vv_execution_word(const vv_execution *x, const vv_digest *d, vv_str text)
{
    char id[VV_THREAD_TEXT], shorter[VV_SHORT_ID];
    const vv_engine *e = x->engine;
    const vv_str none = {NULL, 0};
    vv_thread_text(id, &x->root);
    vv_short_id(shorter, &x->root);
    const vv_text_field fields[] = {
        {"execution_id", vv_cstr(id)},
        {"short_id", vv_cstr(shorter)},
        {"entry_fqn", vv_cstr(d->entry_fqn)},
        {"entry_display_name", vv_cstr(d->entry_display)},
        {"source_label", e && e->source.present ? e->source.s : none},
        {"revision_id", e && e->revision.present ? e->revision.s : none},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        if (vv_text_contains(fields[i].text, text))
            return fields[i].word;
    return NULL;
}

void vv_execution_fields_json(vv_json *j, const vv_found *f, const vv_digest *d)
{
    const vv_execution *x = f->execution;
    uint64_t ended = 0;
    bool has_ended = x->has_end && vv_stream_unix_ns(f->stream, x->ended_ns, &ended);
    identity_fields_json(j, f);
    vv_number_json(j, "entry_function_id", d->has_entry, d->entry_function);
    vv_json_kv_cstr(j, "entry_fqn", d->entry_fqn);
    vv_json_kv_cstr(j, "entry_display_name", d->entry_display);
    vv_json_kv_cstr(j, "status", vv_status_word(x->status));
    vv_json_kv_cstr(j, "index_state", vv_index_state_word(x->index_state));
    vv_json_kv_cstr(j, "data_state", vv_data_state_word(d->data_state));
    vv_json_kv_cstr(j, "verdict", vv_verdict_name(d->evidence.verdict));
    vv_json_kv_bool(j, "alive", f->stream->alive);
    vv_number_json(j, "started_ns", x->has_start, x->started_ns);
    vv_number_json(j, "ended_ns", x->has_end, x->ended_ns);
    time_fields_json(j, "started_unix_ns", "started_at", f->has_time, f->unix_ns);
    time_fields_json(j, "ended_unix_ns", "ended_at", has_ended, ended);
    vv_number_json(j, "duration_ns", d->has_duration, d->duration_ns);
    number_fields_json(j, d);
    range_fields_json(j, x);
}

static void health_json(vv_json *j, const vv_execution *x)
{
    vv_json_key(j, "health");
    if (!x->has_end) {
        vv_json_null(j);
        return;
    }
    vv_json_obj(j);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        vv_json_kv_u64(j, vv_health_name(i), x->health.v[i]);
    vv_json_end_obj(j);
}

/* What the writer kept of its equations' terms; null where its store has none. */
static void health_terms_json(vv_json *j, const vv_execution *x)
{
    vv_json_key(j, "health_terms");
    if (!x->has_terms) {
        vv_json_null(j);
        return;
    }
    vv_json_obj(j);
    vv_health_record r = x->terms;
    vv_str name;
    uint64_t value;
    while (vv_health_term(&r, &name, &value)) {
        vv_json_key_str(j, name);
        vv_json_u64(j, value);
    }
    vv_json_end_obj(j);
}

static void cct_health_json(vv_json *j, const vv_digest *d)
{
    static const char *const words[] = {"counter_saturated", "await_counter_saturated", "self_time_underflow"};
    vv_json_key(j, "cct_health");
    if (!d->known) {
        vv_json_null(j);
        return;
    }
    vv_json_arr(j);
    for (unsigned i = 0; i < VV_ARRAY_LEN(words); i++)
        if (d->cct_health & 1u << i)
            vv_json_cstr(j, words[i]);
    vv_json_end_arr(j);
}

static void overflow_json(vv_json *j, const vv_profile *p)
{
    vv_json_kv_arr(j, "overflow");
    for (uint32_t i = p->context_count; i < p->tree.node_count; i++) {
        char id[VV_OVERFLOW_ID];
        const vv_node *n = &p->tree.nodes[i];
        vv_node_overflow_id(&p->tree.nodes[i], id);
        vv_json_obj(j);
        vv_json_kv_cstr(j, "id", id);
        vv_json_kv_u64(j, "calls", n->counters->started);
        vv_json_kv_u64(j, "errors", n->counters->error);
        vv_json_kv_u128(j, "inclusive_ns", n->counters->inclusive_ns);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
}

static void thread_issues_json(vv_json *j, const vv_fold *f)
{
    static const char *const words[] = {"missing_start", "missing_parent", "root_mismatch"};
    vv_json_kv_arr(j, "thread_issues");
    for (size_t i = 0; i < f->thread_issue_count && i < VV_EVIDENCE_ISSUES && !f->failed; i++) {
        char text[VV_THREAD_TEXT];
        vv_thread_text(text, &f->thread_issues[i].thread);
        vv_json_obj(j);
        vv_json_kv_cstr(j, "thread", text);
        vv_json_kv_cstr(j, "kind", words[f->thread_issues[i].kind]);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
}

vv_code vv_view_execution(vv_json *j, vv_query *q, vv_error *err)
{
    vv_found f;
    vv_loaded x;
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, err);
    if (rc != VV_OK)
        return rc;
    const vv_digest *d = x.digest;
    vv_head_json(j, q->look, &d->evidence, false, NULL);
    vv_json_kv_obj(j, "execution");
    vv_execution_fields_json(j, &f, d);
    vv_json_end_obj(j);
    vv_json_key(j, "totals");
    vv_totals_json(j, d->known, &d->totals);
    health_json(j, f.execution);
    health_terms_json(j, f.execution);
    cct_health_json(j, d);
    overflow_json(j, x.profile);
    thread_issues_json(j, x.profile->fold);
    vv_json_end_obj(j);
    vv_loaded_release(q->library, &x);
    return VV_OK;
}
