#include "config.h"

#include "cli/dump_document.h"

#include <stdlib.h>
#include <string.h>

#include "reader/fold.h"

/* Memory for the fold of one execution. */
#define FOLD_MAX ((size_t)4 << 30)

static void kv_full(vv_json *j, const char *k, uint64_t v)
{
    vv_json_key(j, k);
    vv_json_u64_full(j, v);
}

static void kv_opt(vv_json *j, const char *k, bool present, uint64_t v)
{
    if (present)
        kv_full(j, k, v);
    else
        vv_json_kv_null(j, k);
}

static void kv_u128(vv_json *j, const char *k, vv_u128 v)
{
    vv_json_key(j, k);
    vv_json_u128_text(j, v);
}

static void thread_value(vv_json *j, const vv_thread_ref *t)
{
    char text[VV_THREAD_TEXT];
    vv_thread_text(text, t);
    vv_json_cstr(j, text);
}

static void call_value(vv_json *j, const vv_call_ref *c)
{
    char text[VV_CALL_TEXT];
    vv_call_text(text, c);
    vv_json_cstr(j, text);
}

static void kv_call(vv_json *j, const char *k, bool present, const vv_call_ref *c)
{
    vv_json_key(j, k);
    if (present)
        call_value(j, c);
    else
        vv_json_null(j);
}

static void kv_thread(vv_json *j, const char *k, bool present, const vv_thread_ref *t)
{
    vv_json_key(j, k);
    if (present)
        thread_value(j, t);
    else
        vv_json_null(j);
}

static void kv_runtime_id(vv_json *j, bool present, const vv_runtime_id *r)
{
    char text[VV_RUNTIME_TEXT];
    vv_json_key(j, "runtime_id");
    if (present)
        vv_runtime_text(text, r);
    vv_json_cstr(j, present ? text : NULL);
}

static void capture_value(vv_json *j, const vv_capture_id *c)
{
    vv_thread_ref t = vv_capture_thread(c);
    vv_json_arr(j);
    thread_value(j, &t);
    vv_json_u64_full(j, vv_capture_ordinal(c));
    vv_json_end_arr(j);
}

static void kv_four(vv_json *j, const char *k, bool present, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    vv_json_key(j, k);
    if (!present) {
        vv_json_null(j);
        return;
    }
    const uint32_t v[] = {a, b, c, d};
    vv_json_arr(j);
    for (size_t i = 0; i < VV_ARRAY_LEN(v); i++)
        vv_json_u64_full(j, v[i]);
    vv_json_end_arr(j);
}

static void kv_site(vv_json *j, const char *k, bool present, const vv_site *s)
{
    kv_four(j, k, present, s->file, s->start, s->end, s->line);
}

static void kv_context(vv_json *j, const vv_context_ref *c)
{
    vv_json_kv_obj(j, "context");
    if (c->overflow) {
        vv_json_kv_arr(j, "overflow");
        vv_json_u64_full(j, c->reason);
        vv_json_u64_full(j, c->edge);
        vv_json_end_arr(j);
    } else {
        vv_json_kv_hex(j, "normal", c->key.b, sizeof c->key.b);
    }
    vv_json_end_obj(j);
}

static void kv_value(vv_json *j, const char *k, bool present, const vv_value_state *v)
{
    if (!vv_json_kv_opt_obj(j, k, present))
        return;
    if (v->lost) {
        kv_full(j, "lost", v->loss);
    } else {
        vv_json_kv_hex(j, "cid", v->cid.b, sizeof v->cid.b);
        kv_full(j, "codec", v->codec);
        kv_full(j, "bytes", v->bytes);
    }
    vv_json_end_obj(j);
}

static void kv_counters(vv_json *j, const vv_counters *c)
{
    vv_json_kv_obj(j, "counters");
    kv_full(j, "invocations_started", c->started);
    kv_full(j, "spans_selected", c->selected);
    kv_full(j, "completed_ok", c->ok);
    kv_full(j, "completed_error", c->error);
    kv_full(j, "completed_cancelled", c->cancelled);
    kv_full(j, "completed_exit", c->exited);
    kv_u128(j, "inclusive_ns", c->inclusive_ns);
    kv_u128(j, "direct_call_child_inclusive_ns", c->direct_child_ns);
    kv_u128(j, "await_ns", c->await_ns);
    kv_full(j, "await_count", c->await_count);
    vv_json_end_obj(j);
}

