#include "config.h"

#include "views/segments.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "reader/stream.h"

enum { STEP = 128 * 1024, VIEW = 80 };

static vv_code lacks(vv_query *q, const char *parameter, const char *what, vv_error *err)
{
    q->parameter = parameter;
    return vv_fail(err, VV_ERR_NOTFOUND, "%s", what);
}

static const vv_seg_list *list_of(const vv_stream *s, vv_plane plane)
{
    const vv_seg_list *const lists[VV_PLANES] = {&s->core->index->meta, &s->core->data, &s->core->index->health};
    return lists[plane];
}

vv_code vv_query_plane(vv_query *q, vv_plane_found *ret, vv_error *err)
{
    if (!vv_unhex(ret->euid.b, sizeof ret->euid.b, q->id))
        return vv_query_fail(q, "euid", err, "must be 32 hexadecimal digits");
    unsigned plane = 0;
    while (plane < VV_PLANES && !vv_str_eq(q->sub, vv_cstr(vv_plane_dir((vv_plane)plane))))
        plane++;
    if (plane == VV_PLANES)
        return lacks(q, "plane", "a stream has the planes meta, data and health", err);
    ret->plane = (vv_plane)plane;
    ret->stream = vv_store_stream(q->look->store, &ret->euid);
    if (!ret->stream)
        return lacks(q, "euid", "no stream of that id in this store", err);
    ret->list = list_of(ret->stream, ret->plane);
    return VV_OK;
}

vv_code vv_query_segment(vv_query *q, vv_open_file *ret, char name[VV_SEGMENT_SAVED_NAME], vv_error *err)
{
    vv_plane_found f;
    uint64_t sequence;
    char path[VV_STREAM_PATH], file[VV_SEGMENT_NAME];
    vv_error why = {0};
    vv_code rc = vv_query_plane(q, &f, err);
    if (rc != VV_OK)
        return rc;
    if (!vv_str_u64(q->third, &sequence))
        return vv_query_fail(q, "seq", err, "must be a segment's sequence, a whole number");
    vv_segment_path(path, &f.euid, f.plane, sequence);
    vv_hex(name, f.euid.b, sizeof f.euid.b);
    vv_segment_name(file, f.plane, sequence);
    snprintf(name + 32, VV_SEGMENT_SAVED_NAME - 32, "-%s", file);
    rc = sequence ? vv_source_open_file(q->look->store->source, path, ret, &why) : VV_ERR_NOTFOUND;
    if (rc == VV_ERR_NOTFOUND)
        return lacks(q, "seq", "the plane has no segment of that sequence", err);
    if (rc != VV_OK && err)
        *err = why;
    return rc;
}

static vv_code hash_file(void *state, uint8_t *sum, bool *ret_keep, vv_error *err)
{
    const vv_open_file *f = state;
    vv_sha256_ctx c;
    vv_code rc = VV_OK;
    uint8_t *step = malloc(STEP);
    (void)ret_keep;
    if (!step)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to read a segment");
    vv_sha256_init(&c);
    for (uint64_t at = 0; at < f->ident.size && rc == VV_OK;) {
        size_t n = f->ident.size - at < STEP ? (size_t)(f->ident.size - at) : STEP;
        rc = vv_open_file_read(f, at, step, n, err);
        if (rc == VV_OK)
            vv_sha256_update(&c, step, n);
        at += n;
    }
    vv_sha256_final(&c, sum);
    free(step);
    return rc;
}

vv_code vv_file_sum(vv_library *l, const vv_open_file *file, uint8_t sum[VV_SHA256_BYTES], vv_error *err)
{
    return vv_sums_get(vv_library_sums(l), file, NULL, hash_file, (void *)(uintptr_t)file, sum, err);
}

/* The next row from a sequence on; false where there is none. */
static bool next_row(const vv_seg_list *l, uint64_t from, vv_segment_row *ret)
{
    size_t at = vv_seg_list_from(l, from);
    if (at == l->count)
        return false;
    uint64_t first = vv_seg_run_at(l, at).first;
    *ret = first == from ? (vv_segment_row){from, from, at, false} : (vv_segment_row){from, first - 1, 0, true};
    return true;
}

