#include "config.h"

#include "reader/segment_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "reader/ledger.h"
#include "reader/source_ops.h"

void vv_stream_dir(char out[VV_STREAM_PATH], const vv_euid *euid)
{
    char hex[33];
    vv_hex(hex, euid->b, sizeof euid->b);
    snprintf(out, VV_STREAM_PATH, "streams/%s", hex);
}

void vv_plane_path(char out[VV_STREAM_PATH], const vv_euid *euid, vv_plane plane)
{
    vv_stream_dir(out, euid);
    strcat(out, "/");
    strcat(out, vv_plane_dir(plane));
}

void vv_segment_path(char out[VV_STREAM_PATH], const vv_euid *euid, vv_plane plane, uint64_t sequence)
{
    char name[VV_SEGMENT_NAME];
    vv_plane_path(out, euid, plane);
    vv_segment_name(name, plane, sequence);
    strcat(out, "/");
    strcat(out, name);
}

/* The file's bytes, for those who hold views into them. */
static vv_code keep(vv_seg *seg, const uint8_t *p, size_t n, vv_error *err)
{
    seg->bytes = (vv_blob){malloc(n), n};
    if (!seg->bytes.p)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a segment");
    memcpy(seg->bytes.p, p, n);
    return VV_OK;
}

static vv_code walk_health(const vv_euid *euid, vv_seg *seg, const uint8_t *p, size_t n, bool trusted, vv_error *err)
{
    vv_health_segment h;
    vv_code rc = vv_health_open(&h, p, n, euid, seg->sequence, trusted, err);
    bool more = rc == VV_OK;
    vv_health_record record;
    while (more && rc == VV_OK)
        rc = vv_health_next(&h, &record, &more, err);
    return rc == VV_OK ? keep(seg, p, n, err) : rc;
}

static vv_code walk_meta(const vv_euid *euid, vv_seg *seg, const uint8_t *p, size_t n, bool trusted, vv_error *err)
{
    vv_meta_segment m;
    vv_code rc = vv_meta_open(&m, p, n, euid, seg->sequence, trusted, err);
    bool more = rc == VV_OK;
    vv_meta_record record;
    while (more && rc == VV_OK)
        rc = vv_meta_next(&m, &record, &more, err);
    return rc == VV_OK ? keep(seg, p, n, err) : rc;
}

/* Keys are gathered behind the last offset that there can be, and move up to the last one that there is. */
static vv_code walk_data(const vv_euid *euid, vv_seg *seg, const uint8_t *p, size_t n, bool trusted, vv_error *err)
{
    vv_data_segment d;
    vv_code rc = vv_data_open(&d, p, n, euid, seg->sequence, trusted, err);
    if (rc != VV_OK)
        return rc;
    size_t cap = vv_rd_left(&d.payload) / VV_GROUP_FIXED;
    if (cap > d.group_count)
        cap = (size_t)d.group_count;
    if (!vv_seg_make_groups(seg, cap))
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the groups of a segment");
    uint32_t *key = seg->off + cap + 1;
    seg->off[0] = (uint32_t)vv_rd_off(&d.payload);
    seg->keys_ascend = true;
    for (bool more = true;;) {
        vv_group g;
        rc = vv_data_next(&d, &g, &more, err);
        if (rc != VV_OK || !more)
            break;
        uint32_t i = seg->group_count++;
        key[i] = vv_be32(g.root.b + 28);
        seg->off[i + 1] = (uint32_t)(g.off + g.len);
        if (i && key[i] < key[i - 1])
            seg->keys_ascend = false;
    }
    memmove(seg->off + seg->group_count + 1, key, seg->group_count * sizeof *key);
    return rc;
}

/* Segments of one plane that are to be read and verified, two at a time. */
typedef struct {
    vv_source *source;
    const vv_euid *euid;
    vv_plane plane;
    vv_seg **places[2]; /* where they stand in the list; NULL there afterwards: the file has gone */
    size_t waiting;
    vv_group_buffer bufs[2];
} loader;

