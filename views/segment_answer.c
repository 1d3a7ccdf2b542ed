#include "config.h"

#include "base/text.h"
#include "views/facts.h"
#include "views/segments.h"

typedef struct {
    vv_listing l;
    vv_segment_rows rows;
} state;

static void open_list(vv_listing *l, vv_json *j)
{
    const vv_plane_found *f = &((state *)l)->rows.found;
    uint64_t contiguous, highest;
    vv_plane_waters(f, &contiguous, &highest);
    vv_json_obj(j);
    vv_snapshot_json(j, "snapshot", l->look);
    vv_json_kv_hex(j, "euid", f->euid.b, sizeof f->euid.b);
    vv_json_kv_cstr(j, "plane", vv_plane_dir(f->plane));
    vv_json_kv_u64(j, "high_water", contiguous);
    vv_json_kv_u64(j, "highest", highest);
    vv_json_kv_arr(j, "items");
}

static void row_json(vv_listing *l, vv_json *j, size_t at)
{
    const state *s = (const state *)l;
    const vv_segment_row *row = &s->rows.rows[at];
    vv_segment_facts f;
    if (vv_segment_facts_of(&f, l->library, l->look, &s->rows.found, row, NULL) != VV_OK) {
        vv_wr_fail(j->out, "NoMemory");
        return;
    }
    bool data = s->rows.found.plane == VV_PLANE_DATA;
    vv_json_obj(j);
    vv_json_kv_u64(j, "sequence", row->first);
    vv_json_kv_u64(j, "last", row->last);
    vv_json_kv_cstr(j, "state", f.state);
    vv_json_kv_cstr(j, "error", f.error);
    vv_number_json(j, "bytes", f.has_file, f.bytes);
    vv_json_kv_opt_hex(j, "sha256", f.has_file ? f.sum : NULL, sizeof f.sum);
    vv_number_json(j, data ? "groups" : "records", f.has_count, f.count);
    vv_json_end_obj(j);
}

static void free_state(vv_listing *l)
{
    vv_segment_rows_done(&((state *)l)->rows);
}

vv_code vv_answer_segments(vv_answer *a, vv_query *q, vv_error *err)
{
    state *s = vv_listing_new(sizeof *s, free_state, q, err);
    if (!s)
        return VV_ERR_NOMEM;
    vv_code rc = vv_segment_rows_make(&s->rows, q, err);
    return vv_listing_start_page(a, &s->l, rc, (vv_listing_part){.open = open_list, .row = row_json}, &s->rows.page);
}
