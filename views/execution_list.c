#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "views/execution_list.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };

typedef struct {
    bool has_status, has_stream, has_program;
    unsigned status;
    vv_times times;
    uint64_t limit;
    vv_euid stream;
    vv_program_id program;
    const vv_str *text;
} filter;

static vv_code read_id(vv_query *q, const char *name, bool *has, uint8_t out[16], vv_error *err)
{
    const vv_str *s = vv_query_value(q, name);
    *has = s != NULL;
    if (!s || vv_unhex(out, 16, *s))
        return VV_OK;
    return vv_query_fail(q, name, err, "must be 32 hexadecimal digits");
}

static vv_code read_filter(vv_query *q, filter *f, vv_error *err)
{
    static const char *const names[] = {"status", "q", "since", "until", "stream", "program", "limit", "cursor", NULL};
    static const char *const statuses[] = {"succeeded", "failed", "cancelled", "panicked", "abandoned", "running"};
    *f = (filter){.limit = LIMIT_DEFAULT};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_word(q, "status", statuses, VV_ARRAY_LEN(statuses), &f->status, err);
    if (rc == VV_OK)
        rc = vv_query_times(q, &f->times, err);
    if (rc == VV_OK)
        rc = read_id(q, "stream", &f->has_stream, f->stream.b, err);
    if (rc == VV_OK)
        rc = read_id(q, "program", &f->has_program, f->program.b, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "limit", 1, LIMIT_MAX, &f->limit, err);
    f->has_status = vv_query_value(q, "status") != NULL;
    f->text = vv_query_value(q, "q");
    return rc;
}

/* What the index alone decides. A start that is unknown is in no span of time. */
static bool index_matches(const filter *f, const vv_found *x)
{
    return (!f->has_status || x->execution->status == f->status)
        && (!f->times.has_since || (x->has_time && x->unix_ns >= f->times.since))
        && (!f->times.has_until || (x->has_time && x->unix_ns < f->times.until))
        && (!f->has_stream || memcmp(f->stream.b, x->stream->euid.b, 16) == 0)
        && (!f->has_program
            || (x->execution->first_engine && memcmp(f->program.b, x->execution->first_engine->program.b, 16) == 0));
}

/* Newest first: a smaller position is later in the list. */
static bool after_position(const uint8_t position[VV_FOUND_PLACE], const vv_found *f)
{
    uint8_t own[VV_FOUND_PLACE];
    vv_found_place(own, f);
    return memcmp(own, position, VV_FOUND_PLACE) < 0;
}

void vv_execution_page_done(const vv_query *q, vv_execution_page *p)
{
    for (size_t i = 0; i < p->count; i++)
        vv_digest_release(q->library, p->items[i].digest);
    free(p->items);
    vv_evidence_done(&p->evidence);
}

static vv_code collect(vv_query *q, const filter *f, const vv_order *o, vv_execution_page *ret, vv_error *err)
{
    uint8_t position[VV_FOUND_PLACE];
    bool has_cursor;
    vv_code rc = vv_query_cursor(q, "executions", position, sizeof position, &has_cursor, err);
    if (rc != VV_OK)
        return rc;
    ret->items = malloc((f->limit < o->count ? f->limit : o->count) * sizeof *ret->items + 1);
    if (!ret->items)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a page");
    for (size_t i = 0; i < o->count; i++) {
        const vv_found *x = &o->items[i];
        if ((has_cursor && !after_position(position, x)) || !index_matches(f, x))
            continue;
        if (ret->count == f->limit && !f->text) {
            ret->more = true;
            break;
        }
        const vv_digest *d;
        rc = vv_library_digest(q->library, q->look, x->stream, x->execution, &d, err);
        if (rc != VV_OK)
            return rc;
        bool match = !f->text || f->text->n == 0 || vv_execution_word(x->execution, d, *f->text);
        if (match && ret->count < f->limit) {
            ret->items[ret->count++] = (vv_execution_row){*x, d};
            continue;
        }
        vv_digest_release(q->library, d);
        if (match) {
            ret->more = true;
            break;
        }
    }
    return VV_OK;
}

static vv_code page_evidence(const vv_query *q, vv_execution_page *p, vv_error *err)
{
    vv_code rc = VV_OK;
    for (size_t i = 0; i < p->count && rc == VV_OK; i++)
        rc = vv_evidence_merge(&p->evidence, &p->items[i].digest->evidence, err);
    return rc == VV_OK ? vv_evidence_unreadable(&p->evidence, q->look, err) : rc;
}

vv_code vv_execution_page_read(vv_execution_page *ret, vv_query *q, vv_error *err)
{
    filter f;
    const vv_order *o;
    *ret = (vv_execution_page){.items = NULL};
    vv_code rc = read_filter(q, &f, err);
    if (rc == VV_OK)
        rc = vv_library_order(q->library, q->look, &o, err);
    if (rc != VV_OK)
        return rc;
    rc = collect(q, &f, o, ret, err);
    vv_order_unref(o);
    if (rc == VV_OK)
        rc = page_evidence(q, ret, err);
    if (rc == VV_OK && ret->more && ret->count) {
        uint8_t position[VV_FOUND_PLACE];
        vv_found_place(position, &ret->items[ret->count - 1].found);
        vv_query_cursor_text(q, "executions", position, sizeof position, ret->next);
    }
    return rc;
}

static void page_json(vv_json *j, const vv_query *q, const vv_execution_page *p)
{
    vv_head_json(j, q->look, &p->evidence, p->more, NULL);
    vv_json_kv_arr(j, "items");
    for (size_t i = 0; i < p->count; i++) {
        vv_json_obj(j);
        vv_execution_fields_json(j, &p->items[i].found, p->items[i].digest);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
    vv_json_kv_cstr(j, "next", *p->next ? p->next : NULL);
    vv_json_end_obj(j);
}

vv_code vv_view_executions(vv_json *j, vv_query *q, vv_error *err)
{
    vv_execution_page p;
    vv_code rc = vv_execution_page_read(&p, q, err);
    if (rc == VV_OK)
        page_json(j, q, &p);
    vv_execution_page_done(q, &p);
    return rc;
}
