#include "config.h"

#include "views/facts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

const char *const vv_call_words[] = {"ok", "errored", "cancelled", "exited"};
const char *const vv_thread_words[] = {"completed", "cancelled", "errored"};
const char *const vv_capture_kinds[] = {"fresh", "rethrow"};
const char *const vv_capture_sources[] = {"bytecode", "native_call", "engine_call", "future_resume"};
const char *const vv_reason_words[] = {"root", "llm", "manual"};

vv_life vv_life_of(const vv_execution *x, bool has_start, bool has_end)
{
    if (!has_start)
        return VV_LIFE_START_MISSING;
    if (has_end)
        return VV_LIFE_ENDED;
    if (x->has_end)
        return VV_LIFE_END_MISSING;
    return x->status == VV_EXEC_RUNNING ? VV_LIFE_OPEN : VV_LIFE_UNFINISHED;
}

const char *vv_life_word(vv_life l)
{
    static const char *const words[VV_LIVES] = {"ended", "open", "unfinished", "end_missing", "start_missing"};
    return words[l];
}

#define LOST "lost:"
static const char *const value_losses[VV_VALUE_LOSSES] = {
    LOST "value_memory_exceeded", LOST "value_attempt_transport_exceeded",
    LOST "error_capture_attempt_transport_exceeded", LOST "value_too_large", LOST "copy_failed", LOST "encode_failed",
    LOST "cas_write_failed", LOST "cas_conflict", LOST "disk_guard_exceeded",
    LOST "evidence_segment_publish_failed", LOST "store_unavailable",
};
static const char *const capture_losses[VV_CAPTURE_LOSSES] = {
    LOST "error_capture_attempt_transport_exceeded", LOST "missing_structural_join", LOST "start_uncommitted",
    LOST "evidence_queue_full", LOST "evidence_segment_publish_failed", LOST "disk_guard_exceeded",
    LOST "store_unavailable",
};

const char *vv_capture_loss_word(unsigned code)
{
    return code < VV_CAPTURE_LOSSES ? capture_losses[code] + strlen(LOST) : NULL;
}

static vv_value_view fate(vv_value_fate f)
{
    static const char *const words[] = {"available", "not_captured", "not_applicable", "pending", "unknown",
                                        "unresolved", LOST "unknown"};
    return (vv_value_view){f, words[f], NULL};
}

vv_value_view vv_value_of(const vv_value_state *v)
{
    if (!v->lost)
        return (vv_value_view){VV_VALUE_AVAILABLE, "available", v};
    if (v->loss >= VV_VALUE_LOSSES)
        return fate(VV_VALUE_LOST);
    return (vv_value_view){VV_VALUE_LOST, value_losses[v->loss], NULL};
}

/* What can be said of a value that there is no fact of. */
static vv_value_view without_fact(const vv_execution *x, const vv_fold_span *s, unsigned role)
{
    if (!s->has_start)
        return fate(VV_VALUE_UNKNOWN);
    if (!(s->start.roles & role))
        return fate(VV_VALUE_NOT_CAPTURED);
    return fate(x->status == VV_EXEC_RUNNING && !x->has_end ? VV_VALUE_PENDING : VV_VALUE_UNKNOWN);
}

vv_value_view vv_span_input(const vv_execution *x, const vv_fold_span *s)
{
    return s->has_input ? vv_value_of(&s->input) : without_fact(x, s, VV_ROLE_INPUT);
}

vv_value_view vv_span_output(const vv_execution *x, const vv_fold_span *s)
{
    if (s->has_output)
        return vv_value_of(&s->output);
    if (s->has_end && s->end.status != VV_CALL_OK)
        return fate(VV_VALUE_NOT_APPLICABLE);
    return without_fact(x, s, VV_ROLE_OUTPUT);
}

vv_value_view vv_span_error(const vv_execution *x, const vv_fold *f, const vv_fold_span *s)
{
    if (s->has_terminal && s->terminal.lost) {
        vv_value_view v = fate(VV_VALUE_LOST);
        if (s->terminal.loss < VV_CAPTURE_LOSSES)
            v.word = capture_losses[s->terminal.loss];
        return v;
    }
    if (s->has_terminal) {
        uint32_t at = vv_map_find(&f->error_map, s->terminal.capture.b);
        if (at != VV_MAP_NONE)
            return vv_value_of(&f->errors[at].value);
        return fate(x->status == VV_EXEC_RUNNING && !x->has_end ? VV_VALUE_PENDING : VV_VALUE_UNRESOLVED);
    }
    if (s->has_end && s->end.status != VV_CALL_ERRORED)
        return fate(VV_VALUE_NOT_APPLICABLE);
    return without_fact(x, s, VV_ROLE_ERROR);
}

const vv_function *vv_function_of(const vv_profile *p, uint32_t id)
{
    return p->has_table ? vv_function_table_find(&p->table, id) : NULL;
}

