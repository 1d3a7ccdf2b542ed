#include "config.h"

#include "format/evidence.h"

#include "base/text.h"

static const char error_magic[8] = {'B', 'A', 'M', 'L', 'E', 'R', 'R', '1'};
static const char terminal_magic[8] = {'B', 'A', 'M', 'L', 'T', 'E', 'R', '1'};
enum { ERROR_VERSION = 1, FACT_MIN = 5 };
enum { ROLES = 2, CALL_STATUSES = 4, THREAD_STATUSES = 3, ERROR_KINDS = 2, ERROR_SOURCES = 4, THREAD_KINDS = 2 };

const char *vv_call_status_name(vv_call_status s)
{
    static const char *const names[CALL_STATUSES] = {"Ok", "Errored", "Cancelled", "Exited"};
    return (unsigned)s < CALL_STATUSES ? names[s] : NULL;
}

const char *vv_thread_status_name(vv_thread_status s)
{
    static const char *const names[THREAD_STATUSES] = {"Completed", "Cancelled", "Errored"};
    return (unsigned)s < THREAD_STATUSES ? names[s] : NULL;
}

/* A code below limit. */
static uint8_t get_code(vv_rd *r, uint8_t limit)
{
    uint8_t v = vv_rd_u8(r);
    if (v >= limit)
        vv_rd_fail(r, "InvalidTag");
    return v;
}

static bool get_opt(vv_rd *r)
{
    return get_code(r, 2) == 1;
}

static uint8_t get_bits(vv_rd *r, uint8_t all)
{
    uint8_t v = vv_rd_u8(r);
    if (v & ~all)
        vv_rd_fail(r, "InvalidBits");
    return v;
}

static void get_call(vv_rd *r, vv_call_ref *ret)
{
    vv_rd_copy(r, ret->b, sizeof ret->b);
}

static void get_thread(vv_rd *r, vv_thread_ref *ret)
{
    vv_rd_copy(r, ret->b, sizeof ret->b);
}

static void get_context(vv_rd *r, vv_context_ref *ret)
{
    ret->overflow = get_opt(r);
    if (ret->overflow) {
        ret->reason = get_code(r, VV_OVERFLOW_REASONS);
        ret->edge = get_code(r, VV_EDGES);
    } else {
        vv_rd_copy(r, ret->key.b, sizeof ret->key.b);
    }
}

static void get_value(vv_rd *r, vv_value_state *ret)
{
    ret->lost = get_opt(r);
    if (ret->lost) {
        ret->loss = get_code(r, VV_VALUE_LOSSES);
        return;
    }
    vv_rd_copy(r, ret->cid.b, sizeof ret->cid.b);
    ret->codec = vv_rd_u16(r);
    ret->bytes = vv_rd_u64(r);
}

static bool get_opt_site(vv_rd *r, vv_site *ret)
{
    bool present = get_opt(r);
    if (present)
        vv_site_decode(r, ret);
    return present;
}

/* The string form of facts 8 and 9. */
static void get_estr(vv_rd *r, vv_opt_str *ret)
{
    ret->present = get_opt(r);
    if (!ret->present)
        return;
    ret->s = vv_rd_str(r, vv_rd_u64(r));
    if (!vv_utf8_valid(ret->s))
        vv_rd_fail(r, "InvalidUtf8");
}

static void get_span_start(vv_rd *r, vv_fact *ret)
{
    vv_span_start *f = &ret->span_start;
    get_call(r, &f->call);
    f->has_parent = get_opt(r);
    if (f->has_parent)
        get_call(r, &f->parent);
    get_thread(r, &f->thread);
    get_context(r, &f->context);
    f->function_id = vv_rd_u32(r);
    f->has_site = get_opt_site(r, &f->site);
    f->edge = get_code(r, VV_EDGES);
    f->started_ns = vv_rd_u64(r);
    f->reasons = get_bits(r, VV_REASONS_ALL);
    f->roles = get_bits(r, VV_ROLES_ALL);
    f->has_runtime_id = get_opt(r);
    if (f->has_runtime_id) {
        f->annotation_ordinal = vv_rd_u32(r);
        vv_rd_copy(r, f->runtime_id.b, sizeof f->runtime_id.b);
    }
}

static void get_span_end(vv_rd *r, vv_fact *ret)
{
    vv_span_end *f = &ret->span_end;
    get_call(r, &f->call);
    f->ended_ns = vv_rd_u64(r);
    f->status = get_code(r, CALL_STATUSES);
    f->inclusive_ns = vv_rd_u64(r);
}

