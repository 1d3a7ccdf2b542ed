#include "config.h"

#include "reader/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sha256.h"
#include "base/text.h"
#include "format/cas.h"
#include "reader/stream.h"

/* A function table's object beyond this is refused. */
enum { TABLE_MAX = 1 << 30 };

const char *vv_index_state_name(vv_index_state s)
{
    static const char *const names[] = {
        [VV_INDEX_COMPLETE] = "Complete",
        [VV_INDEX_NO_ROOT_ENDED] = "NoRootEnded",
        [VV_INDEX_ROOT_STARTED_LOST] = "RootStartedLost",
        [VV_INDEX_CORRUPT] = "IndexCorrupt",
    };
    return names[s];
}

const char *vv_exec_status_name(unsigned status)
{
    static const char *const names[] = {
        [VV_EXEC_SUCCEEDED] = "Succeeded", [VV_EXEC_FAILED] = "Failed",       [VV_EXEC_CANCELLED] = "Cancelled",
        [VV_EXEC_PANICKED] = "Panicked",   [VV_EXEC_ABANDONED] = "Abandoned", [VV_EXEC_RUNNING] = "Running",
    };
    return status < VV_ARRAY_LEN(names) ? names[status] : NULL;
}

static void hash64(vv_sha256_ctx *c, uint64_t v)
{
    uint8_t b[8];
    vv_put64(b, v);
    vv_sha256_update(c, b, sizeof b);
}

static void hash_plane(vv_sha256_ctx *c, uint64_t contiguous, uint64_t high, const vv_range *bad, size_t count)
{
    hash64(c, contiguous);
    hash64(c, high);
    hash64(c, count);
    for (size_t i = 0; i < count; i++) {
        hash64(c, bad[i].first);
        hash64(c, bad[i].last);
    }
}

static void hash_generation(vv_store *s)
{
    static const char domain[] = "varve-generation-v1";
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, domain, sizeof domain - 1);
    for (size_t i = 0; i < s->stream_count; i++) {
        const vv_stream *st = &s->streams[i];
        uint8_t alive = st->alive;
        vv_sha256_update(&c, st->euid.b, sizeof st->euid.b);
        vv_sha256_update(&c, &alive, 1);
        hash_plane(&c, st->meta_contiguous, st->meta_high, st->meta_bad, st->meta_bad_count);
        hash_plane(&c, st->data_contiguous, st->data_high, st->data_bad, st->data_bad_count);
    }
    vv_sha256_final(&c, s->generation);
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(vv_euid));
}

/* The ids that streams/ names, ascending, each once. A missing directory names none. */
static vv_code list_ids(vv_source *source, vv_euid **ret, size_t *ret_count, vv_error *err)
{
    VV_CLEANUP(vv_names_done) vv_names names = {0};
    vv_error why = {0};
    vv_code rc = vv_source_list(source, "streams", &names, &why);
    if (rc != VV_OK && rc != VV_ERR_NOTFOUND) {
        vv_context(&why, "%s", vv_source_path(source));
        if (err && err->code == VV_OK)
            *err = why;
        return rc;
    }
    vv_euid *ids = malloc((names.count + 1) * sizeof *ids);
    if (!ids)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of streams");
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < names.count; i++)
        n += vv_unhex(ids[n].b, sizeof ids[n].b, vv_cstr(names.names[i]));
    qsort(ids, n, sizeof *ids, by_id);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_id(&ids[i], &ids[kept - 1]) != 0)
            ids[kept++] = ids[i];
    *ret = ids;
    *ret_count = kept;
    return VV_OK;
}

static vv_code new_store(vv_store **ret, vv_source *source, size_t count, vv_error *err)
{
    vv_store *s = calloc(1, sizeof *s);
    vv_stream *streams = calloc(count + 1, sizeof *streams);
    if (!s || !streams) {
        free(s);
        free(streams);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of streams");
    }
    *s = (vv_store){.source = source, .streams = streams};
    *ret = s;
    return VV_OK;
}