static void loader_done(loader *l)
{
    for (size_t i = 0; i < VV_ARRAY_LEN(l->bufs); i++)
        vv_group_buffer_done(&l->bufs[i]);
}

/*
 * Tells the ledger of a file that was verified. A change after the file was opened is stamped by the clock of that
 * moment or later, so it shows in the identity only if the file is older than that.
 */
static void tell_ledger(const loader *l, const vv_seg *seg, const vv_segment_reading *r)
{
    vv_seg_ledger *ledger = l->source->ledger;
    if (!ledger || r->is_known || r->ident.ctime_ns >= r->began_ns || r->ident.mtime_ns >= r->began_ns)
        return;
    vv_seg_row row = {seg->sequence, r->ident, seg->group_count, seg->off ? vv_seg_keys(seg) : NULL, seg->off};
    ledger->keep(ledger, l->euid, l->plane, &row);
}

/* What it remembers of a file is not so, or the file has gone. */
static void forget(const loader *l, uint64_t sequence)
{
    vv_seg_ledger *ledger = l->source->ledger;
    if (ledger)
        ledger->forget(ledger, l->euid, l->plane, sequence);
}

static void identify(vv_seg *seg, const vv_file_ident *ident)
{
    seg->mark = vv_seg_mark(ident);
    seg->mtime_ns = ident->mtime_ns;
}

static bool is_unreadable(vv_code rc, const vv_error *fault)
{
    return rc == VV_ERR_IO || (fault->name && strcmp(fault->name, "NotRegularFile") == 0);
}

/* What a file holds that was read. No memory is a failure; whatever else is wrong becomes the segment's state. */
static vv_code take_file(const loader *l, vv_seg **place, vv_segment_reading *r, const vv_group_buffer *buf,
                         vv_error *err)
{
    vv_seg *seg = *place;
    identify(seg, &r->ident);
    static vv_code (*const walks[VV_PLANES])(const vv_euid *, vv_seg *, const uint8_t *, size_t, bool, vv_error *) = {
        walk_meta, walk_data, walk_health};
    vv_code rc = r->rc;
    if (rc == VV_OK)
        rc = walks[l->plane](l->euid, seg, buf->p, (size_t)r->ident.size, r->trusted, &r->fault);
    if (rc == VV_ERR_NOMEM)
        return vv_fail(err, rc, "%s", r->fault.msg);
    if (rc == VV_ERR_NOTFOUND) {
        vv_seg_unref(seg);
        *place = NULL;
    } else if (rc != VV_OK) {
        seg->state = is_unreadable(rc, &r->fault) ? VV_SEG_UNREADABLE : VV_SEG_CORRUPT;
        seg->why = r->fault.name;
        vv_seg_drop_content(seg);
    } else {
        tell_ledger(l, seg, r);
    }
    return VV_OK;
}

static void open_file(const loader *l, vv_segment_reading *r, const vv_seg *seg)
{
    char path[VV_STREAM_PATH];
    vv_segment_path(path, l->euid, l->plane, seg->sequence);
    vv_segment_open(r, l->source, path, l->plane);
}

static vv_code load_waiting(loader *l, vv_error *err)
{
    vv_segment_reading r[2];
    size_t n = l->waiting;
    l->waiting = 0;
    for (size_t i = 0; i < n; i++)
        open_file(l, &r[i], *l->places[i]);
    bool pairs = n == 2 && vv_segment_pairs(&r[0], &r[1]);
    if (pairs)
        vv_segment_read(&r[0], &l->bufs[0], &r[1], &l->bufs[1]);
    vv_code rc = VV_OK;
    for (size_t i = 0; i < n; i++) {
        vv_group_buffer *buf = &l->bufs[pairs ? i : 0];
        if (!pairs)
            vv_segment_read(&r[i], buf, NULL, NULL);
        if (rc == VV_OK)
            rc = take_file(l, l->places[i], &r[i], buf, err);
    }
    return rc;
}