size_t vv_function_texts(const vv_function *d, vv_text_field out[VV_FUNCTION_TEXTS])
{
    const vv_str none = {NULL, 0};
    const vv_text_field all[VV_FUNCTION_TEXTS] = {
        {"name", d->fqn}, {"display_name", d->display_name},
        {"definition_key", d->definition_key.present ? d->definition_key.s : none},
        {"file", d->source_file.present ? d->source_file.s : none},
    };
    size_t n = 0;
    for (size_t i = 0; i < VV_FUNCTION_TEXTS; i++)
        if (all[i].text.n)
            out[n++] = all[i];
    return n;
}

vv_str vv_function_label(const vv_profile *p, uint32_t id, char scratch[VV_FUNCTION_SCRATCH])
{
    const vv_function *d = vv_function_of(p, id);
    if (d && d->fqn.n)
        return d->fqn;
    int n = snprintf(scratch, VV_FUNCTION_SCRATCH, "function#%" PRIu32, id);
    return (vv_str){scratch, (size_t)n};
}

vv_str vv_span_label(const vv_profile *p, const vv_fold_span *s, char scratch[VV_FUNCTION_SCRATCH])
{
    return s->has_start ? vv_function_label(p, s->start.function_id, scratch) : vv_cstr("?");
}

uint32_t vv_node_of(const vv_profile *p, const vv_context_ref *ref)
{
    if (!ref->overflow) {
        uint32_t at = vv_fold_find_context(p->fold, &ref->key);
        return at == VV_MAP_NONE ? VV_NONE : p->node_at[at];
    }
    const vv_fold *f = p->fold;
    uint32_t at = p->context_count;
    for (unsigned r = 0; r < VV_OVERFLOW_REASONS; r++)
        for (unsigned e = 0; e < VV_EDGES; e++) {
            if (!f->overflow_present[r][e])
                continue;
            if (r == ref->reason && e == ref->edge)
                return at;
            at++;
        }
    return VV_NONE;
}

bool vv_same_context(const vv_context_ref *a, const vv_context_ref *b)
{
    if (a->overflow != b->overflow)
        return false;
    return a->overflow ? a->reason == b->reason && a->edge == b->edge : memcmp(&a->key, &b->key, sizeof a->key) == 0;
}

static bool same_engine(const vv_thread_ref *root, const uint8_t *ref)
{
    return memcmp(root->b, ref, 24) == 0;
}

void vv_thread_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_thread_ref *t)
{
    out[0] = 0;
    if (same_engine(root, t->b))
        snprintf(out, VV_PART_ID, "%" PRIu64, vv_thread_number(t));
}

void vv_call_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_call_ref *c)
{
    vv_thread_ref t = vv_call_thread(c);
    out[0] = 0;
    if (same_engine(root, c->b))
        snprintf(out, VV_PART_ID, "%" PRIu64 ".%" PRIu64, vv_thread_number(&t), vv_call_number(c));
}

void vv_capture_short(char out[VV_PART_ID], const vv_thread_ref *root, const vv_capture_id *c)
{
    vv_thread_ref t = vv_capture_thread(c);
    out[0] = 0;
    if (same_engine(root, c->b))
        snprintf(out, VV_PART_ID, "%" PRIu64 "~%" PRIu64, vv_thread_number(&t), vv_capture_ordinal(c));
}

void vv_capture_text(char out[VV_CAPTURE_TEXT], const vv_capture_id *c)
{
    vv_thread_ref t = vv_capture_thread(c);
    vv_thread_text(out, &t);
    snprintf(out + strlen(out), 22, "~%" PRIu64, vv_capture_ordinal(c));
}

bool vv_counts_whole(const vv_fold *f)
{
    bool whole = !f->failed && !(f->health & VV_HEALTH_COUNTER_SATURATED);
    for (size_t i = 0; i < f->issue_count && whole; i++)
        whole = f->issues[i].kind != VV_ISSUE_MISSING_SEGMENT && f->issues[i].kind != VV_ISSUE_CORRUPT_SEGMENT
            && f->issues[i].kind != VV_ISSUE_GROUP_COUNT;
    return whole;
}

bool vv_thread_named(vv_str s, const vv_thread_ref *root, vv_thread_ref *ret)
{
    uint64_t number;
    if (!vv_str_u64(s, &number))
        return vv_thread_parse(s, ret, NULL) == VV_OK;
    vv_euid euid;
    memcpy(euid.b, root->b, sizeof euid.b);
    *ret = vv_thread_ref_make(&euid, vv_thread_engine(root), number);
    return true;
}

/* Splits "<thread><between><number>". */
static bool part_named(vv_str s, char between, const vv_thread_ref *root, vv_thread_ref *ret, uint64_t *ret_number)
{
    const char *at = s.n ? memrchr(s.p, between, s.n) : NULL;
    if (!at)
        return false;
    vv_str left = {s.p, (size_t)(at - s.p)}, right = {at + 1, s.n - left.n - 1};
    return vv_str_u64(right, ret_number) && vv_thread_named(left, root, ret);
}