static void get_span_runtime_id(vv_rd *r, vv_fact *ret)
{
    vv_span_runtime_id *f = &ret->span_runtime_id;
    get_call(r, &f->call);
    f->ordinal = vv_rd_u32(r);
    vv_rd_copy(r, f->id.b, sizeof f->id.b);
}

static void get_value_occurrence(vv_rd *r, vv_fact *ret)
{
    vv_value_occurrence *f = &ret->value;
    get_call(r, &f->call);
    get_context(r, &f->context);
    f->role = get_code(r, ROLES);
    get_value(r, &f->value);
}

/* Magic and version of the two nested error records. */
static void get_error_head(vv_rd *r, const char *magic)
{
    const uint8_t *m = vv_rd_take(r, 8);
    if (m && memcmp(m, magic, 8) != 0)
        vv_rd_fail(r, "InvalidMagic");
    if (vv_rd_u16(r) != ERROR_VERSION)
        vv_rd_fail(r, "UnsupportedVersion");
}

static void get_error_capture(vv_rd *r, vv_fact *ret)
{
    vv_error_capture *f = &ret->error_capture;
    get_error_head(r, error_magic);
    vv_rd_copy(r, f->id.b, sizeof f->id.b);
    get_call(r, &f->throw_call);
    get_context(r, &f->context);
    f->function_id = vv_rd_u32(r);
    f->has_site = get_opt(r);
    if (f->has_site) {
        f->site.file = vv_rd_u32(r);
        f->site.line = vv_rd_u32(r);
        f->site.start = vv_rd_u32(r);
        f->site.end = vv_rd_u32(r);
    }
    f->kind = get_code(r, ERROR_KINDS);
    f->source = get_code(r, ERROR_SOURCES);
    get_value(r, &f->value);
}

static void get_terminal_error(vv_rd *r, vv_fact *ret)
{
    vv_terminal_error *f = &ret->terminal_error;
    get_error_head(r, terminal_magic);
    get_call(r, &f->call);
    f->lost = get_opt(r);
    if (f->lost)
        f->loss = get_code(r, VV_CAPTURE_LOSSES);
    else
        vv_rd_copy(r, f->capture.b, sizeof f->capture.b);
}

static void get_thread_start(vv_rd *r, vv_fact *ret)
{
    vv_thread_start *f = &ret->thread_start;
    get_thread(r, &f->thread);
    f->has_parent = get_opt(r);
    if (f->has_parent)
        get_thread(r, &f->parent);
    f->has_spawn_call = get_opt(r);
    if (f->has_spawn_call)
        get_call(r, &f->spawn_call);
    f->has_spawn_site = get_opt_site(r, &f->spawn_site);
    f->started_ns = vv_rd_u64(r);
    f->kind = get_code(r, THREAD_KINDS);
    uint32_t n = vv_rd_u32(r);
    if (n > VV_THREAD_NAME_MAX)
        vv_rd_fail(r, "NameTooLong");
    f->name = vv_rd_str(r, n);
    if (!vv_utf8_valid(f->name))
        vv_rd_fail(r, "InvalidBits");
}

static void get_thread_end(vv_rd *r, vv_fact *ret)
{
    vv_thread_end *f = &ret->thread_end;
    get_thread(r, &f->thread);
    f->ended_ns = vv_rd_u64(r);
    f->status = get_code(r, THREAD_STATUSES);
}

static void get_log(vv_rd *r, vv_fact *ret)
{
    vv_log_event *f = &ret->log;
    f->has_call = get_opt(r);
    if (f->has_call)
        get_call(r, &f->call);
    f->timestamp_ms = vv_rd_u64(r);
    get_estr(r, &f->level);
    f->has_site = get_opt_site(r, &f->site);
    f->has_column = get_opt(r);
    if (f->has_column)
        f->column = vv_rd_u32(r);
    get_estr(r, &f->message);
    get_estr(r, &f->event);
    get_estr(r, &f->distinct_id);
    get_value(r, &f->context);
    get_value(r, &f->data);
}

static void get_call_scope(vv_rd *r, vv_fact *ret)
{
    vv_call_scope *f = &ret->call_scope;
    get_call(r, &f->call);
    get_estr(r, &f->distinct_id);
    get_value(r, &f->context);
}