static vv_code new_seg(vv_seg **ret, uint64_t sequence, vv_error *err)
{
    *ret = vv_seg_new(sequence);
    return *ret ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a segment");
}

static vv_code load_later(loader *l, vv_seg **place, uint64_t sequence, vv_error *err)
{
    vv_code rc = new_seg(place, sequence, err);
    if (rc != VV_OK)
        return rc;
    l->places[l->waiting++] = place;
    return l->waiting == VV_ARRAY_LEN(l->places) ? load_waiting(l, err) : VV_OK;
}

/* Are these groups of a file of that size, in order and without a gap? Finds out whether the keys ascend. */
static bool groups_fit(const vv_seg_row *row, bool *ret_ascend)
{
    bool ascend = true;
    if (!row->off || !row->key || row->ident.size > VV_SEGMENT_FILE_MAX || row->off[0] != VV_DATA_HEADER
        || row->off[row->group_count] != row->ident.size - VV_SEAL_BYTES)
        return false;
    for (uint32_t i = 0; i < row->group_count; i++) {
        if (row->off[i + 1] < row->off[i] || row->off[i + 1] - row->off[i] < VV_GROUP_FIXED)
            return false;
        ascend &= i == 0 || row->key[i] >= row->key[i - 1];
    }
    *ret_ascend = ascend;
    return true;
}

/* A data segment by the ledger's word alone; NULL where its file is another one. Takes the row's groups. */
static vv_seg *recall_data(const loader *l, vv_seg_row *row)
{
    char path[VV_STREAM_PATH];
    vv_segment_path(path, l->euid, l->plane, row->sequence);
    vv_file_ident ident;
    bool ascend;
    vv_seg *seg = NULL;
    if (vv_source_ident(l->source, path, &ident, NULL) != VV_OK || !vv_file_ident_eq(&ident, &row->ident)
        || !groups_fit(row, &ascend) || new_seg(&seg, row->sequence, NULL) != VV_OK)
        return NULL;
    identify(seg, &ident);
    seg->group_count = row->group_count;
    seg->keys_ascend = ascend;
    seg->recalled = true;
    if (row->group_count > 1) {
        seg->off = row->off;
        row->off = NULL;
    } else {
        seg->off = seg->one;
        memcpy(seg->one, row->off, (2 * (size_t)row->group_count + 1) * sizeof *row->off);
    }
    return seg;
}

/* A segment of another plane, read without its checksum where its file is the row's. NULL where the row is void. */
static vv_code read_known(loader *l, vv_seg **place, const vv_seg_row *row, vv_error *err)
{
    vv_code rc = new_seg(place, row->sequence, err);
    if (rc != VV_OK)
        return rc;
    vv_segment_reading r;
    open_file(l, &r, *place);
    r.is_known = r.rc == VV_OK && vv_file_ident_eq(&r.ident, &row->ident);
    if (!r.is_known) {
        vv_open_file_close(&r.file);
        r.rc = VV_ERR_NOTFOUND;
    } else {
        vv_segment_read(&r, &l->bufs[0], NULL, NULL);
    }
    rc = take_file(l, place, &r, &l->bufs[0], err);
    if (rc == VV_OK && *place && (*place)->state != VV_SEG_OK) {
        vv_seg_unref(*place);
        *place = NULL;
    }
    return rc;
}

/* A segment of which the ledger has a row; it is verified after all where the row is void. */
static vv_code recall(loader *l, vv_seg **place, vv_seg_row *row, vv_error *err)
{
    vv_code rc = VV_OK;
    if (l->plane == VV_PLANE_DATA)
        *place = recall_data(l, row);
    else
        rc = read_known(l, place, row, err);
    if (rc != VV_OK || *place)
        return rc;
    forget(l, row->sequence);
    return load_later(l, place, row->sequence, err);
}

