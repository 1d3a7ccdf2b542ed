#include "config.h"

#include "views/answer.h"

#include "views/checkpoint.h"
#include "views/functions.h"
#include "views/search.h"
#include "views/store_use.h"
#include "views/streams.h"
#include "views/values.h"

/* Answers that are written at once: pages of at most 1000 rows, and lists of streams. */
enum { WHOLE_MAX = 256 * 1024 * 1024 };

void vv_answer_init(vv_answer *a)
{
    *a = (vv_answer){.w = vv_wr_growing(WHOLE_MAX)};
    a->j = vv_json_init(&a->w);
}

void vv_answer_done(vv_answer *a)
{
    if (a->free_state)
        a->free_state(a->state);
    a->free_state = NULL;
    a->more = NULL;
    vv_wr_done(&a->w);
}

bool vv_answer_next(vv_answer *a, vv_str *ret_piece)
{
    if (a->started) {
        vv_wr_reset(&a->w);
        if (!a->more)
            return false;
    }
    a->started = true;
    a->j.out = &a->w; /* the answer may have been moved */
    while (a->more && a->w.len < VV_ANSWER_PIECE && vv_wr_ok(&a->w))
        if (!a->more(a->state, &a->j))
            a->more = NULL;
    if (!vv_wr_ok(&a->w)) {
        a->failed = true;
        a->more = NULL;
        return false;
    }
    *ret_piece = (vv_str){(const char *)a->w.buf, a->w.len};
    return a->w.len > 0;
}

static vv_code whole(vv_answer *a, vv_query *q, vv_code (*view)(vv_json *, vv_query *, vv_error *), vv_error *err)
{
    vv_code rc = view(&a->j, q, err);
    return rc == VV_OK ? vv_wr_error(&a->w, "answer", err) : rc;
}

vv_code vv_answer_executions(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_executions, err);
}

vv_code vv_answer_execution(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_execution, err);
}

vv_code vv_answer_functions(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_functions, err);
}

vv_code vv_answer_streams(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_streams, err);
}

vv_code vv_answer_stream(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_stream, err);
}

vv_code vv_answer_value(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_value, err);
}

vv_code vv_answer_value_uses(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_value_uses, err);
}

vv_code vv_answer_search(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_search, err);
}

vv_code vv_answer_store(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_store, err);
}

vv_code vv_answer_checkpoint(vv_answer *a, vv_query *q, vv_error *err)
{
    return whole(a, q, vv_view_checkpoint, err);
}
