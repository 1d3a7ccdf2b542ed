#include "config.h"

#include "server/file_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "server/etag.h"
#include "server/problem.h"
#include "server/range.h"

enum { PIECE = 64 * 1024, SUM = 2 * VV_SHA256_BYTES + 1 };

/* What is left to send of a file that has no descriptor. */
typedef struct {
    vv_open_file file;
    uint64_t at, end;
} stream;

static bool next_piece(void *state, vv_json *j)
{
    stream *s = state;
    size_t n = s->end - s->at < PIECE ? (size_t)(s->end - s->at) : PIECE;
    uint8_t *to = vv_wr_take(j->out, n);
    if (!to)
        return false;
    if (vv_open_file_read(&s->file, s->at, to, n, NULL) != VV_OK) {
        vv_wr_fail(j->out, "Truncated"); /* the length is promised: the connection ends */
        return false;
    }
    s->at += n;
    return s->at < s->end;
}

static void free_stream(void *state)
{
    stream *s = state;
    vv_open_file_close(&s->file);
    free(s);
}

static vv_code copy(vv_response *rs, vv_open_file *file, uint64_t first, uint64_t n, vv_error *err)
{
    stream *s = malloc(sizeof *s);
    vv_answer a;
    if (!s)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a body");
    *s = (stream){*file, first, first + n};
    *file = (vv_open_file){.fd = -1};
    vv_answer_init(&a);
    a.state = s;
    a.free_state = free_stream;
    a.more = next_piece;
    rs->body = vv_body_new(&a, VV_CODING_IDENTITY);
    vv_answer_done(&a);
    return rs->body ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a body");
}

/* A member of an archive shares the archive's descriptor: each read names its position, so a duplicate will do. */
static vv_code send(vv_response *rs, vv_open_file *file, uint64_t first, vv_error *err)
{
    int fd = file->owns_fd ? file->fd : fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return vv_fail_os(err, errno, "no descriptor for a body");
    if (file->owns_fd)
        *file = (vv_open_file){.fd = -1};
    rs->has_file = true;
    rs->file = fd;
    rs->file_off = first;
    return VV_OK;
}

static vv_code start(vv_response *rs, const vv_file_body *b, uint64_t first, uint64_t n, vv_error *err)
{
    if (n == 0)
        return VV_OK;
    rs->has_body_len = true;
    rs->body_len = n;
    if (b->file->fd >= 0)
        return send(rs, b->file, b->file->off + b->off + first, err);
    return copy(rs, b->file, b->off + first, n, err);
}

/* If-Range: a part is only good for who has the rest of the same body. */
static bool wants_part(const vv_request *rq, const char *tag)
{
    return rq->range && (!rq->if_range || strcmp(rq->if_range, tag) == 0);
}

static void refuse_range(vv_response *rs, uint64_t size)
{
    vv_problem p;
    vv_problem_set(&p, VV_PROBLEM_RANGE, "the range begins behind the end of the body");
    vv_problem_respond(rs, &p);
    vv_response_header(rs, "Content-Range", "bytes */%llu", (unsigned long long)size);
}

vv_code vv_file_respond(vv_response *rs, const vv_request *rq, const vv_file_body *b, vv_error *err)
{
    char sum[SUM], tag[SUM + 2];
    uint64_t size = b->len, first = 0, last = size - 1;
    vv_hex(sum, b->sum, VV_SHA256_BYTES);
    snprintf(tag, sizeof tag, "\"%s\"", sum);
    vv_range_kind range = vv_range_of(wants_part(rq, tag) ? rq->range : NULL, size, &first, &last);
    bool unchanged = vv_etag_matches(rq->if_none_match, sum);
    if (range == VV_RANGE_OUTSIDE && !unchanged) {
        refuse_range(rs, size);
        return VV_OK;
    }
    vv_response_header(rs, "ETag", "%s", tag);
    vv_response_header(rs, "Cache-Control", "public, max-age=31536000, immutable");
    rs->status = unchanged ? 304 : range == VV_RANGE_PART ? 206 : 200;
    if (unchanged)
        return VV_OK;
    vv_response_header(rs, "Content-Type", "application/octet-stream");
    vv_response_header(rs, "Content-Disposition", "attachment; filename=\"%s\"", b->name);
    vv_response_header(rs, "Accept-Ranges", "bytes");
    if (range == VV_RANGE_PART)
        vv_response_header(rs, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)first,
                           (unsigned long long)last, (unsigned long long)size);
    return start(rs, b, first, size ? last - first + 1 : 0, err);
}