/* Nested bodies have an error name of their own for any fault inside. */
static const struct {
    void (*get)(vv_rd *r, vv_fact *ret);
    bool nested;
} decoders[VV_FACTS] = {
    [VV_FACT_SPAN_START] = {get_span_start, false},
    [VV_FACT_SPAN_END] = {get_span_end, false},
    [VV_FACT_SPAN_RUNTIME_ID] = {get_span_runtime_id, false},
    [VV_FACT_VALUE] = {get_value_occurrence, false},
    [VV_FACT_ERROR_CAPTURE] = {get_error_capture, true},
    [VV_FACT_TERMINAL_ERROR] = {get_terminal_error, true},
    [VV_FACT_THREAD_START] = {get_thread_start, false},
    [VV_FACT_THREAD_END] = {get_thread_end, false},
    [VV_FACT_LOG] = {get_log, false},
    [VV_FACT_CALL_SCOPE] = {get_call_scope, false},
};

void vv_evidence_open(vv_evidence_cursor *c, const uint8_t *p, size_t n, uint64_t record_count)
{
    *c = (vv_evidence_cursor){.r = vv_rd_init(p, n), .expected = record_count};
    c->left = c->facts = vv_rd_count(&c->r, FACT_MIN);
}

bool vv_evidence_next(vv_evidence_cursor *c, vv_fact *ret)
{
    if (c->left == 0)
        return false;
    c->left--;
    vv_rd *r = &c->r;
    uint8_t tag = vv_rd_u8(r);
    vv_rd body = vv_rd_sub(r, vv_rd_u32(r));
    if (vv_rd_ok(r) && tag >= VV_FACTS)
        vv_rd_fail(r, "InvalidTag");
    if (!vv_rd_ok(r)) {
        c->left = 0;
        return false;
    }
    memset(ret, 0, sizeof *ret);
    ret->tag = (vv_fact_tag)tag;
    decoders[tag].get(&body, ret);
    if (vv_rd_left(&body))
        vv_rd_fail(&body, "TrailingBytes");
    if (vv_rd_ok(&body))
        return true;
    c->inner = decoders[tag].nested ? body.why : NULL;
    r->at = body.base + body.bad_off;
    vv_rd_fail(r, decoders[tag].nested ? "InvalidNestedError" : body.why);
    c->left = 0;
    return false;
}

vv_code vv_evidence_finish(vv_evidence_cursor *c, vv_error *err)
{
    vv_fact unread;
    while (vv_evidence_next(c, &unread))
        ;
    if (vv_rd_left(&c->r))
        vv_rd_fail(&c->r, "TrailingBytes");
    if (c->facts != c->expected)
        vv_rd_fail(&c->r, "RecordCountMismatch");
    vv_code rc = vv_rd_error(&c->r, "evidence", err);
    if (c->inner)
        vv_context(err, "%s", c->inner);
    return rc;
}

static void put_context(vv_wr *w, const vv_context_ref *c)
{
    vv_wr_u8(w, c->overflow);
    if (c->overflow) {
        vv_wr_u8(w, c->reason);
        vv_wr_u8(w, c->edge);
    } else {
        vv_wr_bytes(w, c->key.b, sizeof c->key.b);
    }
}

static void put_value(vv_wr *w, const vv_value_state *v)
{
    vv_wr_u8(w, v->lost);
    if (v->lost) {
        vv_wr_u8(w, v->loss);
        return;
    }
    vv_wr_bytes(w, v->cid.b, sizeof v->cid.b);
    vv_wr_u16(w, v->codec);
    vv_wr_u64(w, v->bytes);
}

static void put_opt(vv_wr *w, bool present, const void *p, size_t n)
{
    vv_wr_u8(w, present);
    if (present)
        vv_wr_bytes(w, p, n);
}

static void put_opt_site(vv_wr *w, bool present, const vv_site *s)
{
    vv_wr_u8(w, present);
    if (present)
        vv_site_encode(w, s);
}

static void put_span_start(vv_wr *w, const vv_fact *fact)
{
    const vv_span_start *f = &fact->span_start;
    vv_wr_bytes(w, f->call.b, sizeof f->call.b);
    put_opt(w, f->has_parent, f->parent.b, sizeof f->parent.b);
    vv_wr_bytes(w, f->thread.b, sizeof f->thread.b);
    put_context(w, &f->context);
    vv_wr_u32(w, f->function_id);
    put_opt_site(w, f->has_site, &f->site);
    vv_wr_u8(w, f->edge);
    vv_wr_u64(w, f->started_ns);
    vv_wr_u8(w, f->reasons);
    vv_wr_u8(w, f->roles);
    vv_wr_u8(w, f->has_runtime_id);
    if (f->has_runtime_id) {
        vv_wr_u32(w, f->annotation_ordinal);
        vv_wr_bytes(w, f->runtime_id.b, sizeof f->runtime_id.b);
    }
}

