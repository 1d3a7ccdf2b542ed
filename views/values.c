#include "config.h"

#include "views/values.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "format/value.h"
#include "views/facts.h"

/* Bodies from this size on are in memory one at a time, however many ask. */
enum { LARGE_BODY = 1 << 20 };
static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;

/* A large body has pages of its own: freed by malloc, each thread's heap would keep as many. */
static uint8_t *new_body(size_t n)
{
    if (n < LARGE_BODY)
        return malloc(n ? n : 1);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void free_body(vv_value_loaded *v)
{
    if (v->body && v->object.body_len >= LARGE_BODY)
        munmap(v->body, (size_t)v->object.body_len);
    else
        free(v->body);
    v->body = NULL;
}

vv_value_status vv_value_status_of(const vv_object *o)
{
    static const char *const words[VV_OBJECT_STATES] = {"available", "missing", "damaged", "too_large", "unreadable"};
    if (o->state == VV_OBJECT_GOOD && o->codec != VV_CODEC_VALUE)
        return (vv_value_status){"other_codec", NULL};
    return (vv_value_status){words[o->state], o->why};
}

vv_code vv_query_cid(vv_query *q, vv_cid *ret, vv_error *err)
{
    if (vv_cid_parse(q->id, ret))
        return VV_OK;
    return vv_query_fail(q, "cid", err, "must be bamlv_1_ and 64 hexadecimal digits, or the digits alone");
}

vv_code vv_query_object(vv_query *q, vv_object *ret, vv_error *err)
{
    vv_cid cid;
    vv_code rc = vv_query_cid(q, &cid, err);
    if (rc == VV_OK)
        rc = vv_object_open(ret, q->look->store->source, &cid, VV_VALUE_BODY_MAX, err);
    if (rc != VV_OK || ret->state != VV_OBJECT_MISSING)
        return rc;
    q->parameter = "cid";
    q->state = vv_value_status_of(ret).word;
    return vv_fail(err, VV_ERR_NOTFOUND, "the store has no object of that id");
}

bool vv_value_stamp(vv_query *q, char out[VV_VALUE_STAMP])
{
    vv_cid cid;
    char path[VV_CAS_PATH];
    vv_file_ident ident = {0};
    bool found = vv_cid_parse(q->id, &cid);
    if (found) {
        vv_cas_path(path, &cid);
        found = vv_source_ident(q->look->store->source, path, &ident, NULL) == VV_OK;
    }
    snprintf(out, VV_VALUE_STAMP, "object %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64, ident.size,
             ident.device, ident.inode, ident.mtime_ns, ident.ctime_ns);
    return found;
}

/* Reads and verifies the body where the object is a value that may be looked into. */
static vv_code load_body(vv_value_loaded *v, vv_error *err)
{
    vv_object *o = &v->object;
    bool keep = o->state == VV_OBJECT_GOOD && o->codec == VV_CODEC_VALUE;
    if (keep) {
        v->body = new_body((size_t)o->body_len);
        if (!v->body)
            return vv_fail(err, VV_ERR_NOMEM, "no memory for a value of %" PRIu64 " bytes", o->body_len);
    }
    vv_code rc = o->state == VV_OBJECT_GOOD ? vv_object_verify(o, v->body, NULL, err) : VV_OK;
    v->status = vv_value_status_of(o);
    if (rc == VV_OK && o->state == VV_OBJECT_GOOD)
        return VV_OK;
    free_body(v);
    return rc;
}

static vv_code no_such_place(vv_query *q, const vv_value_path *path, const vv_value_place *place, vv_error *err)
{
    q->parameter = "path";
    q->reach = (vv_reach){.steps = place->matched, .of = path->count, .kind = vv_value_kind_word(place->kind)};
    if (place->matched)
        q->reach.bytes = path->steps[place->matched - 1].end;
    return vv_fail(err, VV_ERR_NOTFOUND,
                   "leads nowhere: %zu of its %zu steps can be taken, and end at a value of kind %s", place->matched,
                   path->count, q->reach.kind);
}

/* Walks the path into the body. A body that is no value's is a state. */
static vv_code find_place(vv_query *q, vv_value_loaded *v, const vv_value_path *path, vv_error *err)
{
    vv_error why = {0};
    if (vv_value_walk(&v->place, v->body, (size_t)v->object.body_len, path, &why) != VV_OK) {
        v->status = (vv_value_status){"malformed", why.name};
        return VV_OK;
    }
    return v->place.matched == path->count ? VV_OK : no_such_place(q, path, &v->place, err);
}

static vv_code read_path(vv_query *q, vv_value_path *ret, vv_error *err)
{
    const vv_str *text = vv_query_value(q, "path");
    vv_code rc = vv_value_path_parse(ret, text ? *text : vv_cstr("$"), err);
    if (rc == VV_ERR_ARG)
        q->parameter = "path";
    return rc;
}

vv_code vv_value_load(vv_query *q, vv_value_loaded *ret, vv_error *err)
{
    vv_value_path path;
    *ret = (vv_value_loaded){.object = {.file = {.fd = -1}}};
    vv_code rc = read_path(q, &path, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_query_object(q, &ret->object, err);
    if (rc == VV_OK && ret->object.body_len >= LARGE_BODY)
        ret->is_large = pthread_mutex_lock(&large_lock) == 0;
    if (rc == VV_OK)
        rc = load_body(ret, err);
    if (rc == VV_OK && ret->body)
        rc = find_place(q, ret, &path, err);
    vv_value_path_done(&path);
    if (rc != VV_OK)
        vv_value_loaded_done(ret);
    return rc;
}

void vv_value_loaded_done(vv_value_loaded *v)
{
    free_body(v);
    vv_object_close(&v->object);
    if (v->is_large)
        pthread_mutex_unlock(&large_lock);
    v->is_large = false;
}

vv_code vv_query_bounds(vv_query *q, vv_value_bounds *ret, vv_error *err)
{
    *ret = (vv_value_bounds){VV_VALUE_BYTES, VV_VALUE_LEVELS};
    vv_code rc = vv_query_number(q, "max_bytes", 0, VV_VALUE_BYTES_MAX, &ret->bytes, err);
    return rc == VV_OK ? vv_query_number(q, "max_depth", 0, VV_VALUE_LEVELS_MAX, &ret->depth, err) : rc;
}

static void facts_json(vv_json *j, const vv_query *q, const vv_value_loaded *v)
{
    char cid[VV_CID_TEXT];
    const vv_str *path = vv_query_value(q, "path");
    bool has_head = v->object.state == VV_OBJECT_GOOD || v->object.state == VV_OBJECT_TOO_LARGE;
    bool has_place = strcmp(v->status.word, "available") == 0;
    vv_cid_text(cid, &v->object.cid);
    vv_json_kv_cstr(j, "cid", cid);
    vv_json_kv_cstr(j, "state", v->status.word);
    vv_json_kv_cstr(j, "fault", v->status.fault);
    vv_number_json(j, "codec", has_head, v->object.codec);
    vv_number_json(j, "bytes", has_head, v->object.body_len);
    vv_json_kv_str(j, "path", path ? *path : vv_cstr("$"));
    vv_json_kv_cstr(j, "kind", has_place ? vv_value_kind_word(v->place.kind) : NULL);
    vv_number_json(j, "items", has_place && v->place.has_items, v->place.items);
}

/* The answer; where the body turns out to be malformed half way, it is taken back and written anew. */
vv_code vv_value_json(vv_json *j, const vv_query *q, vv_value_loaded *v, const vv_value_bounds *b, vv_error *err)
{
    const vv_json before = *j;
    const size_t len = j->out->len;
    const vv_value_limits limits = {(unsigned)b->depth, (size_t)b->bytes};
    bool shown = strcmp(v->status.word, "available") == 0, cut = false;
    vv_error why = {0};
    vv_json_obj(j);
    facts_json(j, q, v);
    vv_json_key(j, "value");
    if (!shown)
        vv_json_null(j);
    else if (vv_value_show(j, v->place.body, v->place.body_len, &limits, &cut, &why) == VV_ERR_CORRUPT) {
        v->status = (vv_value_status){"malformed", why.name};
        *j = before;
        j->out->len = len;
        return vv_value_json(j, q, v, b, err);
    }
    vv_json_kv_opt_bool(j, "cut", shown, cut);
    vv_json_end_obj(j);
    return vv_wr_error(j->out, "answer", err);
}

vv_code vv_view_value(vv_json *j, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"path", "max_bytes", "max_depth", NULL};
    vv_value_bounds bounds;
    vv_value_loaded v;
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_bounds(q, &bounds, err);
    if (rc == VV_OK)
        rc = vv_value_load(q, &v, err);
    if (rc != VV_OK)
        return rc;
    rc = vv_value_json(j, q, &v, &bounds, err);
    vv_value_loaded_done(&v);
    return rc;
}