static vv_code finish_store(vv_store **ret, vv_store *s, vv_code rc)
{
    if (rc != VV_OK) {
        vv_store_free(s);
        return rc;
    }
    hash_generation(s);
    for (size_t i = 0; i < s->stream_count; i++)
        s->stamp += s->streams[i].stamp;
    *ret = s;
    return VV_OK;
}

vv_code vv_store_open(vv_store **ret, vv_source *source, const vv_store *former, vv_error *err)
{
    vv_euid *ids = NULL;
    size_t count = 0;
    vv_store *s;
    vv_code rc = list_ids(source, &ids, &count, err);
    if (rc == VV_OK)
        rc = new_store(&s, source, count, err);
    if (rc != VV_OK) {
        free(ids);
        return rc;
    }
    for (size_t i = 0; i < count && rc == VV_OK; i++) {
        const vv_stream *known = former ? vv_store_stream(former, &ids[i]) : NULL;
        rc = vv_stream_open(&s->streams[i], source, &ids[i], known, NULL, err);
        s->stream_count += rc == VV_OK;
    }
    free(ids);
    return finish_store(ret, s, rc);
}

/* The ids of former, or those that streams/ names now. */
static vv_code present_ids(const vv_store *former, bool listing, vv_euid **ret, size_t *ret_count, vv_error *err)
{
    if (listing)
        return list_ids(former->source, ret, ret_count, err);
    vv_euid *ids = malloc((former->stream_count + 1) * sizeof *ids);
    if (!ids)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the list of streams");
    for (size_t i = 0; i < former->stream_count; i++)
        ids[i] = former->streams[i].euid;
    *ret = ids;
    *ret_count = former->stream_count;
    return VV_OK;
}

/* Both are in the order of ids; *at goes along. */
static const vv_stream_change *change_of(const vv_changes *changes, size_t *at, const vv_euid *id)
{
    while (*at < changes->count && by_id(&changes->streams[*at].euid, id) < 0)
        ++*at;
    return *at < changes->count && by_id(&changes->streams[*at].euid, id) == 0 ? &changes->streams[*at] : NULL;
}

vv_code vv_store_update(vv_store **ret, const vv_store *former, const vv_changes *changes, vv_error *err)
{
    if (changes->all)
        return vv_store_open(ret, former->source, former, err);
    vv_euid *ids = NULL;
    size_t count = 0, at = 0;
    vv_store *s;
    vv_code rc = present_ids(former, changes->listing, &ids, &count, err);
    if (rc == VV_OK)
        rc = new_store(&s, former->source, count, err);
    if (rc != VV_OK) {
        free(ids);
        return rc;
    }
    /* An id is the first member of a change, so they are sorted by it. */
    if (changes->count)
        qsort(changes->streams, changes->count, sizeof *changes->streams, by_id);
    for (size_t i = 0; i < count && rc == VV_OK; i++) {
        const vv_stream *known = vv_store_stream(former, &ids[i]);
        const vv_stream_change *change = change_of(changes, &at, &ids[i]);
        if (known && !change)
            s->streams[i] = vv_stream_share(known);
        else
            rc = vv_stream_open(&s->streams[i], former->source, &ids[i], known, change, err);
        s->stream_count += rc == VV_OK;
    }
    free(ids);
    return finish_store(ret, s, rc);
}

size_t vv_store_bytes(const vv_store *s, const vv_store *other)
{
    size_t n = sizeof *s + s->stream_count * sizeof *s->streams;
    for (size_t i = 0; i < s->stream_count; i++) {
        const vv_stream *known = other ? vv_store_stream(other, &s->streams[i].euid) : NULL;
        n += vv_stream_bytes(&s->streams[i], known);
    }
    return n;
}

bool vv_store_shares_all(const vv_store *a, const vv_store *b)
{
    bool same = a->stream_count == b->stream_count;
    for (size_t i = 0; i < a->stream_count && same; i++)
        same = a->streams[i].core == b->streams[i].core;
    return same;
}