static void dump_context(vv_json *j, const vv_fold_context *c)
{
    vv_json_obj(j);
    vv_json_kv_hex(j, "key", c->key.b, sizeof c->key.b);
    if (vv_json_kv_opt_obj(j, "tuple", c->defined)) {
        const vv_tuple *t = &c->tuple;
        vv_json_kv_hex(j, "program_id", t->program.b, sizeof t->program.b);
        vv_json_kv_opt_hex(j, "parent", t->has_parent ? t->parent.b : NULL, sizeof t->parent.b);
        kv_full(j, "function_id", t->function_id);
        kv_site(j, "site", t->has_site, &t->site);
        vv_json_kv_cstr(j, "edge", vv_edge_name((vv_edge)t->edge));
        vv_json_end_obj(j);
    }
    kv_counters(j, &c->counters);
    kv_u128(j, "self_ns", vv_counters_self(&c->counters, NULL));
    vv_json_end_obj(j);
}

static void dump_overflow(vv_json *j, const vv_fold *f)
{
    vv_json_kv_arr(j, "overflow");
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            if (!f->overflow_present[r][e])
                continue;
            vv_json_obj(j);
            vv_json_kv_cstr(j, "reason", vv_overflow_reason_name((vv_overflow_reason)r));
            vv_json_kv_cstr(j, "edge", vv_edge_name((vv_edge)e));
            kv_counters(j, &f->overflow[r][e]);
            vv_json_end_obj(j);
        }
    vv_json_end_arr(j);
}

static void dump_thread(vv_json *j, const vv_fold_thread *t)
{
    vv_json_obj(j);
    kv_thread(j, "thread", true, &t->thread);
    if (vv_json_kv_opt_obj(j, "start", t->has_start)) {
        const vv_thread_start *s = &t->start;
        kv_thread(j, "parent", s->has_parent, &s->parent);
        kv_call(j, "spawn_call", s->has_spawn_call, &s->spawn_call);
        kv_site(j, "spawn_site", s->has_spawn_site, &s->spawn_site);
        kv_full(j, "started_ns", s->started_ns);
        kv_full(j, "kind", s->kind);
        vv_json_kv_str(j, "name", s->name);
        vv_json_end_obj(j);
    }
    if (vv_json_kv_opt_obj(j, "end", t->has_end)) {
        kv_full(j, "ended_ns", t->end.ended_ns);
        vv_json_kv_cstr(j, "status", vv_thread_status_name((vv_thread_status)t->end.status));
        vv_json_end_obj(j);
    }
    vv_json_end_obj(j);
}

static void dump_span_start(vv_json *j, const vv_span_start *s)
{
    vv_json_obj(j);
    kv_call(j, "parent", s->has_parent, &s->parent);
    kv_thread(j, "thread", true, &s->thread);
    kv_context(j, &s->context);
    kv_full(j, "function_id", s->function_id);
    kv_site(j, "site", s->has_site, &s->site);
    vv_json_kv_cstr(j, "edge", vv_edge_name((vv_edge)s->edge));
    kv_full(j, "started_ns", s->started_ns);
    kv_full(j, "reasons", s->reasons);
    kv_full(j, "roles", s->roles);
    vv_json_end_obj(j);
}

static void kv_terminal(vv_json *j, bool present, const vv_terminal_error *t)
{
    if (!vv_json_kv_opt_obj(j, "terminal", present))
        return;
    if (t->lost) {
        kv_full(j, "lost", t->loss);
    } else {
        vv_json_key(j, "capture");
        capture_value(j, &t->capture);
    }
    vv_json_end_obj(j);
}

static void dump_span(vv_json *j, const vv_fold_span *s)
{
    vv_json_obj(j);
    kv_call(j, "call", true, &s->call);
    vv_json_key(j, "start");
    if (s->has_start)
        dump_span_start(j, &s->start);
    else
        vv_json_null(j);
    if (vv_json_kv_opt_obj(j, "end", s->has_end)) {
        kv_full(j, "ended_ns", s->end.ended_ns);
        vv_json_kv_cstr(j, "status", vv_call_status_name((vv_call_status)s->end.status));
        kv_full(j, "inclusive_ns", s->end.inclusive_ns);
        vv_json_end_obj(j);
    }
    kv_runtime_id(j, s->has_runtime_id, &s->runtime_id);
    kv_value(j, "input", s->has_input, &s->input);
    kv_value(j, "output", s->has_output, &s->output);
    kv_terminal(j, s->has_terminal, &s->terminal);
    vv_json_end_obj(j);
}

