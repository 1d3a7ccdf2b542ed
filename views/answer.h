/*
 * An answer as JSON, produced piece by piece in bounded memory. Small views write all of it at once; a large one leaves
 * a producer behind. Owned by one thread at a time.
 *
 *     vv_answer a;
 *     vv_answer_init(&a);
 *     if (vv_view(&a, ...) == VV_OK)
 *         while (vv_answer_next(&a, &piece))
 *             send(piece.p, piece.n);
 *     vv_answer_done(&a);
 */
#pragma once

#include "views/query.h"

enum { VV_ANSWER_PIECE = 64 * 1024 };

typedef struct vv_answer {
    vv_wr w;
    vv_json j;
    bool (*more)(void *state, vv_json *j); /* appends about a piece; false: that was the last. NULL: all is written */
    void (*free_state)(void *state);
    void *state;
    bool started, failed;
} vv_answer;

void vv_answer_init(vv_answer *a);
void vv_answer_done(vv_answer *a); /* accepts a zeroed or finished one */

/*
 * True and the next piece (valid until the next call), false at the end; then vv_answer.failed says whether it is
 * whole.
 */
bool vv_answer_next(vv_answer *a, vv_str *ret_piece);
/* The first piece is the whole answer. */
static inline bool vv_answer_is_whole(const vv_answer *a)
{
    return a->more == NULL;
}

/* The views by name: what HTTP routes and the command's verbs call. */
typedef vv_code vv_view(vv_answer *a, vv_query *q, vv_error *err);
vv_view vv_answer_executions, vv_answer_execution, vv_answer_functions, vv_answer_flame, vv_answer_callers,
    vv_answer_callees, vv_answer_streams, vv_answer_stream, vv_answer_spans, vv_answer_span, vv_answer_errors,
    vv_answer_error, vv_answer_threads, vv_answer_value, vv_answer_value_uses, vv_answer_context, vv_answer_search,
    vv_answer_segments, vv_answer_store, vv_answer_logs, vv_answer_checkpoint;