void vv_seg_rows_done(vv_seg_rows *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->rows[i].off);
    }
    free(r->rows);
    *r = (vv_seg_rows){NULL, 0};
}

/* The ledger's row of a sequence, for ascending ones; what it has of files in between has gone. */
static vv_seg_row *row_of(const loader *l, const vv_seg_rows *rows, size_t *at, uint64_t sequence)
{
    while (*at < rows->count && rows->rows[*at].sequence < sequence)
        forget(l, rows->rows[(*at)++].sequence);
    return *at < rows->count && rows->rows[*at].sequence == sequence ? &rows->rows[(*at)++] : NULL;
}

/* Is it for the same reason that it can't be opened? */
static bool is_still_unreadable(const loader *l, const vv_seg *seg)
{
    vv_segment_reading r;
    open_file(l, &r, seg);
    vv_open_file_close(&r.file);
    return is_unreadable(r.rc, &r.fault) && strcmp(r.fault.name ? r.fault.name : "", seg->why ? seg->why : "") == 0;
}

/* Is segment i of the former look, which may have no such one, this file still? */
static bool is_known(const loader *l, const vv_seg_list *former, size_t i, uint64_t sequence)
{
    vv_seg room;
    const vv_seg *seg = i < former->count ? vv_seg_at(former, i, &room) : NULL;
    if (!seg || seg->sequence != sequence)
        return false;
    if (seg->state == VV_SEG_UNREADABLE)
        return is_still_unreadable(l, seg);
    char path[VV_STREAM_PATH];
    vv_segment_path(path, l->euid, l->plane, sequence);
    vv_file_ident ident;
    return vv_source_ident(l->source, path, &ident, NULL) == VV_OK && vv_seg_mark(&ident) == seg->mark;
}

/* A list that is being made, and what follows in it. */
typedef struct {
    loader *loader;
    vv_seg_list list;
    vv_seg *tail[1024];
    size_t count;
} making;

static void making_done(making *m)
{
    vv_seg_list_done(&m->list);
    for (size_t i = 0; i < m->count; i++)
        vv_seg_unref(m->tail[i]);
}

/* All that is waiting is read, and stands in the list. */
static vv_code flush(making *m, vv_error *err)
{
    vv_code rc = load_waiting(m->loader, err);
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->tail[i]) /* else it has gone */
            m->tail[kept++] = m->tail[i];
    m->count = kept;
    vv_seg_list longer;
    if (rc == VV_OK)
        rc = vv_seg_list_extend(&longer, &m->list, m->list.count, m->tail, m->count, err);
    if (rc != VV_OK)
        return rc;
    vv_seg_list_done(&m->list);
    m->list = longer;
    m->count = 0;
    return VV_OK;
}

/* Where the next one is to be put. */
static vv_code next_place(making *m, vv_seg ***ret, vv_error *err)
{
    vv_code rc = m->count == VV_ARRAY_LEN(m->tail) ? flush(m, err) : VV_OK;
    if (rc == VV_OK) {
        *ret = &m->tail[m->count++];
        **ret = NULL;
    }
    return rc;
}

/* Segment i of former, if it is that file still; else what the file holds, by the ledger's row where there is one. */
static vv_code add(making *m, const vv_seg_list *former, size_t i, uint64_t sequence, vv_seg_row *row, vv_error *err)
{
    vv_seg **place;
    vv_code rc = next_place(m, &place, err);
    if (rc == VV_OK && is_known(m->loader, former, i, sequence))
        *place = vv_seg_take(former, i);
    if (rc != VV_OK || *place)
        return rc;
    return row ? recall(m->loader, place, row, err) : load_later(m->loader, place, sequence, err);
}

/* The sequences of a plane's files. */
typedef struct {
    vv_plane plane;
    uint64_t *at;
    size_t count, cap;
} sequences;

static void sequences_done(sequences *s)
{
    free(s->at);
}