static void dump_error(vv_json *j, const vv_error_capture *e)
{
    vv_json_obj(j);
    vv_json_key(j, "id");
    capture_value(j, &e->id);
    kv_call(j, "throw_call", true, &e->throw_call);
    kv_context(j, &e->context);
    kv_full(j, "function_id", e->function_id);
    kv_four(j, "site", e->has_site, e->site.file, e->site.line, e->site.start, e->site.end);
    kv_full(j, "kind", e->kind);
    kv_full(j, "source", e->source);
    kv_value(j, "value", true, &e->value);
    vv_json_end_obj(j);
}

static void unresolved(vv_json *j, const char *kind)
{
    vv_json_cstr(j, "UnresolvedDependency");
    vv_json_cstr(j, kind);
}

static void dump_issue(vv_json *j, const vv_issue *i)
{
    vv_json_arr(j);
    switch (i->kind) {
    case VV_ISSUE_NO_ROOT_ENDED:
        vv_json_cstr(j, "NoRootEnded");
        break;
    case VV_ISSUE_MISSING_SEGMENT:
        vv_json_cstr(j, "MissingDataSegment");
        vv_json_u64_full(j, i->a);
        break;
    case VV_ISSUE_CORRUPT_SEGMENT:
        vv_json_cstr(j, "CorruptDataSegment");
        vv_json_u64_full(j, i->a);
        break;
    case VV_ISSUE_GROUP_COUNT:
        vv_json_cstr(j, "GroupCountMismatch");
        vv_json_u64_full(j, i->a);
        vv_json_u64_full(j, i->b);
        break;
    case VV_ISSUE_UNRESOLVED_SPAN_START:
        unresolved(j, "SpanStart");
        call_value(j, &i->call);
        break;
    case VV_ISSUE_UNRESOLVED_CONTEXT:
        unresolved(j, "ContextDefinition");
        vv_json_hex(j, i->key.b, sizeof i->key.b);
        break;
    case VV_ISSUE_UNRESOLVED_OVERFLOW:
        unresolved(j, "OverflowBucket");
        vv_json_u64_full(j, i->a);
        vv_json_u64_full(j, i->b);
        break;
    case VV_ISSUE_UNRESOLVED_CAPTURE: {
        vv_thread_ref t = vv_capture_thread(&i->capture);
        unresolved(j, "ErrorCapture");
        thread_value(j, &t);
        vv_json_u64_full(j, vv_capture_ordinal(&i->capture));
        break;
    }
    }
    vv_json_end_arr(j);
}

static void kv_health(vv_json *j, const vv_execution *e)
{
    if (!vv_json_kv_opt_obj(j, "health", e->has_end))
        return;
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        if (e->health.v[i])
            kv_full(j, vv_health_name(i), e->health.v[i]);
    vv_json_end_obj(j);
}

static void dump_summary(vv_json *j, const vv_stream *s, const vv_fold *f)
{
    const vv_execution *e = f->execution;
    kv_thread(j, "execution_id", true, &e->root);
    vv_json_kv_opt_hex(j, "program_id", e->first_engine ? e->first_engine->program.b : NULL,
                       sizeof e->first_engine->program.b);
    kv_runtime_id(j, e->has_start, &e->runtime_id);
    kv_opt(j, "started_ns", e->has_start, e->started_ns);
    uint64_t unix_ns = 0;
    bool known = e->has_start && vv_stream_unix_ns(s, e->started_ns, &unix_ns);
    kv_opt(j, "started_unix_ns", known, unix_ns);
    kv_opt(j, "ended_ns", e->has_end, e->ended_ns);
    vv_json_kv_cstr(j, "status", vv_exec_status_name(e->status));
    vv_json_kv_cstr(j, "index_state", vv_index_state_name(e->index_state));
    vv_json_kv_arr(j, "data_range");
    vv_json_u64_full(j, e->first);
    vv_json_u64_full(j, e->last);
    vv_json_u64_full(j, e->count);
    vv_json_end_arr(j);
    kv_health(j, e);
    vv_json_kv_cstr(j, "data_state", f->complete ? "Complete" : "Incomplete");
    kv_full(j, "cct_health", f->health);
}