void vv_store_free(vv_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->stream_count; i++)
        vv_stream_done(&s->streams[i]);
    free(s->streams);
    free(s);
}

const vv_stream *vv_store_stream(const vv_store *s, const vv_euid *euid)
{
    size_t lo = 0, hi = s->stream_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = by_id(&s->streams[mid].euid, euid);
        if (c == 0)
            return &s->streams[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const vv_execution *vv_stream_execution(const vv_stream *s, const vv_thread_ref *root)
{
    size_t i = s->execution_count ? vv_executions_find(&s->core->index->executions, root) : 0;
    return i < s->execution_count ? vv_stream_execution_at(s, i) : NULL;
}

const vv_execution *vv_stream_execution_at(const vv_stream *s, size_t i)
{
    return vv_executions_at(&s->core->index->executions, i);
}

bool vv_stream_unix_ns(const vv_stream *s, uint64_t ns, uint64_t *ret_unix_ns)
{
    if (!s->has_header)
        return false;
    *ret_unix_ns = vv_sat64(s->header.zero_unix_ns, ns);
    return true;
}

typedef struct {
    const vv_stream *stream;
    vv_map seen;
} orphan_scan;

static bool note_orphan(void *state, const vv_thread_ref *root)
{
    orphan_scan *x = state;
    return vv_stream_execution(x->stream, root) || vv_map_put(&x->seen, root, NULL) != VV_MAP_NONE;
}

vv_code vv_stream_orphans(const vv_store *s, const vv_stream *stream, vv_thread_ref **ret, size_t *ret_count,
                          vv_error *err)
{
    orphan_scan x = {.stream = stream};
    vv_map_init(&x.seen, sizeof(vv_thread_ref));
    const vv_seg_list *data = &stream->core->data;
    vv_code rc = VV_OK;
    /* A segment that can't be read any more is skipped like a bad one. */
    for (size_t i = 0; i < data->count && rc != VV_ERR_NOMEM; i++) {
        vv_seg room;
        const vv_seg *seg = vv_seg_at(data, i, &room);
        if (seg->state == VV_SEG_OK)
            rc = vv_seg_roots(s->source, &stream->euid, seg, note_orphan, &x, NULL);
    }
    vv_thread_ref *roots = rc == VV_ERR_NOMEM ? NULL : malloc(((size_t)x.seen.count + 1) * sizeof *roots);
    for (uint32_t i = 0; roots && i < x.seen.count; i++)
        memcpy(&roots[i], vv_map_key(&x.seen, i), sizeof roots[i]);
    if (roots) {
        *ret = roots;
        *ret_count = x.seen.count;
    }
    vv_map_done(&x.seen);
    return roots ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for orphan groups");
}

vv_code vv_engine_table(vv_source *source, const vv_engine *engine, vv_function_table *ret, vv_error *err)
{
    *ret = (vv_function_table){0};
    if (!engine || !engine->has_table)
        return VV_OK;
    char path[VV_CAS_PATH];
    vv_cas_path(path, &engine->table);
    VV_CLEANUP(vv_blob_done) vv_blob b = {0};
    vv_code rc = vv_source_read(source, path, TABLE_MAX, &b, err);
    if (rc != VV_OK)
        return rc;
    vv_cas_object object;
    rc = vv_cas_decode(&object, b.p, b.n, &engine->table, err);
    if (rc != VV_OK)
        return rc;
    if (object.codec != VV_CODEC_FUNCTION_TABLE)
        return vv_fail_decode(err, "FunctionTableCodecMismatch", 0, "object codec %u", object.codec);
    vv_error why = {0};
    rc = vv_function_table_decode(ret, object.body, object.body_len, &why);
    if (rc == VV_ERR_CORRUPT)
        return vv_fail_decode(err, "FunctionTableInvalid", why.off, "%s", why.msg);
    return rc == VV_OK ? VV_OK : vv_fail(err, rc, "%s", why.msg);
}
