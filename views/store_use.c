#include "config.h"

#include "views/store_use.h"

#include <stdlib.h>

#include "base/text.h"
#include "format/cas.h"
#include "format/usage.h"
#include "reader/stream.h"
#include "views/facts.h"

const char *const vv_use_words[VV_USES] = {"meta", "data", "health", "cas", "tmp", "orphan", "legacy", "other"};

enum { HEX_ID = 32, HEX_CID = 64 };

/* What follows a prefix, or NULL. */
static const char *after(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/* As many lowercase hexadecimal digits, as names in a store have them. */
static bool is_hex(const char *s, size_t n)
{
    return strspn(s, "0123456789abcdef") >= n;
}

static vv_use_kind kind_in_stream(const char *rest)
{
    static const vv_use_kind kinds[VV_PLANES] = {VV_USE_META, VV_USE_DATA, VV_USE_HEALTH};
    uint64_t sequence;
    if (strcmp(rest, "stream.lock") == 0 || after(rest, "samples/"))
        return VV_USE_OTHER;
    for (unsigned p = 0; p < VV_PLANES; p++) {
        const char *name = after(rest, vv_plane_dir((vv_plane)p));
        if (name && *name == '/' && vv_segment_parse(name + 1, (vv_plane)p, &sequence))
            return kinds[p];
    }
    return VV_USE_ORPHAN;
}

static bool is_object(const char *path)
{
    char wanted[VV_CAS_PATH];
    vv_cid cid;
    const char *rest = after(path, "cas/sha256/");
    if (!rest || strlen(rest) < 3 + HEX_CID || !vv_unhex(cid.b, sizeof cid.b, (vv_str){rest + 3, HEX_CID}))
        return false;
    vv_cas_path(wanted, &cid);
    return strcmp(path, wanted) == 0;
}

static vv_use_kind kind_of(const char *path, bool is_settled)
{
    static const char *const others[] = {"publish.lock", "usage.state"};
    const char *rest = after(path, "streams/");
    if (rest && is_hex(rest, HEX_ID) && rest[HEX_ID] == '/')
        return kind_in_stream(rest + HEX_ID + 1);
    if (is_object(path))
        return VV_USE_CAS;
    if (after(path, "tmp/"))
        return is_settled ? VV_USE_ORPHAN : VV_USE_TMP;
    if (after(path, "runs/"))
        return VV_USE_LEGACY;
    for (size_t i = 0; i < VV_ARRAY_LEN(others); i++)
        if (strcmp(path, others[i]) == 0)
            return VV_USE_OTHER;
    return VV_USE_ORPHAN;
}

/* The ledger counts itself, and all files but these. */
static bool is_charged(const char *path)
{
    static const char *const free_of_charge[] = {"publish.lock", "usage.state", "tmp/usage-state.pending"};
    for (size_t i = 0; i < VV_ARRAY_LEN(free_of_charge); i++)
        if (strcmp(path, free_of_charge[i]) == 0)
            return false;
    return true;
}

static void take_file(void *state, const vv_source_entry *e)
{
    vv_store_use *u = state;
    if (!e->is_file) {
        u->irregular++;
        return;
    }
    vv_use *kind = &u->use[kind_of(e->path, u->is_settled)], *const both[] = {kind, &u->total};
    for (size_t i = 0; i < VV_ARRAY_LEN(both); i++) {
        both[i]->files++;
        both[i]->bytes = vv_sat64(both[i]->bytes, e->bytes);
    }
    if (is_charged(e->path))
        u->counted = vv_sat64(u->counted, e->bytes);
}

static void read_ledger(vv_store_use *u, vv_source *source)
{
    VV_CLEANUP(vv_blob_done) vv_blob b = {NULL, 0};
    u->has_ledger = vv_source_read(source, "usage.state", VV_USAGE_BYTES, &b, NULL) == VV_OK
        && vv_usage_decode(b.p, b.n, &u->ledger, NULL) == VV_OK;
}

static void count_segments(vv_segment_counts *n, const vv_seg_list *l)
{
    uint64_t *const by_state[] = {&n->good, &n->corrupt, &n->unreadable};
    uint64_t high = 0;
    for (size_t i = 0; i < l->count;) {
        vv_seg_run r = vv_seg_run_at(l, i);
        *by_state[r.state] += r.count;
        high = r.first + r.count - 1;
        i += r.count;
    }
    n->missing = vv_sat64(n->missing, high - l->count);
}

static void count_streams(vv_store_use *u, const vv_store *store)
{
    for (size_t i = 0; i < store->stream_count; i++) {
        const vv_stream *s = &store->streams[i];
        u->streams++;
        u->alive += s->alive;
        u->starting += s->unprobed;
        u->unreadable += s->failed;
        u->executions += s->execution_count;
        for (size_t k = 0; k < s->execution_count; k++)
            u->running += vv_stream_execution_at(s, k)->status == VV_EXEC_RUNNING;
        count_segments(&u->meta, &s->core->index->meta);
        count_segments(&u->data, &s->core->data);
    }
}

vv_code vv_store_use_of(vv_store_use *ret, const vv_look *look, vv_error *err)
{
    *ret = (vv_store_use){.counted = VV_USAGE_BYTES};
    count_streams(ret, look->store);
    ret->is_settled = ret->alive == 0 && ret->starting == 0;
    read_ledger(ret, look->store->source);
    return vv_source_walk(look->store->source, take_file, ret, err);
}

vv_code vv_orphans_of(vv_orphans *ret, const vv_look *look, vv_error *err)
{
    *ret = (vv_orphans){.roots = malloc(VV_ORPHANS_SHOWN * sizeof *ret->roots)};
    vv_code rc = ret->roots ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for orphan groups");
    for (size_t i = 0; i < look->store->stream_count && rc == VV_OK; i++) {
        vv_thread_ref *roots = NULL;
        size_t n = 0;
        rc = vv_stream_orphans(look->store, &look->store->streams[i], &roots, &n, err);
        for (size_t k = 0; k < n && rc == VV_OK && ret->count < VV_ORPHANS_SHOWN; k++)
            ret->roots[ret->count++] = roots[k];
        if (rc == VV_OK)
            ret->total += n;
        free(roots);
    }
    return rc;
}

void vv_orphans_done(vv_orphans *o)
{
    free(o->roots);
    o->roots = NULL;
}

static void use_json(vv_json *j, const char *key, const vv_use *u)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u64(j, "files", u->files);
    vv_json_kv_u64(j, "bytes", u->bytes);
    vv_json_end_obj(j);
}