/* Opens the list called key. */
static void list(vv_cli_out *o, const char *key)
{
    vv_json_kv_arr(&o->j, key);
}

static void dump_issues(vv_cli_out *o, const vv_fold *f)
{
    list(o, "issues");
    for (size_t i = 0; i < f->issue_count && vv_cli_out_step(o); i++)
        dump_issue(&o->j, &f->issues[i]);
    vv_json_end_arr(&o->j);
    list(o, "thread_issues");
    for (size_t i = 0; i < f->thread_issue_count && vv_cli_out_step(o); i++) {
        vv_json_arr(&o->j);
        thread_value(&o->j, &f->thread_issues[i].thread);
        vv_json_cstr(&o->j, vv_thread_issue_name(f->thread_issues[i].kind));
        vv_json_end_arr(&o->j);
    }
    vv_json_end_arr(&o->j);
}

/* The sorted lists. False without memory for the orders. */
static bool dump_lists(vv_cli_out *o, const vv_fold *f)
{
    uint32_t *contexts = vv_fold_order_contexts(f), *threads = vv_fold_order_threads(f);
    uint32_t *spans = vv_fold_order_spans(f), *errors = vv_fold_order_errors(f);
    bool ok = contexts && threads && spans && errors;
    list(o, "contexts");
    for (size_t i = 0; ok && i < f->context_count && vv_cli_out_step(o); i++)
        dump_context(&o->j, &f->contexts[contexts[i]]);
    vv_json_end_arr(&o->j);
    list(o, "threads");
    for (size_t i = 0; ok && i < f->thread_count && vv_cli_out_step(o); i++)
        dump_thread(&o->j, &f->threads[threads[i]]);
    vv_json_end_arr(&o->j);
    list(o, "spans");
    for (size_t i = 0; ok && i < f->span_count && vv_cli_out_step(o); i++)
        dump_span(&o->j, &f->spans[spans[i]]);
    vv_json_end_arr(&o->j);
    list(o, "errors");
    for (size_t i = 0; ok && i < f->error_count && vv_cli_out_step(o); i++)
        dump_error(&o->j, &f->errors[errors[i]]);
    vv_json_end_arr(&o->j);
    free(contexts);
    free(threads);
    free(spans);
    free(errors);
    return ok;
}

static void dump_failed(vv_cli_out *o, const vv_execution *e, const char *name)
{
    vv_json_obj(&o->j);
    kv_thread(&o->j, "execution_id", true, &e->root);
    vv_json_kv_cstr(&o->j, "error", name);
    vv_json_end_obj(&o->j);
}

static vv_code dump_execution(vv_cli_out *o, const vv_store *store, const vv_stream *s, const vv_execution *e,
                              vv_error *err)
{
    vv_fold *f;
    vv_budget budget;
    vv_budget_init(&budget, FOLD_MAX);
    vv_code rc = vv_fold_load(&f, store, s, e, &budget, err);
    if (rc != VV_OK) {
        dump_failed(o, e, "LimitExceeded");
        return rc;
    }
    if (f->failed) {
        dump_failed(o, e, f->error.name);
    } else {
        vv_json_obj(&o->j);
        dump_summary(&o->j, s, f);
        dump_overflow(&o->j, f);
        dump_issues(o, f);
        if (!dump_lists(o, f))
            rc = vv_fail(err, VV_ERR_NOMEM, "no memory to sort an execution");
        vv_json_end_obj(&o->j);
    }
    vv_fold_free(f);
    return rc;
}

static int by_root(const void *a, const void *b)
{
    const vv_execution *const *x = a, *const *y = b;
    return memcmp(&(*x)->root, &(*y)->root, sizeof(*x)->root);
}

static vv_code dump_executions(vv_cli_out *o, const vv_store *store, const vv_stream *s, vv_error *err)
{
    const vv_execution **sorted = malloc((s->execution_count + 1) * sizeof *sorted);
    if (!sorted)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to sort executions");
    for (size_t i = 0; i < s->execution_count; i++)
        sorted[i] = vv_stream_execution_at(s, i);
    qsort(sorted, s->execution_count, sizeof *sorted, by_root);
    vv_code rc = VV_OK;
    for (size_t i = 0; i < s->execution_count && rc != VV_ERR_NOMEM && vv_cli_out_step(o); i++) {
        vv_code one = dump_execution(o, store, s, sorted[i], err);
        rc = rc == VV_OK ? one : rc;
    }
    free(sorted);
    return rc;
}

