#include "config.h"

#include "server/raw.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "server/etag.h"
#include "server/range.h"
#include "views/values.h"

enum { PIECE = 64 * 1024 };

/* The digest of the body alone. An object that turns out not to be good has none. */
static vv_code verify(void *state, uint8_t *sum, bool *ret_keep, vv_error *err)
{
    vv_object *o = state;
    vv_code rc = vv_object_verify(o, NULL, sum, err);
    *ret_keep = o->state == VV_OBJECT_GOOD;
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

static vv_code respond(vv_response *rs, const vv_request *rq, vv_object *o, const uint8_t *body_sum, vv_error *err)
{
    char sum[65], tag[68], cid[VV_CID_TEXT];
    uint64_t size = o->body_len, first = 0, last = size - 1;
    vv_hex(sum, body_sum, VV_SHA256_BYTES);
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

vv_code vv_raw_respond(vv_response *rs, const vv_request *rq, vv_query *q, vv_error *err)
{
    static const char *const names[] = {NULL};
    VV_CLEANUP(vv_object_close) vv_object o = {.file = {.fd = -1}};
    uint8_t sum[VV_SHA256_BYTES];
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_object(q, &o, err);
    if (rc == VV_OK && o.state == VV_OBJECT_GOOD)
        rc = vv_sums_get(vv_library_sums(q->library), &o.file, o.cid.b, verify, &o, sum, err);
    if (rc != VV_OK)
        return rc;
    if (o.state == VV_OBJECT_GOOD)
        return respond(rs, rq, &o, sum, err);
    refuse(rs, VV_PROBLEM_VALUE, vv_value_status_of(&o).word,
           o.why ? o.why : "its body is larger than what is given out");
    return VV_OK;
}
