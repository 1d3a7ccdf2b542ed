#include "config.h"

#include "server/follow.h"

#include <string.h>

#include "server/accept.h"

enum {
    CURSOR_MAX = 64,
    PATIENCE_STREAM_S = 2 * VV_HUB_HEARTBEAT,
    PATIENCE_ONCE_S = VV_HUB_WAIT_MAX + 30,
};

/* A stream only where it is asked for by name, and nothing else is liked more. */
static vv_follow_form form_of(const char *accept)
{
    static const char *const to_events[] = {"application/x-ndjson", "application/json", NULL};
    static const char *const to_lines[] = {"text/event-stream", "application/json", NULL};
    return vv_accept_wants(accept, "text/event-stream", to_events)     ? VV_FOLLOW_EVENTS
           : vv_accept_wants(accept, "application/x-ndjson", to_lines) ? VV_FOLLOW_LINES
                                                                       : VV_FOLLOW_ONCE;
}

/* Any text that one of our cursors could be; one that we don't know is answered with the whole state. */
static bool is_plausible(vv_str cursor)
{
    for (size_t i = 0; i < cursor.n; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz.-", cursor.p[i]))
            return false;
    return cursor.n > 0 && cursor.n <= CURSOR_MAX;
}

vv_code vv_follow_check(vv_follow_ask *ret, const vv_request *rq, vv_query *q, vv_error *err)
{
    static const char *const names[] = {"cursor", "wait", NULL};
    *ret = (vv_follow_ask){.form = form_of(rq->accept)};
    vv_code rc = vv_query_check(q, names, err);
    if (rc == VV_OK)
        rc = vv_query_number(q, "wait", 0, VV_HUB_WAIT_MAX, &ret->wait_s, err);
    if (rc != VV_OK)
        return rc;
    if (vv_query_value(q, "as_of"))
        return vv_query_fail(q, "as_of", err, "is no parameter here: a past state does not change");
    if (ret->form != VV_FOLLOW_ONCE && vv_query_value(q, "wait"))
        return vv_query_fail(q, "wait", err, "a stream has no end; accept application/json to wait for one change");
    const vv_str *cursor = vv_query_value(q, "cursor");
    if (cursor && !is_plausible(*cursor))
        return vv_query_fail(q, "cursor", err, "must be the cursor of an event");
    if (cursor)
        ret->cursor = *cursor;
    /* A browser that connects again sends the last id, and the address as it was. */
    if (rq->last_event_id && *rq->last_event_id)
        ret->cursor = vv_cstr(rq->last_event_id);
    return VV_OK;
}

static ssize_t read_follower(void *state, char *buf, size_t cap)
{
    return vv_follower_read(state, buf, cap);
}

static void free_follower(void *state)
{
    vv_follower_free(state);
}

static ssize_t read_nothing(void *state, char *buf, size_t cap)
{
    (void)state;
    (void)buf;
    (void)cap;
    return 0;
}

static void free_nothing(void *state)
{
    (void)state;
}

vv_code vv_follow_respond(vv_response *rs, const vv_request *rq, const vv_follow_ask *ask, vv_hub *h, vv_error *err)
{
    static const vv_body_source follower = {read_follower, free_follower}, nothing = {read_nothing, free_nothing};
    static const char *const types[] = {"text/event-stream", "application/x-ndjson", "application/json"};
    vv_follower *f = NULL;
    vv_code rc = VV_OK;
    /* Whoever asks for the headers alone follows nothing. */
    if (strcmp(rq->method, "HEAD") != 0)
        rc = vv_follower_new(&f, h, ask->form, ask->cursor, ask->wait_s * UINT64_C(1000000000), rq->socket, err);
    if (rc != VV_OK)
        return rc;
    rs->body = vv_body_of(f ? &follower : &nothing, f);
    if (!rs->body) {
        vv_follower_free(f);
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a follower");
    }
    rs->status = 200;
    rs->patience_s = ask->form == VV_FOLLOW_ONCE ? PATIENCE_ONCE_S : PATIENCE_STREAM_S;
    vv_response_header(rs, "Content-Type", "%s", types[ask->form]);
    vv_response_header(rs, "Cache-Control", "no-store");
    vv_response_header(rs, "Vary", "Accept");
    return VV_OK;
}
