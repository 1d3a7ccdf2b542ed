#include "config.h"

#include "views/checkpoint.h"

#include "reader/stream.h"

static const char *state_of(const vv_execution *x)
{
    if (x->has_end)
        return "ended";
    return x->status == VV_EXEC_RUNNING ? "running" : "abandoned";
}

/* A value of something that has happened: only that can be on its way. */
static uint64_t values_on_their_way(const vv_found *f, const vv_profile *p, const vv_fold_span *s)
{
    const vv_execution *x = f->execution;
    bool ended_well = s->has_end && s->end.status == VV_CALL_OK;
    bool failed = s->has_end && s->end.status == VV_CALL_ERRORED;
    uint64_t n = 0;
    if (!s->has_start)
        return 0;
    n += (s->start.roles & VV_ROLE_INPUT) && !s->has_input;
    n += ended_well && (s->start.roles & VV_ROLE_OUTPUT) && !s->has_output;
    vv_value_fate error = vv_span_error(x, p->fold, s).fate;
    n += failed && !s->has_terminal && (error == VV_VALUE_PENDING || error == VV_VALUE_UNKNOWN);
    return n;
}

static void look_at_spans(vv_checkpoint *c, const vv_found *f, const vv_profile *p)
{
    const vv_fold *fold = p->fold;
    uint64_t begun = 0;
    for (size_t i = 0; i < fold->span_count; i++) {
        const vv_fold_span *s = &fold->spans[i];
        begun += s->has_start;
        c->open_spans += s->has_start && !s->has_end;
        c->values += values_on_their_way(f, p, s);
        c->errors += s->has_terminal && !s->terminal.lost
            && vv_map_find(&fold->error_map, s->terminal.capture.b) == VV_MAP_NONE;
    }
    c->spans = c->spans > begun ? c->spans - begun : 0;
}

/* When the newest file of a plane was written; 0 where that is not known. */
static int64_t newest_of(vv_source *source, const vv_stream *s, vv_plane plane, const vv_seg_list *l)
{
    char path[VV_STREAM_PATH];
    vv_file_ident ident;
    if (l->mtime_ns || l->count == 0)
        return l->mtime_ns;
    /* It was an older one until those behind it went. */
    vv_seg room;
    vv_segment_path(path, &s->euid, plane, vv_seg_at(l, l->count - 1, &room)->sequence);
    return vv_source_ident(source, path, &ident, NULL) == VV_OK ? ident.mtime_ns : 0;
}

static void look_at_files(vv_checkpoint *c, vv_source *source, const vv_stream *s)
{
    const int64_t newest[] = {newest_of(source, s, VV_PLANE_META, &s->core->index->meta),
                              newest_of(source, s, VV_PLANE_DATA, &s->core->data)};
    for (size_t i = 0; i < VV_ARRAY_LEN(newest); i++) {
        int64_t last = newest[i];
        if (last <= 0 || (uint64_t)last <= c->written_unix_ns)
            continue;
        c->has_written = true;
        c->written_unix_ns = (uint64_t)last;
    }
}

vv_checkpoint vv_checkpoint_of(vv_source *source, const vv_found *f, const vv_loaded *x)
{
    const vv_profile *p = x->profile;
    const vv_fold *fold = p->fold;
    vv_checkpoint c = {.state = state_of(f->execution), .known = !f->execution->has_end && x->digest->known};
    look_at_files(&c, source, f->stream);
    if (!c.known)
        return c;
    c.open_calls = x->digest->totals.open;
    c.spans = x->digest->totals.selected;
    look_at_spans(&c, f, p);
    for (size_t i = 0; i < fold->thread_count; i++)
        c.open_threads += fold->threads[i].has_start && !fold->threads[i].has_end;
    for (size_t i = 0; i < fold->context_count; i++)
        c.contexts += !fold->contexts[i].defined;
    return c;
}

static void waters_json(vv_json *j, const char *key, uint64_t meta, uint64_t data)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u64(j, "meta", meta);
    vv_json_kv_u64(j, "data", data);
    vv_json_end_obj(j);
}

static void committed_json(vv_json *j, const vv_found *f, const vv_profile *p, const vv_checkpoint *c)
{
    const vv_execution *x = f->execution;
    const vv_stream *s = f->stream;
    char text[VV_TIME_TEXT];
    if (c->has_written)
        vv_time_text(text, c->written_unix_ns);
    vv_json_kv_obj(j, "committed");
    waters_json(j, "high_water", s->meta_contiguous, s->data_contiguous);
    waters_json(j, "highest", s->meta_high, s->data_high);
    vv_json_kv_cstr(j, "written_at", c->has_written ? text : NULL);
    vv_number_json(j, "start_meta_seq", x->has_start, x->start_sequence);
    vv_number_json(j, "end_meta_seq", x->has_end, x->end_sequence);
    vv_number_json(j, "groups", !p->fold->failed, p->fold->groups);
    vv_number_json(j, "groups_expected", x->has_end, x->count);
    vv_json_end_obj(j);
}

static void rest_json(vv_json *j, const vv_checkpoint *c)
{
    if (vv_json_kv_opt_obj(j, "in_flight", c->known)) {
        vv_json_kv_i128(j, "calls", c->open_calls);
        vv_json_kv_u64(j, "spans", c->open_spans);
        vv_json_kv_u64(j, "threads", c->open_threads);
        vv_json_end_obj(j);
    }
    if (vv_json_kv_opt_obj(j, "queued", c->known)) {
        vv_json_kv_u128(j, "spans", c->spans);
        vv_json_kv_u64(j, "values", c->values);
        vv_json_kv_u64(j, "errors", c->errors);
        vv_json_kv_u64(j, "contexts", c->contexts);
        vv_json_end_obj(j);
    }
}

vv_code vv_view_checkpoint(vv_json *j, vv_query *q, vv_error *err)
{
    vv_found f;
    vv_loaded x;
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_query_load_own(q, &f, &x, err);
    if (rc != VV_OK)
        return rc;
    const vv_checkpoint c = vv_checkpoint_of(q->look->store->source, &f, &x);
    vv_head_json(j, q->look, &x.digest->evidence, false, NULL);
    vv_execution_id_json(j, &f);
    vv_json_kv_cstr(j, "state", c.state);
    vv_json_kv_cstr(j, "status", vv_status_word(f.execution->status));
    vv_json_kv_bool(j, "alive", f.stream->alive);
    committed_json(j, &f, x.profile, &c);
    rest_json(j, &c);
    vv_json_end_obj(j);
    vv_loaded_release(q->library, &x);
    return VV_OK;
}
