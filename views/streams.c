#include "config.h"

#include "views/streams.h"

#include "base/text.h"
#include "views/executions.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000, GAPS_MAX = 100 };

static void gaps_json(vv_json *j, const char *key, const vv_range *runs, size_t n)
{
    vv_json_kv_arr(j, key);
    for (size_t i = 0; i < n && i < GAPS_MAX; i++) {
        vv_json_arr(j);
        vv_json_u64(j, runs[i].first);
        vv_json_u64(j, runs[i].last);
        vv_json_end_arr(j);
    }
    vv_json_end_arr(j);
}

static void plane_json(vv_json *j, const char *key, uint64_t contiguous, uint64_t highest, const vv_range *bad,
                       size_t bad_count)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u64(j, "high_water", contiguous);
    vv_json_kv_u64(j, "highest", highest);
    gaps_json(j, "gaps", bad, bad_count);
    vv_json_kv_u64(j, "gaps_total", bad_count);
    vv_json_end_obj(j);
}

static void header_json(vv_json *j, const vv_stream *s)
{
    if (!s->has_header) {
        static const char *const keys[] = {"pid", "started_unix_ns", "started_at", "version", "os_arch"};
        for (size_t i = 0; i < VV_ARRAY_LEN(keys); i++)
            vv_json_kv_null(j, keys[i]);
        return;
    }
    char text[VV_TIME_TEXT];
    vv_time_text(text, s->header.zero_unix_ns);
    vv_json_kv_u64(j, "pid", s->header.pid);
    vv_json_kv_u64(j, "started_unix_ns", s->header.zero_unix_ns);
    vv_json_kv_cstr(j, "started_at", text);
    vv_json_kv_str(j, "version", s->header.version);
    vv_json_kv_str(j, "os_arch", s->header.os_arch);
}

static void engines_json(vv_json *j, const vv_stream *s)
{
    vv_json_kv_arr(j, "engines");
    for (size_t i = 0; i < s->engine_count; i++) {
        const vv_engine *e = &s->engines[i];
        vv_json_obj(j);
        vv_json_kv_u64(j, "engine_id", e->id);
        vv_json_kv_hex(j, "program_id", e->program.b, sizeof e->program.b);
        vv_json_kv_opt_hex(j, "function_table", e->has_table ? e->table.b : NULL, sizeof e->table.b);
        vv_json_kv_opt_str(j, "revision_id", &e->revision);
        vv_json_kv_opt_str(j, "source_label", &e->source);
        vv_json_end_obj(j);
    }
    vv_json_end_arr(j);
}

static void stream_json(vv_json *j, const vv_stream *s)
{
    vv_json_obj(j);
    vv_json_kv_hex(j, "euid", s->euid.b, sizeof s->euid.b);
    vv_json_kv_opt_bool(j, "alive", !s->unprobed, s->alive);
    vv_json_kv_cstr(j, "error", s->failed ? (s->error.name ? s->error.name : "Io") : NULL);
    header_json(j, s);
    vv_json_kv_u64(j, "executions", s->execution_count);
    plane_json(j, "meta", s->meta_contiguous, s->meta_high, s->meta_bad, s->meta_bad_count);
    plane_json(j, "data", s->data_contiguous, s->data_high, s->data_bad, s->data_bad_count);
    engines_json(j, s);
    vv_json_end_obj(j);
}

vv_code vv_stream_page_read(vv_stream_page *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"limit", "cursor", NULL};
    const vv_store *store = q->look->store;
    uint64_t limit = LIMIT_DEFAULT;
    vv_euid after = {{0}};
    bool has_cursor;
    *ret = (vv_stream_page){.first = 0};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "limit", 1, LIMIT_MAX, &limit, err);
    if (rc == VV_OK)
        rc = vv_query_cursor(q, "streams", after.b, sizeof after.b, &has_cursor, err);
    if (rc != VV_OK)
        return rc;
    while (has_cursor && ret->first < store->stream_count
           && memcmp(store->streams[ret->first].euid.b, after.b, sizeof after.b) <= 0)
        ret->first++;
    size_t left = store->stream_count - ret->first;
    ret->count = left < limit ? left : (size_t)limit;
    if (ret->count < left) {
        const vv_euid *last = &store->streams[ret->first + ret->count - 1].euid;
        vv_query_cursor_text(q, "streams", last->b, sizeof last->b, ret->next);
    }
    return VV_OK;
}

vv_code vv_view_streams(vv_json *j, vv_query *q, vv_error *err)
{
    vv_stream_page p;
    vv_code rc = vv_stream_page_read(&p, q, err);
    if (rc != VV_OK)
        return rc;
    vv_json_obj(j);
    vv_snapshot_json(j, "snapshot", q->look);
    vv_json_kv_arr(j, "items");
    for (size_t i = 0; i < p.count; i++)
        stream_json(j, &q->look->store->streams[p.first + i]);
    vv_json_end_arr(j);
    vv_json_kv_cstr(j, "next", *p.next ? p.next : NULL);
    vv_json_end_obj(j);
    return VV_OK;
}

vv_code vv_view_stream(vv_json *j, vv_query *q, vv_error *err)
{
    vv_euid euid;
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc != VV_OK)
        return rc;
    if (!vv_unhex(euid.b, sizeof euid.b, q->id))
        return vv_query_fail(q, "euid", err, "must be 32 hexadecimal digits");
    const vv_stream *s = vv_store_stream(q->look->store, &euid);
    if (!s) {
        q->parameter = "euid";
        return vv_fail(err, VV_ERR_NOTFOUND, "no stream of that id in this store");
    }
    vv_json_obj(j);
    vv_snapshot_json(j, "snapshot", q->look);
    vv_json_key(j, "stream");
    stream_json(j, s);
    vv_json_end_obj(j);
    return VV_OK;
}