bool vv_call_named(vv_str s, const vv_thread_ref *root, vv_call_ref *ret)
{
    vv_thread_ref t;
    uint64_t number;
    if (!part_named(s, '.', root, &t, &number))
        return vv_call_parse(s, ret, NULL) == VV_OK;
    *ret = vv_call_ref_make(&t, number);
    return true;
}

bool vv_capture_named(vv_str s, const vv_thread_ref *root, vv_capture_id *ret)
{
    vv_thread_ref t;
    uint64_t number;
    if (!part_named(s, '~', root, &t, &number))
        return false;
    *ret = vv_capture_id_make(&t, number);
    return true;
}

void vv_call_id_json(vv_json *j, const char *key, const vv_call_ref *c)
{
    char text[VV_CALL_TEXT];
    if (c)
        vv_call_text(text, c);
    vv_json_kv_cstr(j, key, c ? text : NULL);
}

void vv_thread_id_json(vv_json *j, const char *key, const vv_thread_ref *t)
{
    char text[VV_THREAD_TEXT];
    if (t)
        vv_thread_text(text, t);
    vv_json_kv_cstr(j, key, t ? text : NULL);
}

void vv_short_json(vv_json *j, const char *key, const char *text)
{
    vv_json_kv_cstr(j, key, *text ? text : NULL);
}

void vv_number_json(vv_json *j, const char *key, bool known, vv_u128 v)
{
    vv_json_key(j, key);
    if (known)
        vv_json_u128(j, v);
    else
        vv_json_null(j);
}

void vv_clock_json(vv_json *j, const char *key, const vv_stream *s, bool known, uint64_t ns)
{
    char text[VV_TIME_TEXT];
    uint64_t unix_ns;
    known = known && vv_stream_unix_ns(s, ns, &unix_ns);
    if (known)
        vv_time_text(text, unix_ns);
    vv_json_kv_cstr(j, key, known ? text : NULL);
}

/* The longest prefix and suffix of the keys here. */
enum { KEY = 48 };

static const char *key_of(char out[KEY], const char *prefix, const char *suffix)
{
    snprintf(out, KEY, "%s%s", prefix, suffix);
    return out;
}

void vv_site_json(vv_json *j, const vv_profile *p, const char *prefix, const vv_site *site)
{
    char key[KEY];
    const vv_source_file *file = site && p->has_table ? vv_function_table_file(&p->table, site->file) : NULL;
    bool has_bytes = site && (site->start || site->end);
    vv_json_kv_str_or_null(j, key_of(key, prefix, "_file"), file ? &file->path : NULL);
    vv_number_json(j, key_of(key, prefix, "_line"), site && site->line, site ? site->line : 0);
    vv_number_json(j, key_of(key, prefix, "_start"), has_bytes, site ? site->start : 0);
    vv_number_json(j, key_of(key, prefix, "_end"), has_bytes, site ? site->end : 0);
}

void vv_context_ref_json(vv_json *j, const char *path_key, const char *reason_key, const vv_context_ref *ref)
{
    bool normal = ref && !ref->overflow, overflow = ref && ref->overflow && ref->reason < VV_OVERFLOW_REASONS;
    vv_json_kv_opt_hex(j, path_key, normal ? ref->key.b : NULL, sizeof ref->key.b);
    vv_json_kv_cstr(j, reason_key, overflow ? vv_overflow_reasons[ref->reason] : NULL);
}

void vv_value_view_json(vv_json *j, const char *prefix, const vv_value_view *v)
{
    char key[KEY], text[VV_CID_TEXT];
    if (v->value)
        vv_cid_text(text, &v->value->cid);
    vv_json_kv_cstr(j, key_of(key, prefix, "_state"), v->word);
    vv_json_kv_cstr(j, key_of(key, prefix, "_cid"), v->value ? text : NULL);
}

void vv_value_object_json(vv_json *j, const char *key, const vv_value_view *v)
{
    if (!vv_json_kv_opt_obj(j, key, v->value))
        return;
    vv_json_kv_u64(j, "codec", v->value->codec);
    vv_json_kv_u64(j, "bytes", v->value->bytes);
    vv_json_end_obj(j);
}

void vv_function_id_json(vv_json *j, const vv_profile *p, const char *prefix, bool known, uint32_t id)
{
    char key[KEY];
    const vv_function *d = known ? vv_function_of(p, id) : NULL;
    bool has_key = d && d->definition_key.present && d->definition_key.s.n;
    vv_number_json(j, key_of(key, prefix, "function_id"), known, id);
    vv_json_kv_str_or_null(j, key_of(key, prefix, "fqn"), d ? &d->fqn : NULL);
    vv_json_kv_opt_str(j, key_of(key, prefix, "definition_key"), has_key ? &d->definition_key : NULL);
}

void vv_execution_id_json(vv_json *j, const vv_found *f)
{
    vv_thread_id_json(j, "execution_id", &f->execution->root);
}

void vv_ratio_json(vv_json *j, const char *key, bool known, vv_u128 part, vv_u128 whole)
{
    vv_json_key(j, key);
    if (known && whole)
        vv_json_ratio(j, (double)part / (double)whole);
    else
        vv_json_null(j);
}