static void put_span_end(vv_wr *w, const vv_fact *fact)
{
    const vv_span_end *f = &fact->span_end;
    vv_wr_bytes(w, f->call.b, sizeof f->call.b);
    vv_wr_u64(w, f->ended_ns);
    vv_wr_u8(w, f->status);
    vv_wr_u64(w, f->inclusive_ns);
}

static void put_span_runtime_id(vv_wr *w, const vv_fact *fact)
{
    const vv_span_runtime_id *f = &fact->span_runtime_id;
    vv_wr_bytes(w, f->call.b, sizeof f->call.b);
    vv_wr_u32(w, f->ordinal);
    vv_wr_bytes(w, f->id.b, sizeof f->id.b);
}

static void put_value_occurrence(vv_wr *w, const vv_fact *fact)
{
    const vv_value_occurrence *f = &fact->value;
    vv_wr_bytes(w, f->call.b, sizeof f->call.b);
    put_context(w, &f->context);
    vv_wr_u8(w, f->role);
    put_value(w, &f->value);
}

static void put_error_capture(vv_wr *w, const vv_fact *fact)
{
    const vv_error_capture *f = &fact->error_capture;
    vv_wr_bytes(w, error_magic, sizeof error_magic);
    vv_wr_u16(w, ERROR_VERSION);
    vv_wr_bytes(w, f->id.b, sizeof f->id.b);
    vv_wr_bytes(w, f->throw_call.b, sizeof f->throw_call.b);
    put_context(w, &f->context);
    vv_wr_u32(w, f->function_id);
    vv_wr_u8(w, f->has_site);
    if (f->has_site) {
        vv_wr_u32(w, f->site.file);
        vv_wr_u32(w, f->site.line);
        vv_wr_u32(w, f->site.start);
        vv_wr_u32(w, f->site.end);
    }
    vv_wr_u8(w, f->kind);
    vv_wr_u8(w, f->source);
    put_value(w, &f->value);
}

static void put_terminal_error(vv_wr *w, const vv_fact *fact)
{
    const vv_terminal_error *f = &fact->terminal_error;
    vv_wr_bytes(w, terminal_magic, sizeof terminal_magic);
    vv_wr_u16(w, ERROR_VERSION);
    vv_wr_bytes(w, f->call.b, sizeof f->call.b);
    vv_wr_u8(w, f->lost);
    if (f->lost)
        vv_wr_u8(w, f->loss);
    else
        vv_wr_bytes(w, f->capture.b, sizeof f->capture.b);
}

static void put_thread_start(vv_wr *w, const vv_fact *fact)
{
    const vv_thread_start *f = &fact->thread_start;
    vv_wr_bytes(w, f->thread.b, sizeof f->thread.b);
    put_opt(w, f->has_parent, f->parent.b, sizeof f->parent.b);
    put_opt(w, f->has_spawn_call, f->spawn_call.b, sizeof f->spawn_call.b);
    put_opt_site(w, f->has_spawn_site, &f->spawn_site);
    vv_wr_u64(w, f->started_ns);
    vv_wr_u8(w, f->kind);
    size_t n = vv_utf8_cut(f->name, VV_THREAD_NAME_MAX);
    vv_wr_u32(w, (uint32_t)n);
    vv_wr_bytes(w, f->name.p, n);
}

static void put_thread_end(vv_wr *w, const vv_fact *fact)
{
    const vv_thread_end *f = &fact->thread_end;
    vv_wr_bytes(w, f->thread.b, sizeof f->thread.b);
    vv_wr_u64(w, f->ended_ns);
    vv_wr_u8(w, f->status);
}

void vv_fact_encode(vv_wr *w, const vv_fact *f)
{
    static void (*const encoders[VV_FACTS])(vv_wr *w, const vv_fact *f) = {
        [VV_FACT_SPAN_START] = put_span_start,
        [VV_FACT_SPAN_END] = put_span_end,
        [VV_FACT_SPAN_RUNTIME_ID] = put_span_runtime_id,
        [VV_FACT_VALUE] = put_value_occurrence,
        [VV_FACT_ERROR_CAPTURE] = put_error_capture,
        [VV_FACT_TERMINAL_ERROR] = put_terminal_error,
        [VV_FACT_THREAD_START] = put_thread_start,
        [VV_FACT_THREAD_END] = put_thread_end,
    };
    if ((unsigned)f->tag >= VV_FACTS || !encoders[f->tag]) {
        vv_wr_fail(w, "InvalidTag");
        return;
    }
    vv_wr_u8(w, (uint8_t)f->tag);
    size_t at = w->len;
    vv_wr_u32(w, 0);
    encoders[f->tag](w, f);
    vv_wr_patch32(w, at, (uint32_t)(w->len - at - 4));
}