static void dump_gaps(vv_cli_out *o, const vv_stream *s)
{
    list(o, "index_gaps");
    for (size_t i = 0; i < s->meta_gap_count; i++)
        for (uint64_t seq = s->meta_gaps[i].first; seq <= s->meta_gaps[i].last && vv_cli_out_step(o); seq++)
            vv_json_u64_full(&o->j, seq);
    vv_json_end_arr(&o->j);
}

static void dump_header(vv_json *j, const vv_stream *s)
{
    if (!vv_json_kv_opt_obj(j, "header", s->has_header))
        return;
    kv_full(j, "pid", s->header.pid);
    kv_full(j, "zero_unix_ns", s->header.zero_unix_ns);
    vv_json_kv_str(j, "baml_version", s->header.version);
    vv_json_kv_str(j, "os_arch", s->header.os_arch);
    vv_json_end_obj(j);
}

static void dump_engine(vv_json *j, const vv_engine *e)
{
    vv_json_obj(j);
    kv_full(j, "engine", e->id);
    vv_json_kv_hex(j, "program_id", e->program.b, sizeof e->program.b);
    vv_json_kv_opt_hex(j, "function_table", e->has_table ? e->table.b : NULL, sizeof e->table.b);
    vv_json_kv_opt_str(j, "revision", &e->revision);
    vv_json_kv_opt_str(j, "source", &e->source);
    vv_json_end_obj(j);
}

static vv_code dump_orphans(vv_cli_out *o, const vv_store *store, const vv_stream *s, vv_error *err)
{
    vv_thread_ref *roots = NULL;
    size_t count = 0;
    vv_code rc = vv_stream_orphans(store, s, &roots, &count, err);
    list(o, "orphans");
    for (size_t i = 0; i < count && vv_cli_out_step(o); i++)
        thread_value(&o->j, &roots[i]);
    vv_json_end_arr(&o->j);
    free(roots);
    return rc;
}

static vv_code dump_stream(vv_cli_out *o, const vv_store *store, const vv_stream *s, vv_error *err)
{
    vv_json *j = &o->j;
    vv_code rc = VV_OK;
    vv_json_obj(j);
    vv_json_kv_hex(j, "euid", s->euid.b, sizeof s->euid.b);
    if (s->failed) {
        vv_json_kv_cstr(j, "error", s->error.name);
    } else {
        vv_json_kv_bool(j, "alive", s->alive || (s->meta_high == 0 && vv_stream_probe(store, &s->euid)));
        vv_json_kv_obj(j, "high_water");
        kv_full(j, "meta", s->meta_decoded);
        kv_full(j, "data", s->data_high);
        vv_json_end_obj(j);
        dump_gaps(o, s);
        dump_header(j, s);
        list(o, "engines");
        for (size_t i = 0; i < s->engine_count && vv_cli_out_step(o); i++)
            dump_engine(j, &s->engines[i]);
        vv_json_end_arr(j);
        list(o, "executions");
        rc = dump_executions(o, store, s, err);
        vv_json_end_arr(j);
        vv_code orphans = rc == VV_ERR_NOMEM ? rc : dump_orphans(o, store, s, err);
        rc = rc == VV_OK ? orphans : rc;
    }
    vv_json_end_obj(j);
    return rc;
}

vv_code vv_dump_document(vv_cli_out *o, const vv_store *store, vv_error *err)
{
    vv_code rc = VV_OK;
    vv_json_obj(&o->j);
    list(o, "streams");
    for (size_t i = 0; i < store->stream_count && rc != VV_ERR_NOMEM && vv_cli_out_step(o); i++) {
        vv_code one = dump_stream(o, store, &store->streams[i], err);
        rc = rc == VV_OK || one == VV_ERR_NOMEM ? one : rc;
    }
    vv_json_end_arr(&o->j);
    vv_json_end_obj(&o->j);
    vv_wr_u8(&o->w, '\n');
    return rc;
}