static vv_code note_name(void *state, vv_str name, vv_error *err)
{
    sequences *s = state;
    char text[VV_SEGMENT_NAME];
    uint64_t sequence;
    if (name.n >= sizeof text)
        return VV_OK;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    if (!vv_segment_parse(text, s->plane, &sequence))
        return VV_OK;
    if (s->count == VV_SOURCE_NAMES_MAX)
        return vv_fail(err, VV_ERR_LIMIT, "a directory of more than %d segments", VV_SOURCE_NAMES_MAX);
    if (!vv_grow(&s->at, &s->cap, s->count, sizeof *s->at))
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a directory");
    s->at[s->count++] = sequence;
    return VV_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* In order, each once. */
static void sort_sequences(sequences *s)
{
    size_t kept = 0;
    if (s->count)
        qsort(s->at, s->count, sizeof *s->at, by_number);
    for (size_t i = 0; i < s->count; i++)
        if (i == 0 || s->at[i] != s->at[kept - 1])
            s->at[kept++] = s->at[i];
    s->count = kept;
}

/* What has not changed since former is shared up to the first file that has. */
static vv_code make_list(making *m, const sequences *files, const vv_seg_list *former, vv_error *err)
{
    static const vv_seg_list nothing;
    loader *l = m->loader;
    VV_CLEANUP(vv_seg_rows_done) vv_seg_rows rows = {0};
    size_t row = 0, at = 0;
    if (l->source->ledger && (!former || (former->count == 0 && files->count > 0)))
        l->source->ledger->recall(l->source->ledger, l->euid, l->plane, &rows);
    if (!former)
        former = &nothing;
    while (at < files->count && is_known(l, former, at, files->at[at]))
        at++;
    vv_code rc = vv_seg_list_extend(&m->list, former, at, NULL, 0, err);
    for (; rc == VV_OK && at < files->count; at++)
        rc = add(m, former, vv_seg_list_from(former, files->at[at]), files->at[at],
                 row_of(l, &rows, &row, files->at[at]), err);
    for (; rc == VV_OK && row < rows.count; row++)
        forget(l, rows.rows[row].sequence);
    return rc == VV_OK ? flush(m, err) : rc;
}

/* Gives the list away. */
static vv_code finish(vv_seg_list *ret, making *m, vv_code rc)
{
    if (rc == VV_OK) {
        *ret = m->list;
        m->list = (vv_seg_list){.array = NULL};
    }
    return rc;
}

vv_code vv_seg_list_load(vv_seg_list *ret, vv_source *source, const vv_euid *euid, vv_plane plane,
                         const vv_seg_list *former, vv_error *err)
{
    char dir[VV_STREAM_PATH];
    vv_plane_path(dir, euid, plane);
    VV_CLEANUP(sequences_done) sequences files = {.plane = plane};
    vv_error fault = {0};
    vv_code rc = vv_source_each(source, dir, note_name, &files, &fault);
    if (rc == VV_ERR_NOTFOUND) {
        *ret = (vv_seg_list){.array = NULL};
        return VV_OK;
    }
    if (rc != VV_OK) {
        if (err && err->code == VV_OK)
            *err = fault;
        return rc;
    }
    VV_CLEANUP(loader_done) loader l = {.source = source, .euid = euid, .plane = plane};
    VV_CLEANUP(making_done) making m = {.loader = &l};
    sort_sequences(&files);
    return finish(ret, &m, make_list(&m, &files, former, err));
}

/* Segments of former as they are. */
static vv_code share(making *m, const vv_seg_list *former, size_t from, size_t to, vv_error *err)
{
    vv_code rc = VV_OK;
    for (; rc == VV_OK && from < to; from++) {
        vv_seg **place;
        rc = next_place(m, &place, err);
        if (rc == VV_OK && (*place = vv_seg_take(former, from)) == NULL)
            rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a segment");
    }
    return rc;
}

/* The changed segments, which ascend, and former's around them: those before the first as they stand there. */
static vv_code merge(making *m, const vv_seg_list *former, const uint64_t *changed, size_t count, vv_error *err)
{
    size_t at = count ? vv_seg_list_from(former, changed[0]) : former->count;
    vv_code rc = vv_seg_list_extend(&m->list, former, at, NULL, 0, err);
    for (size_t i = 0; i < count && rc == VV_OK; i++) {
        size_t here = vv_seg_list_from(former, changed[i]);
        rc = share(m, former, at, here, err);
        if (rc == VV_OK)
            rc = add(m, former, here, changed[i], NULL, err);
        at = here + (here < former->count && vv_seg_run_at(former, here).first == changed[i]);
    }
    if (rc == VV_OK)
        rc = share(m, former, at, former->count, err);
    return rc == VV_OK ? flush(m, err) : rc;
}

vv_code vv_seg_list_update(vv_seg_list *ret, vv_source *source, const vv_euid *euid, vv_plane plane,
                           const vv_seg_list *former, const vv_plane_change *change, vv_error *err)
{
    uint64_t changed[VV_CHANGED_SEGMENTS];
    size_t count = 0;
    VV_CLEANUP(loader_done) loader l = {.source = source, .euid = euid, .plane = plane};
    VV_CLEANUP(making_done) making m = {.loader = &l};
    for (unsigned i = 0; i < change->count; i++) {
        uint64_t sequence = change->sequences[i];
        if (!is_known(&l, former, vv_seg_list_from(former, sequence), sequence)) /* else it is told of again */
            changed[count++] = sequence;
    }
    qsort(changed, count, sizeof *changed, by_number);
    return finish(ret, &m, merge(&m, former, changed, count, err));
}

/* First group whose key may be this one. */
static uint32_t first_candidate(const vv_seg *seg, uint32_t key)
{
    uint32_t lo = 0, hi = seg->keys_ascend ? seg->group_count : 0;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (vv_seg_keys(seg)[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Reads group i and decodes its frame again: the file may have changed since it was verified. */
static vv_code read_group(const vv_open_file *f, const vv_seg *seg, uint32_t i, size_t max, vv_group_buffer *buf,
                          vv_group *ret, vv_error *err)
{
    if (seg->open_end) {
        vv_code rc = vv_segment_check_size(f, VV_PLANE_DATA, err);
        if (rc != VV_OK)
            return rc;
    }
    uint64_t end = seg->open_end ? f->ident.size - VV_SEAL_BYTES : seg->off[i + 1];
    if (end > f->ident.size || end < seg->off[i])
        return vv_fail_decode(err, "Truncated", seg->off[i], "the segment changed while it was read");
    size_t n = (size_t)(end - seg->off[i]);
    if (n > max)
        return vv_fail(err, VV_ERR_LIMIT, "a group of %zu bytes, more than %zu", n, max);
    if (!vv_group_buffer_room(buf, n))
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a group of %zu bytes", n);
    vv_code rc = vv_open_file_read(f, seg->off[i], buf->p, n, err);
    if (rc != VV_OK)
        return rc;
    vv_data_segment one = {.group_count = 1, .payload = vv_rd_init(buf->p, n)};
    bool more;
    rc = vv_data_next(&one, ret, &more, err);
    if (rc == VV_OK && (ret->len != n || vv_be32(ret->root.b + 28) != vv_seg_keys(seg)[i]))
        rc = vv_fail_decode(err, "TrailingBytes", seg->off[i], "the segment changed while it was read");
    return rc;
}

static vv_code find_group(vv_source *source, const vv_euid *euid, const vv_seg *seg, const vv_thread_ref *root,
                          size_t max, vv_group_buffer *buf, vv_group *ret, bool *ret_found, vv_error *err)
{
    *ret_found = false;
    uint32_t key = vv_be32(root->b + 28);
    VV_CLEANUP(vv_open_file_close) vv_open_file f = {.fd = -1};
    bool is_open = false;
    for (uint32_t i = first_candidate(seg, key); i < seg->group_count; i++) {
        if (seg->keys_ascend && vv_seg_keys(seg)[i] != key)
            break;
        if (vv_seg_keys(seg)[i] != key)
            continue;
        vv_code rc = VV_OK;
        if (!is_open) {
            char path[VV_STREAM_PATH];
            vv_segment_path(path, euid, VV_PLANE_DATA, seg->sequence);
            rc = vv_source_open_file(source, path, &f, err);
            is_open = rc == VV_OK;
        }
        if (rc == VV_OK)
            rc = read_group(&f, seg, i, max, buf, ret, err);
        if (rc != VV_OK)
            return rc;
        if (memcmp(ret->root.b, root->b, sizeof root->b) == 0) {
            *ret_found = true;
            return VV_OK;
        }
    }
    return VV_OK;
}

/* The same where a ledger's word of the groups turned out wrong: the file is read and verified after all. */
static vv_code find_group_afresh(vv_source *source, const vv_euid *euid, const vv_seg *seg, const vv_thread_ref *root,
                                 size_t max, vv_group_buffer *buf, vv_group *ret, bool *ret_found, vv_error *err)
{
    VV_CLEANUP(loader_done) loader alone = {.source = source, .euid = euid, .plane = VV_PLANE_DATA};
    vv_seg *fresh = NULL;
    forget(&alone, seg->sequence);
    vv_code rc = load_later(&alone, &fresh, seg->sequence, err);
    if (rc == VV_OK)
        rc = load_waiting(&alone, err);
    if (rc == VV_OK && !fresh)
        rc = vv_fail(err, VV_ERR_NOTFOUND, "the segment has gone");
    else if (rc == VV_OK && fresh->state == VV_SEG_OK)
        rc = find_group(source, euid, fresh, root, max, buf, ret, ret_found, err);
    else if (rc == VV_OK)
        rc = vv_fail_decode(err, fresh->why, 0, "the segment does not decode");
    vv_seg_unref(fresh);
    return rc;
}

vv_code vv_seg_group(vv_source *source, const vv_euid *euid, const vv_seg *seg, const vv_thread_ref *root, size_t max,
                     vv_group_buffer *buf, vv_group *ret, bool *ret_found, vv_error *err)
{
    if (!seg->recalled)
        return find_group(source, euid, seg, root, max, buf, ret, ret_found, err);
    vv_error why = {0};
    vv_code rc = find_group(source, euid, seg, root, max, buf, ret, ret_found, &why);
    if (rc == VV_ERR_CORRUPT)
        return find_group_afresh(source, euid, seg, root, max, buf, ret, ret_found, err);
    if (rc != VV_OK && err && err->code == VV_OK)
        *err = why;
    return rc;
}

vv_code vv_seg_roots(vv_source *source, const vv_euid *euid, const vv_seg *seg, vv_root_fn *fn, void *state,
                     vv_error *err)
{
    if (seg->group_count == 0)
        return VV_OK;
    char path[VV_STREAM_PATH];
    vv_segment_path(path, euid, VV_PLANE_DATA, seg->sequence);
    VV_CLEANUP(vv_open_file_close) vv_open_file f = {.fd = -1};
    vv_code rc = vv_source_open_file(source, path, &f, err);
    for (uint32_t i = 0; i < seg->group_count && rc == VV_OK; i++) {
        vv_thread_ref root;
        rc = vv_open_file_read(&f, seg->off[i], root.b, sizeof root.b, err);
        if (rc == VV_OK && vv_be32(root.b + 28) != vv_seg_keys(seg)[i])
            rc = vv_fail_decode(err, "DataGroupOrder", seg->off[i], "the segment changed while it was read");
        if (rc == VV_OK && !fn(state, &root))
            rc = vv_fail(err, VV_ERR_NOMEM, "no memory for the roots of a segment");
    }
    return rc;
}
