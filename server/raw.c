#include "config.h"

#include "server/raw.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "server/etag.h"
#include "server/range.h"
#include "views/values.h"

enum { LEDGER = 1024, PIECE = 64 * 1024 };

typedef struct {
    bool used;
    vv_cid cid;
    vv_file_ident ident;
    uint8_t sum[VV_SHA256_BYTES];
} entry;

struct vv_ledger {
    pthread_mutex_t lock;
    entry entries[LEDGER]; /* by the first bits of the id; the newer of two stays */
};

vv_ledger *vv_ledger_new(void)
{
    vv_ledger *l = calloc(1, sizeof *l);
    if (l)
        pthread_mutex_init(&l->lock, NULL);
    return l;
}

void vv_ledger_free(vv_ledger *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static entry *place_of(vv_ledger *l, const vv_cid *cid)
{
    return &l->entries[vv_be16(cid->b) % LEDGER];
}

/* True where this very file was verified before: then its digest is known. */
static bool recall(vv_ledger *l, vv_object *o)
{
    pthread_mutex_lock(&l->lock);
    const entry *e = place_of(l, &o->cid);
    bool known = e->used && memcmp(&e->cid, &o->cid, sizeof o->cid) == 0 && vv_file_ident_eq(&e->ident, &o->ident);
    if (known)
        memcpy(o->body_sum, e->sum, sizeof e->sum);
    pthread_mutex_unlock(&l->lock);
    return known;
}

static void remember(vv_ledger *l, const vv_object *o)
{
    if (o->ident.inode == 0) /* inside an archive: nothing would tell another one's */
        return;
    pthread_mutex_lock(&l->lock);
    entry *e = place_of(l, &o->cid);
    *e = (entry){.used = true, .cid = o->cid, .ident = o->ident};
    memcpy(e->sum, o->body_sum, sizeof e->sum);
    pthread_mutex_unlock(&l->lock);
}

static vv_code verify(vv_ledger *l, vv_object *o, vv_error *err)
{
    if (o->state != VV_OBJECT_GOOD || recall(l, o))
        return VV_OK;
    vv_code rc = vv_object_verify(o, NULL, err);
    if (rc == VV_OK && o->state == VV_OBJECT_GOOD)
        remember(l, o);
    return rc;
}

/* What is left to send. */
typedef struct {
    vv_object object;
    uint64_t at, end;
} stream;

static bool next_piece(void *state, vv_json *j)
{
    stream *s = state;
    size_t n = s->end - s->at < PIECE ? (size_t)(s->end - s->at) : PIECE;
    uint8_t *to = vv_wr_take(j->out, n);
    if (!to)
        return false;
    if (vv_object_read(&s->object, s->at, to, n, NULL) != VV_OK) {
        vv_wr_fail(j->out, "Truncated"); /* the length is promised: the connection ends */
        return false;
    }
    s->at += n;
    return s->at < s->end;
}

static void free_stream(void *state)
{
    stream *s = state;
    vv_object_close(&s->object);
    free(s);
}

/* Takes the object over. */
static vv_code start_body(vv_response *rs, vv_object *o, uint64_t first, uint64_t n, vv_error *err)
{
    stream *s = malloc(sizeof *s);
    vv_answer a;
    if (!s)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a body");
    *s = (stream){*o, first, first + n};
    o->file = (vv_open_file){.fd = -1};
    vv_answer_init(&a);
    a.state = s;
    a.free_state = free_stream;
    a.more = n ? next_piece : NULL;
    rs->body = vv_body_new(&a, VV_CODING_IDENTITY);
    rs->has_body_len = true;
    rs->body_len = n;
    vv_answer_done(&a);
    return rs->body ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a body");
}

static void refuse(vv_response *rs, vv_problem_kind kind, const char *state, const char *detail)
{
    vv_problem p;
    vv_problem_set(&p, kind, "%s", detail);
    p.state = state;
    vv_problem_respond(rs, &p);
}

/* If-Range: a part is only good for who has the rest of the same body. */
static bool wants_part(const vv_request *rq, const char *tag)
{
    return rq->range && (!rq->if_range || strcmp(rq->if_range, tag) == 0);
}

static vv_code respond(vv_response *rs, const vv_request *rq, vv_object *o, vv_error *err)
{
    char sum[65], tag[68], cid[VV_CID_TEXT];
    uint64_t size = o->body_len, first = 0, last = size - 1;
    vv_hex(sum, o->body_sum, sizeof o->body_sum);
    snprintf(tag, sizeof tag, "\"%s\"", sum);
    vv_range_kind range = vv_range_of(wants_part(rq, tag) ? rq->range : NULL, size, &first, &last);
    bool unchanged = vv_etag_matches(rq->if_none_match, sum);
    if (range == VV_RANGE_OUTSIDE && !unchanged) {
        refuse(rs, VV_PROBLEM_RANGE, NULL, "the range begins behind the end of the body");
        vv_response_header(rs, "Content-Range", "bytes */%llu", (unsigned long long)size);
        return VV_OK;
    }
    vv_cid_text(cid, &o->cid);
    vv_response_header(rs, "ETag", "%s", tag);
    vv_response_header(rs, "Cache-Control", "public, max-age=31536000, immutable");
    rs->status = unchanged ? 304 : range == VV_RANGE_PART ? 206 : 200;
    if (unchanged)
        return VV_OK;
    vv_response_header(rs, "Content-Type", "application/octet-stream");
    vv_response_header(rs, "Content-Disposition", "attachment; filename=\"%s.bin\"", cid);
    vv_response_header(rs, "Accept-Ranges", "bytes");
    if (range == VV_RANGE_PART)
        vv_response_header(rs, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)first,
                           (unsigned long long)last, (unsigned long long)size);
    return start_body(rs, o, first, size ? last - first + 1 : 0, err);
}

vv_code vv_raw_respond(vv_response *rs, const vv_request *rq, vv_query *q, vv_ledger *ledger, vv_error *err)
{
    static const char *const names[] = {NULL};
    VV_CLEANUP(vv_object_close) vv_object o = {.file = {.fd = -1}};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_object(q, &o, err);
    if (rc == VV_OK)
        rc = verify(ledger, &o, err);
    if (rc != VV_OK)
        return rc;
    if (o.state == VV_OBJECT_GOOD)
        return respond(rs, rq, &o, err);
    refuse(rs, VV_PROBLEM_VALUE, vv_value_status_of(&o).word,
           o.why ? o.why : "its body is larger than what is given out");
    return VV_OK;
}
