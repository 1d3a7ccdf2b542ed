#include "config.h"

#include "server/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "views/executions.h"

static const struct {
    unsigned status;
    const char *slug, *title, *remedy;
} kinds[] = {
    [VV_PROBLEM_BAD_TARGET] = {400, "bad-target", "The address is malformed", "Use a path that /api/v1 lists"},
    [VV_PROBLEM_BAD_PARAMETER] = {400, "bad-parameter", "A parameter is not accepted",
                                  "Correct or leave out the parameter; GET /api/v1 lists those of each resource"},
    [VV_PROBLEM_UNAUTHORIZED] = {401, "unauthorized", "A token is needed",
                                 "Send the token as `Authorization: Bearer TOKEN`, or open the address with ?token= "
                                 "once"},
    [VV_PROBLEM_BAD_ORIGIN] = {403, "bad-origin", "Requests of another site are refused",
                               "Open the dashboard of this server itself"},
    [VV_PROBLEM_NOT_FOUND] = {404, "not-found", "There is no such thing here", "GET /api/v1 lists what there is"},
    [VV_PROBLEM_NO_STORE] = {404, "no-store", "There is no store yet",
                             "Record a program (`varve-lua SCRIPT`, or any program that uses libvarve) into that "
                             "store; this server shows it as soon as it is there"},
    [VV_PROBLEM_METHOD] = {405, "method-not-allowed", "The method is not allowed here", "Use GET or HEAD"},
    [VV_PROBLEM_AMBIGUOUS] = {409, "ambiguous", "The name stands for several things",
                              "Use one of the full ids in matches"},
    [VV_PROBLEM_GONE] = {410, "gone", "That state of the store is not at hand any more",
                         "Leave as_of out, or use the present token"},
    [VV_PROBLEM_MISDIRECTED] = {421, "misdirected", "This server does not answer to that host name",
                                "Use localhost or the address that varve serve printed, or start it with --allow-host"},
    [VV_PROBLEM_BODY] = {413, "body-too-large", "A request here has no body", "Send no body"},
    [VV_PROBLEM_VALUE] = {409, "value-unavailable", "The value is there, but can't be given out",
                          "GET /api/v1/values/{cid} tells its state, and /uses where it was captured"},
    [VV_PROBLEM_SEGMENT] = {409, "segment-unavailable", "The segment is there, but can't be given out",
                            "GET /api/v1/streams/{euid}/{plane} tells its state"},
    [VV_PROBLEM_RANGE] = {416, "range", "The body has no such range", "Ask for a range inside the body"},
    [VV_PROBLEM_INTERNAL] = {500, "internal", "The server failed", "Try again; if it stays, report it"},
    [VV_PROBLEM_STORE] = {500, "store-unreadable", "The store can't be read",
                          "Check that the directory is a readable store"},
    [VV_PROBLEM_BUSY] = {503, "limit", "The answer exceeds the server's memory",
                         "Start varve serve with a larger --memory, or ask for less: fewer executions at a time, a "
                         "smaller max_nodes"},
    [VV_PROBLEM_FOLLOWERS] = {503, "too-many-followers", "No more can follow the store at a time",
                              "Close another follower, or ask from time to time (If-None-Match makes that cheap)"},
    [VV_PROBLEM_STRANGER] = {403, "stranger", "This socket is another user's",
                             "Start a server of your own, or ask as the user who started this one"},
    [VV_PROBLEM_BAD_REQUEST] = {400, "bad-request", "The request is malformed",
                                "Send plain header lines that end in CR LF, and one length of the body"},
    [VV_PROBLEM_STOPPING] = {503, "stopping", "The server is ending", "Start it again, or ask the one that follows it"},
};

void vv_problem_set(vv_problem *p, vv_problem_kind kind, const char *fmt, ...)
{
    *p = (vv_problem){.kind = kind};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->detail, sizeof p->detail, fmt, ap);
    va_end(ap);
}

static void matches_json(vv_json *j, const vv_problem *p)
{
    vv_json_kv_arr(j, "matches");
    for (size_t i = 0; i < p->match_count; i++) {
        char text[VV_THREAD_TEXT];
        vv_thread_text(text, &p->matches[i]);
        vv_json_cstr(j, text);
    }
    vv_json_end_arr(j);
}

static void reach_json(vv_json *j, const vv_reach *r)
{
    vv_json_kv_obj(j, "reached");
    vv_json_kv_u64(j, "steps", r->steps);
    vv_json_kv_u64(j, "of", r->of);
    vv_json_kv_u64(j, "bytes", r->bytes);
    vv_json_kv_cstr(j, "kind", r->kind);
    vv_json_end_obj(j);
}

void vv_problem_respond(vv_response *r, const vv_problem *p)
{
    char type[64];
    vv_wr w = vv_wr_growing(16 * 1024);
    vv_json j = vv_json_init(&w);
    snprintf(type, sizeof type, "urn:varve:problem:%s", kinds[p->kind].slug);
    vv_json_obj(&j);
    vv_json_kv_cstr(&j, "type", type);
    vv_json_kv_cstr(&j, "title", kinds[p->kind].title);
    vv_json_kv_u64(&j, "status", kinds[p->kind].status);
    vv_json_kv_cstr(&j, "detail", p->detail);
    vv_json_kv_cstr(&j, "remedy", p->remedy ? p->remedy : kinds[p->kind].remedy);
    if (p->parameter)
        vv_json_kv_cstr(&j, "parameter", p->parameter);
    if (p->as_of)
        vv_json_kv_cstr(&j, "as_of", p->as_of);
    if (p->match_count)
        matches_json(&j, p);
    if (p->state)
        vv_json_kv_cstr(&j, "state", p->state);
    if (p->reach.of)
        reach_json(&j, &p->reach);
    vv_json_end_obj(&j);
    r->status = kinds[p->kind].status;
    vv_response_header(r, "Content-Type", "application/problem+json");
    vv_response_header(r, "Cache-Control", "no-store");
    if (p->kind == VV_PROBLEM_METHOD)
        vv_response_header(r, "Allow", "GET, HEAD");
    if (p->kind == VV_PROBLEM_FOLLOWERS)
        vv_response_header(r, "Retry-After", "5");
    if (p->kind == VV_PROBLEM_STOPPING || p->kind == VV_PROBLEM_BAD_REQUEST)
        vv_response_header(r, "Connection", "close");
    if (p->kind == VV_PROBLEM_UNAUTHORIZED)
        vv_response_header(r, "WWW-Authenticate", "Bearer");
    if (vv_json_done(&j))
        vv_response_take(r, &w);
    else
        vv_wr_done(&w);
}
