#include "config.h"

#include "server/raw.h"

#include <stdio.h>

#include "views/segments.h"
#include "views/values.h"

static void refuse(vv_response *rs, vv_problem_kind kind, const char *state, const char *detail)
{
    vv_problem p;
    vv_problem_set(&p, kind, "%s", detail);
    p.state = state;
    vv_problem_respond(rs, &p);
}

/* The digest of the body alone. An object that turns out not to be good has none. */
static vv_code verify(void *state, uint8_t *sum, bool *ret_keep, vv_error *err)
{
    vv_object *o = state;
    vv_code rc = vv_object_verify(o, NULL, sum, err);
    *ret_keep = o->state == VV_OBJECT_GOOD;
    return rc;
}

vv_code vv_raw_value(vv_response *rs, const vv_request *rq, vv_query *q, vv_error *err)
{
    VV_CLEANUP(vv_object_close) vv_object o = {.file = {.fd = -1}};
    uint8_t sum[VV_SHA256_BYTES];
    char name[VV_CID_TEXT + 4];
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_query_object(q, &o, err);
    if (rc == VV_OK && o.state == VV_OBJECT_GOOD)
        rc = vv_sums_get(vv_library_sums(q->library), &o.file, o.cid.b, verify, &o, sum, err);
    if (rc != VV_OK)
        return rc;
    if (o.state != VV_OBJECT_GOOD) {
        refuse(rs, VV_PROBLEM_VALUE, vv_value_status_of(&o).word,
               o.why ? o.why : "its body is larger than what is given out");
        return VV_OK;
    }
    vv_cid_text(name, &o.cid);
    strcat(name, ".bin");
    return vv_file_respond(rs, rq, &(vv_file_body){&o.file, VV_CAS_HEAD, o.body_len, sum, name}, err);
}

/* No error of ours: the file can't be opened, is none, or shrank while it was read. */
static bool is_unreadable(vv_code rc)
{
    return rc == VV_ERR_IO || rc == VV_ERR_CORRUPT;
}

vv_code vv_raw_segment(vv_response *rs, const vv_request *rq, vv_query *q, vv_error *err)
{
    VV_CLEANUP(vv_open_file_close) vv_open_file file = {.fd = -1};
    uint8_t sum[VV_SHA256_BYTES];
    char name[VV_SEGMENT_SAVED_NAME];
    vv_code rc = vv_query_check(q, NULL, err);
    if (rc == VV_OK)
        rc = vv_query_segment(q, &file, name, err);
    if (rc == VV_OK)
        rc = vv_file_sum(q->library, &file, sum, err);
    if (is_unreadable(rc)) {
        refuse(rs, VV_PROBLEM_SEGMENT, "unreadable", err->name ? err->name : "the system does not let us read it");
        return VV_OK;
    }
    if (rc != VV_OK)
        return rc;
    return vv_file_respond(rs, rq, &(vv_file_body){&file, 0, file.ident.size, sum, name}, err);
}