static void disk_json(vv_json *j, const vv_store_use *u)
{
    vv_json_kv_obj(j, "disk");
    for (unsigned k = 0; k < VV_USES; k++)
        use_json(j, vv_use_words[k], &u->use[k]);
    use_json(j, "total", &u->total);
    vv_json_kv_u64(j, "irregular", u->irregular);
    vv_json_end_obj(j);
    vv_json_kv_obj(j, "ledger");
    vv_number_json(j, "bytes", u->has_ledger, u->ledger);
    vv_json_kv_u64(j, "counted", u->counted);
    vv_json_kv_opt_bool(j, "agrees", u->has_ledger && u->is_settled, u->ledger == u->counted);
    vv_json_end_obj(j);
}

static void segments_json(vv_json *j, const char *key, const vv_segment_counts *n)
{
    vv_json_kv_obj(j, key);
    vv_json_kv_u64(j, "good", n->good);
    vv_json_kv_u64(j, "corrupt", n->corrupt);
    vv_json_kv_u64(j, "unreadable", n->unreadable);
    vv_json_kv_u64(j, "missing", n->missing);
    vv_json_end_obj(j);
}

static void counts_json(vv_json *j, const vv_store_use *u)
{
    vv_json_kv_obj(j, "counts");
    vv_json_kv_u64(j, "streams", u->streams);
    vv_json_kv_u64(j, "streams_alive", u->alive);
    vv_json_kv_u64(j, "streams_unreadable", u->unreadable);
    vv_json_kv_u64(j, "executions", u->executions);
    vv_json_kv_u64(j, "executions_running", u->running);
    segments_json(j, "meta_segments", &u->meta);
    segments_json(j, "data_segments", &u->data);
    vv_json_end_obj(j);
}

static void orphans_json(vv_json *j, const vv_orphans *o, bool scanned)
{
    if (!vv_json_kv_opt_obj(j, "orphan_groups", scanned))
        return;
    vv_json_kv_u64(j, "executions", o->total);
    vv_json_kv_arr(j, "items");
    for (size_t i = 0; i < o->count; i++) {
        char text[VV_THREAD_TEXT];
        vv_thread_text(text, &o->roots[i]);
        vv_json_cstr(j, text);
    }
    vv_json_end_arr(j);
    vv_json_end_obj(j);
}

static vv_code read_scan(vv_query *q, bool *ret, vv_error *err)
{
    static const char *const words[] = {"0", "1"};
    unsigned scan = 0;
    vv_code rc = vv_query_word(q, "scan", words, VV_ARRAY_LEN(words), &scan, err);
    *ret = scan == 1;
    return rc;
}

vv_code vv_view_store(vv_json *j, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"scan", NULL};
    vv_store_use use;
    VV_CLEANUP(vv_orphans_done) vv_orphans orphans = {0};
    bool scan = false;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = read_scan(q, &scan, err);
    if (rc == VV_OK)
        rc = vv_store_use_of(&use, q->look, err);
    if (rc == VV_OK && scan)
        rc = vv_orphans_of(&orphans, q->look, err);
    if (rc != VV_OK)
        return rc;
    vv_json_obj(j);
    vv_snapshot_json(j, "snapshot", q->look);
    disk_json(j, &use);
    counts_json(j, &use);
    orphans_json(j, &orphans, scan);
    vv_json_end_obj(j);
    return VV_OK;
}