static void fill(vv_segment_rows *r, vv_query *q, const char *view, uint64_t after)
{
    vv_segment_row row;
    vv_page *p = &r->page;
    while (after < UINT64_MAX && next_row(r->found.list, after + 1, &row)) {
        if (p->count == p->limit) {
            uint8_t position[8];
            vv_put64(position, after);
            p->more = true;
            vv_query_cursor_text(q, view, position, sizeof position, p->next);
            return;
        }
        r->rows[p->count++] = row;
        after = row.last;
    }
}

vv_code vv_segment_rows_make(vv_segment_rows *ret, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"after", "limit", "cursor", NULL};
    char view[VIEW], hex[33];
    uint64_t after = 0;
    *ret = (vv_segment_rows){.rows = NULL};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_plane(q, &ret->found, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "after", 0, UINT64_MAX, &after, err);
    if (rc != VV_OK)
        return rc;
    vv_hex(hex, ret->found.euid.b, sizeof ret->found.euid.b);
    snprintf(view, sizeof view, "segments %s %s", hex, vv_plane_dir(ret->found.plane));
    rc = vv_page_read(&ret->page, q, view, 8, err);
    if (rc != VV_OK)
        return rc;
    if (ret->page.has_after && vv_be64(ret->page.after) > after)
        after = vv_be64(ret->page.after);
    ret->rows = malloc((size_t)ret->page.limit * sizeof *ret->rows);
    if (!ret->rows)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a page");
    fill(ret, q, view, after);
    return VV_OK;
}

void vv_segment_rows_done(vv_segment_rows *r)
{
    free(r->rows);
    r->rows = NULL;
}

/* Records of a verified meta or health segment, from its header. */
static uint64_t records_of(const vv_plane_found *f, const vv_seg *seg)
{
    vv_meta_segment m = {0};
    vv_health_segment h = {0};
    if (f->plane == VV_PLANE_META)
        return vv_meta_open(&m, seg->bytes.p, seg->bytes.n, &f->euid, seg->sequence, true, NULL) == VV_OK
            ? m.record_count : 0;
    return vv_health_open(&h, seg->bytes.p, seg->bytes.n, &f->euid, seg->sequence, true, NULL) == VV_OK
        ? h.record_count : 0;
}

static void tell_state(vv_segment_facts *t, const vv_plane_found *f, const vv_seg *seg)
{
    static const char *const words[] = {"good", "corrupt", "unreadable"};
    t->state = words[seg->state];
    t->error = seg->state == VV_SEG_OK ? NULL : seg->why ? seg->why : "Io";
    t->has_count = seg->state == VV_SEG_OK;
    if (t->has_count)
        t->count = f->plane == VV_PLANE_DATA ? seg->group_count : records_of(f, seg);
}

vv_code vv_segment_facts_of(vv_segment_facts *ret, vv_library *l, const vv_look *look, const vv_plane_found *found,
                            const vv_segment_row *row, vv_error *err)
{
    VV_CLEANUP(vv_open_file_close) vv_open_file file = {.fd = -1};
    char path[VV_STREAM_PATH];
    vv_error why = {0};
    *ret = (vv_segment_facts){.state = "missing"};
    if (row->missing)
        return VV_OK;
    vv_seg room;
    tell_state(ret, found, vv_seg_at(found->list, row->at, &room));
    vv_segment_path(path, &found->euid, found->plane, row->first);
    vv_code rc = vv_source_open_file(look->store->source, path, &file, &why);
    if (rc == VV_OK)
        rc = vv_file_sum(l, &file, ret->sum, &why);
    if (rc == VV_ERR_NOMEM)
        return vv_fail(err, rc, "%s", why.msg);
    if (rc == VV_ERR_NOTFOUND) /* it has gone since the look */
        *ret = (vv_segment_facts){.state = "missing"};
    ret->has_file = rc == VV_OK;
    ret->bytes = file.ident.size;
    return VV_OK;
}

void vv_plane_waters(const vv_plane_found *f, uint64_t *ret_contiguous, uint64_t *ret_highest)
{
    const vv_seg_list *l = f->list;
    size_t contiguous = 0;
    for (vv_seg_run r; contiguous < l->count; contiguous += r.count) {
        r = vv_seg_run_at(l, contiguous);
        if (r.first != contiguous + 1 || r.state != VV_SEG_OK)
            break;
    }
    *ret_contiguous = contiguous;
    *ret_highest = l->count ? vv_seg_run_at(l, l->count - 1).first : 0;
}
