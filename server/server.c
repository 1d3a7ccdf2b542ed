#include "config.h"

#include "server/server.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/sha256.h"
#include "base/store_path.h"
#include "base/text.h"
#include "server/accept.h"
#include "server/assets.h"
#include "server/etag.h"
#include "server/follow.h"
#include "server/routes.h"
#include "server/token.h"

enum {
    COMPRESS_MIN = 1024,
    POLL_NS = 20000000,
    BUILD_TEXT = 64,
    PAGE_MAX = 1024 * 1024,
    FOLLOW_MAX = 64 * 1024 * 1024,
    TURNS_MIN = 2,
    TURNS_MAX = 16,
};

struct vv_server {
    vv_library *library;
    vv_hub *hub;
    vv_guard guard;
    char *web_dir, *store_name, *token_text;
    vv_token token;
    char build[BUILD_TEXT];
    sem_t turns; /* of heavy answers: one for each processor */
};

/* What one request is answered from. */
typedef struct {
    vv_server *server;
    const vv_request *rq;
    vv_response *rs;
    vv_target target;
    uint64_t index_ns, fold_ns, view_ns, encode_ns;
} exchange;

/* Names the running program, so that another build's answers are never taken for this one's. */
static void name_build(char out[BUILD_TEXT])
{
    uint8_t sum[VV_SHA256_BYTES] = {0}, buf[16384];
    char hex[17];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n;
        vv_sha256_ctx c;
        vv_sha256_init(&c);
        while ((n = read(fd, buf, sizeof buf)) > 0)
            vv_sha256_update(&c, buf, (size_t)n);
        vv_sha256_final(&c, sum);
        close(fd);
    }
    vv_hex(hex, sum, 8);
    snprintf(out, BUILD_TEXT, "%s-%s", PACKAGE_VERSION, hex);
}

/* The last three parts of the store's path, "project/.baml/profiles-v1": enough to know it by. */
static vv_code name_store(char **ret, const char *arg, vv_error *err)
{
    char path[PATH_MAX], full[2 * PATH_MAX];
    vv_store_origin origin;
    vv_code rc = vv_store_path_of(path, sizeof path, arg, &origin, err);
    if (rc != VV_OK)
        return rc;
    const char *tail = path;
    while (strncmp(tail, "./", 2) == 0)
        tail += 2;
    full[0] = 0;
    if (*tail != '/' && getcwd(full, PATH_MAX))
        strcat(full, "/");
    strcat(full, tail);
    const char *at = full + strlen(full);
    for (int parts = 0; at > full && parts < 3; at--)
        parts += at[-1] == '/';
    *ret = strdup(*at == '/' ? at + 1 : at);
    return *ret ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a name");
}

/* A store that is not there yet is waited for; one that can't be read is said so at once. */
static vv_code check_store(vv_server *s, vv_error *err)
{
    const vv_look *look;
    vv_error why = {0};
    vv_code rc = vv_library_look(s->library, &look, &why);
    if (rc == VV_OK)
        vv_look_release(s->library, look);
    if (rc == VV_OK || rc == VV_ERR_NOTFOUND)
        return VV_OK;
    if (err)
        *err = why;
    return rc;
}

static unsigned count_turns(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < TURNS_MIN ? TURNS_MIN : n > TURNS_MAX ? TURNS_MAX : (unsigned)n;
}

vv_code vv_server_new(vv_server **ret, const vv_server_options *o, vv_error *err)
{
    vv_server *s = calloc(1, sizeof *s);
    if (!s)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for a server");
    name_build(s->build);
    sem_init(&s->turns, 0, count_turns());
    s->guard = vv_guard_init(0);
    s->web_dir = o->web_dir ? strdup(o->web_dir) : NULL;
    s->token_text = o->token ? strdup(o->token) : NULL;
    vv_code rc = name_store(&s->store_name, o->store, err);
    if (rc == VV_OK && ((o->web_dir && !s->web_dir) || (o->token && !s->token_text)))
        rc = vv_fail(err, VV_ERR_NOMEM, "no memory for a server");
    if (rc == VV_OK)
        rc = vv_library_open(&s->library, o->store, o->memory_bytes, POLL_NS, err);
    if (rc == VV_OK)
        rc = vv_hub_new(&s->hub, s->library, NULL, err);
    if (rc == VV_OK)
        rc = vv_library_watch(s->library, vv_hub_notice, s->hub, err);
    if (rc == VV_OK && o->index)
        rc = vv_library_use_index(s->library, o->index, err);
    if (rc == VV_OK)
        rc = check_store(s, err);
    if (rc != VV_OK) {
        vv_server_free(s);
        return rc;
    }
    *ret = s;
    return VV_OK;
}

void vv_server_free(vv_server *s)
{
    if (!s)
        return;
    vv_hub_free(s->hub);
    vv_library_close(s->library);
    free(s->store_name);
    free(s->web_dir);
    free(s->token_text);
    sem_destroy(&s->turns);
    free(s);
}

void vv_server_limit_followers(vv_server *s, unsigned n)
{
    vv_hub_limit(s->hub, n);
}

void vv_server_stop(vv_server *s)
{
    vv_hub_stop(s->hub);
}

void vv_server_set_guard(vv_server *s, const vv_guard *g)
{
    s->guard = *g;
    vv_token_init(&s->token, s->token_text, g->port);
}

static void security_headers(vv_response *rs)
{
    vv_response_header(rs, "X-Content-Type-Options", "nosniff");
    vv_response_header(rs, "Referrer-Policy", "no-referrer");
    vv_response_header(rs, "Cross-Origin-Resource-Policy", "same-origin");
    if (!vv_response_get(rs, "Content-Security-Policy"))
        vv_response_header(rs, "Content-Security-Policy", "default-src 'none'; sandbox");
}

static void refuse(exchange *x, vv_problem_kind kind, const char *parameter, const char *detail)
{
    vv_problem p;
    vv_problem_set(&p, kind, "%s", detail);
    p.parameter = parameter;
    vv_problem_respond(x->rs, &p);
}

/* Where to look for what was not found; NULL: in the list of resources. */
static const char *remedy_of(const vv_query *q)
{
    static const struct {
        const char *parameter, *remedy;
    } remedies[] = {
        {"id", "GET /api/v1/executions lists them"},
        {"execution", "GET /api/v1/executions lists them"},
        {"base", "GET /api/v1/executions lists them"},
        {"function", "GET /api/v1/functions lists those that were called, /api/v1/search?q= finds all"},
        {"thread", "GET /api/v1/executions/{id}/threads lists them"},
        {"call", "GET /api/v1/executions/{id}/spans lists those that were recorded one by one"},
        {"error", "GET /api/v1/executions/{id}/errors lists those that were recorded"},
        {"key", "GET /api/v1/flame?ids=1 names the contexts of an execution"},
        {"context", "GET /api/v1/flame?ids=1 names the contexts of an execution"},
        {"root", "GET /api/v1/flame?ids=1 names the contexts of an execution"},
        {"cid", "GET /api/v1/values/{cid}/uses tells where it was captured"},
        {"path", "Leave out the last steps of the path: a value shows what it holds"},
        {"euid", "GET /api/v1/streams lists them"},
        {"plane", "Use meta, data or health"},
        {"seq", "GET /api/v1/streams/{euid}/{plane} lists them"},
    };
    for (size_t i = 0; q->parameter && i < VV_ARRAY_LEN(remedies); i++)
        if (strcmp(q->parameter, remedies[i].parameter) == 0)
            return remedies[i].remedy;
    return NULL;
}

/* What a view's error is in HTTP. Details of an unreadable store name files, so they stay inside. */
static void refuse_error(exchange *x, const vv_query *q, const vv_error *err)
{
    vv_problem p;
    switch (err->code) {
    case VV_ERR_ARG:
        vv_problem_set(&p, VV_PROBLEM_BAD_PARAMETER, "%s", err->msg);
        break;
    case VV_ERR_NOTFOUND:
        vv_problem_set(&p, VV_PROBLEM_NOT_FOUND, "%s", err->msg);
        p.remedy = remedy_of(q);
        break;
    case VV_ERR_AMBIGUOUS:
        vv_problem_set(&p, VV_PROBLEM_AMBIGUOUS, "%s", err->msg);
        p.matches = q->matches;
        p.match_count = q->match_count;
        break;
    case VV_ERR_NOMEM:
    case VV_ERR_LIMIT:
        vv_problem_set(&p, VV_PROBLEM_BUSY, "%s", err->msg);
        break;
    case VV_OK:
    case VV_ERR_IO:
    case VV_ERR_CORRUPT:
    case VV_ERR_EXISTS:
    case VV_ERR_BUSY:
    case VV_ERR_CANCELLED:
        vv_problem_set(&p, VV_PROBLEM_INTERNAL, "%s", err->name ? err->name : "reading the store failed");
    }
    p.parameter = q->parameter;
    p.state = q->state;
    p.reach = q->reach;
    vv_problem_respond(x->rs, &p);
}

static void refuse_store(exchange *x, const vv_error *err)
{
    vv_problem p;
    if (err->code == VV_ERR_NOTFOUND)
        vv_problem_set(&p, VV_PROBLEM_NO_STORE, "there is no store at %s; it is served once a program records there",
                       x->server->store_name);
    else
        vv_problem_set(&p, VV_PROBLEM_STORE, "%s", err->name ? err->name : "opening the store failed");
    vv_problem_respond(x->rs, &p);
}

static bool take_look(exchange *x, const vv_look **ret)
{
    vv_error err = {0};
    if (vv_library_look(x->server->library, ret, &err) == VV_OK)
        return true;
    refuse_store(x, &err);
    return false;
}

/* Turns to the look of as_of where that was asked for. */
static bool turn_back(exchange *x, const vv_look **look)
{
    vv_query q = {.params = x->target.params, .param_count = x->target.param_count};
    const vv_str *as_of = vv_query_value(&q, "as_of");
    if (!as_of)
        return true;
    const vv_look *then;
    uint8_t token[32];
    if (!vv_unhex(token, sizeof token, *as_of)) {
        refuse(x, VV_PROBLEM_BAD_PARAMETER, "as_of", "must be the as_of of a former answer");
        return false;
    }
    if (vv_library_look_at(x->server->library, *as_of, &then, NULL) != VV_OK) {
        vv_problem p;
        vv_problem_set(&p, VV_PROBLEM_GONE, "the store has moved on since");
        p.parameter = "as_of";
        p.as_of = (*look)->generation;
        vv_problem_respond(x->rs, &p);
        return false;
    }
    vv_look_release(x->server->library, *look);
    *look = then;
    return true;
}

/* The state of what is answered from, build and the target as written: what an answer depends on. */
static void make_etag(const exchange *x, const char *state, char out[65])
{
    const char *const parts[] = {state, x->server->build, x->rq->target};
    uint8_t sum[VV_SHA256_BYTES];
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    for (size_t i = 0; i < VV_ARRAY_LEN(parts); i++)
        vv_sha256_update(&c, parts[i], strlen(parts[i]) + 1);
    vv_sha256_final(&c, sum);
    vv_hex(out, sum, sizeof sum);
}

/* What a 304 says too. No etag: of what is never the same again. */
static void caching_headers(exchange *x, const char *etag, vv_coding coding)
{
    const char *name = vv_coding_name(coding);
    if (!etag) {
        vv_response_header(x->rs, "Cache-Control", "no-store");
        vv_response_header(x->rs, "Vary", "Accept, Accept-Encoding");
        return;
    }
    vv_response_header(x->rs, "Cache-Control", "no-cache");
    vv_response_header(x->rs, "Vary", "Accept-Encoding");
    vv_response_header(x->rs, "ETag", "\"%s%s%s\"", etag, name ? "-" : "", name ? name : "");
}

static void json_headers(exchange *x, const char *etag, vv_coding coding)
{
    const char *name = vv_coding_name(coding);
    vv_response_header(x->rs, "Content-Type", "application/json");
    caching_headers(x, etag, coding);
    if (name)
        vv_response_header(x->rs, "Content-Encoding", "%s", name);
}

static void timing_header(exchange *x)
{
    vv_response_header(x->rs, "Server-Timing", "index;dur=%.3f, fold;dur=%.3f, view;dur=%.3f, encode;dur=%.3f",
                       (double)x->index_ns / 1e6, (double)x->fold_ns / 1e6, (double)x->view_ns / 1e6,
                       (double)x->encode_ns / 1e6);
}

/* A body that is all there: its length is sent, and it is compressed where that pays. False without memory. */
static bool respond_whole(exchange *x, vv_wr *w, const char *etag, vv_coding coding)
{
    uint64_t from = vv_now_ns();
    if (coding != VV_CODING_IDENTITY && w->len > COMPRESS_MIN) {
        vv_wr packed = vv_wr_growing(w->len + 4096);
        vv_compressor *z = vv_compressor_new(coding);
        bool good = z && vv_compress(z, w->buf, w->len, true, &packed);
        vv_compressor_free(z);
        vv_wr_done(w);
        *w = packed;
        if (!good)
            return false;
    } else {
        coding = VV_CODING_IDENTITY;
    }
    x->encode_ns = vv_now_ns() - from;
    x->rs->status = 200;
    json_headers(x, etag, coding);
    timing_header(x);
    vv_response_take(x->rs, w);
    return true;
}

static bool not_modified(exchange *x, const char *etag)
{
    if (!vv_etag_matches(x->rq->if_none_match, etag))
        return false;
    /* The tag of the 200 it stands for. Small answers are never coded: whether this one was, the client says. */
    vv_coding coding = vv_coding_choose(x->rq->accept_encoding);
    const char *name = vv_coding_name(coding);
    char coded[96];
    snprintf(coded, sizeof coded, "%s-%s\"", etag, name ? name : "");
    x->rs->status = 304;
    caching_headers(x, etag, name && strstr(x->rq->if_none_match, coded) ? coding : VV_CODING_IDENTITY);
    timing_header(x);
    return true;
}

static void respond_answer(exchange *x, vv_answer *a, const char *etag)
{
    vv_coding coding = vv_coding_choose(x->rq->accept_encoding);
    bool good;
    if (vv_answer_is_whole(a)) {
        good = respond_whole(x, &a->w, etag, coding);
    } else {
        x->rs->body = vv_body_new(a, coding);
        good = x->rs->body != NULL;
        if (good) {
            x->rs->status = 200;
            json_headers(x, etag, coding);
            timing_header(x);
        }
    }
    if (!good)
        refuse(x, VV_PROBLEM_BUSY, NULL, "no memory for the answer");
}

static bool has_hung_up(const vv_request *rq)
{
    char c;
    return rq->socket && recv(*rq->socket, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/*
 * Whole trees take all of a processor, and much memory while they are worked out: few at a time, and none for who is
 * gone once its turn has come. Who has only said all that it will say looks the same, and is taken for gone then.
 */
static vv_code answer(exchange *x, const vv_route *r, vv_answer *a, vv_query *q, vv_error *err)
{
    if (!r->heavy)
        return r->view(a, q, err);
    bool waits = sem_trywait(&x->server->turns) != 0;
    while (waits && sem_wait(&x->server->turns) != 0)
        ; /* a signal came in between */
    vv_code rc = waits && has_hung_up(x->rq)
        ? vv_fail(err, VV_ERR_LIMIT, "the client had ended the connection, or its part of it, when its turn came")
        : r->view(a, q, err);
    sem_post(&x->server->turns);
    return rc;
}

static void serve_view(exchange *x, const vv_route *r, const vv_route_ids *ids)
{
    const vv_look *look;
    char etag[65];
    uint64_t from = vv_now_ns();
    if (!take_look(x, &look))
        return;
    x->index_ns = vv_now_ns() - from;
    if (turn_back(x, &look)) {
        vv_query q = {.library = x->server->library, .look = look, .params = x->target.params,
                      .param_count = x->target.param_count, .id = ids->items[0], .sub = ids->items[1],
                      .third = ids->items[2]};
        char stamp[VV_ROUTE_STAMP];
        snprintf(stamp, sizeof stamp, "%s %016" PRIx64, look->generation, look->store->stamp);
        bool tagged = !r->untagged && (!r->stamp || r->stamp(&q, stamp));
        make_etag(x, stamp, etag);
        if (!tagged || !not_modified(x, etag)) {
            vv_error err = {0};
            vv_answer a;
            vv_answer_init(&a);
            from = vv_now_ns();
            vv_library_load_ns(true);
            vv_code rc = answer(x, r, &a, &q, &err);
            x->fold_ns = vv_library_load_ns(true);
            x->view_ns = vv_now_ns() - from - x->fold_ns;
            if (rc == VV_OK)
                respond_answer(x, &a, tagged ? etag : NULL);
            else
                refuse_error(x, &q, &err);
            vv_answer_done(&a);
        }
    }
    vv_look_release(x->server->library, look);
}

static void serve_raw(exchange *x, const vv_route *r, const vv_route_ids *ids)
{
    const vv_look *look;
    uint64_t from = vv_now_ns();
    if (!take_look(x, &look))
        return;
    x->index_ns = vv_now_ns() - from;
    from = vv_now_ns();
    if (turn_back(x, &look)) {
        vv_query q = {.library = x->server->library, .look = look, .params = x->target.params,
                      .param_count = x->target.param_count, .id = ids->items[0], .sub = ids->items[1],
                      .third = ids->items[2]};
        vv_error err = {0};
        if (r->raw(x->rs, x->rq, &q, &err) != VV_OK) {
            vv_response_done(x->rs);
            refuse_error(x, &q, &err);
        }
        x->view_ns = vv_now_ns() - from;
        timing_header(x);
    }
    vv_look_release(x->server->library, look);
}

/* A single answer that is there already: nobody waits for it, and it has a length. */
static bool tell_at_once(exchange *x, const vv_follow_ask *ask)
{
    vv_wr w = vv_wr_growing(FOLLOW_MAX);
    bool tells = ask->form == VV_FOLLOW_ONCE && vv_hub_tell(x->server->hub, ask->cursor, ask->wait_s == 0, &w);
    if (tells && (!vv_wr_ok(&w) || !respond_whole(x, &w, NULL, vv_coding_choose(x->rq->accept_encoding))))
        refuse(x, VV_PROBLEM_BUSY, NULL, "no memory for the answer");
    vv_wr_done(&w);
    return tells;
}

static void serve_follow(exchange *x)
{
    vv_query q = {.library = x->server->library, .params = x->target.params, .param_count = x->target.param_count};
    vv_error err = {0};
    vv_follow_ask ask;
    const vv_look *look;
    if (vv_follow_check(&ask, x->rq, &q, &err) != VV_OK) {
        refuse_error(x, &q, &err);
        return;
    }
    /* What was committed before the request is told, or known to who follows; no store yet is a state too. */
    uint64_t from = vv_now_ns();
    if (vv_library_look(x->server->library, &look, &err) == VV_OK) {
        vv_look_release(x->server->library, look);
    } else if (err.code != VV_ERR_NOTFOUND) {
        refuse_store(x, &err);
        return;
    }
    x->index_ns = vv_now_ns() - from;
    vv_error_clear(&err);
    if (!tell_at_once(x, &ask) && vv_follow_respond(x->rs, x->rq, &ask, x->server->hub, &err) != VV_OK)
        refuse(x, err.code == VV_ERR_NOMEM ? VV_PROBLEM_BUSY : VV_PROBLEM_FOLLOWERS, NULL, err.msg);
}

bool vv_server_has_store(vv_server *s)
{
    const vv_look *look;
    if (vv_library_look(s->library, &look, NULL) != VV_OK)
        return false;
    vv_look_release(s->library, look);
    return true;
}

static void serve_page(exchange *x, const vv_route *r)
{
    char etag[65], state[2 * PATH_MAX]; /* all of the facts that a page shows */
    if (x->target.param_count) {
        refuse(x, VV_PROBLEM_BAD_PARAMETER, x->target.params[0].name.p, "there are no parameters here");
        return;
    }
    vv_page_facts facts = {.build = x->server->build, .store_name = x->server->store_name,
                           .has_store = vv_server_has_store(x->server),
                           .followers = vv_hub_places(x->server->hub)};
    snprintf(state, sizeof state, "%d %u %s", facts.has_store, facts.followers, facts.store_name);
    make_etag(x, state, etag);
    if (not_modified(x, etag))
        return;
    vv_wr w = vv_wr_growing(PAGE_MAX);
    vv_json j = vv_json_init(&w);
    r->page(&j, &facts);
    if (!vv_wr_ok(&w) || !respond_whole(x, &w, etag, vv_coding_choose(x->rq->accept_encoding)))
        refuse(x, VV_PROBLEM_BUSY, NULL, "no memory for the answer");
    vv_wr_done(&w);
}

/* The page for a browser; for anybody else plain words. */
static void serve_root(exchange *x)
{
    vv_server *s = x->server;
    vv_response_header(x->rs, "Vary", "Accept");
    static const char *const text[] = {"text/plain", NULL};
    if (vv_accept_wants(x->rq->accept, "text/html", text) && vv_asset_respond(x->rs, s->web_dir, "/", x->rq))
        return;
    char base[300];
    snprintf(base, sizeof base, "http://%s", x->rq->host);
    vv_page_facts facts = {.base = base, .socket = s->guard.socket, .has_store = vv_server_has_store(s)};
    vv_wr w = vv_wr_growing(PAGE_MAX);
    vv_page_text(&w, &facts);
    x->rs->status = 200;
    vv_response_header(x->rs, "Content-Type", "text/plain; charset=utf-8");
    vv_response_header(x->rs, "Cache-Control", "no-store");
    vv_response_take(x->rs, &w);
}

static void serve(exchange *x)
{
    vv_route_ids ids;
    const vv_route *r = vv_route_find(x->target.path, &ids);
    bool root = strcmp(x->target.path, "/") == 0;
    vv_response asset = {0};
    if (!r && !root && !vv_asset_respond(&asset, x->server->web_dir, x->target.path, x->rq)) {
        refuse(x, VV_PROBLEM_NOT_FOUND, NULL, "no resource has that path");
        return;
    }
    if (strcmp(x->rq->method, "GET") != 0 && strcmp(x->rq->method, "HEAD") != 0)
        refuse(x, VV_PROBLEM_METHOD, NULL, "resources are only read here");
    else if (r && r->view)
        serve_view(x, r, &ids);
    else if (r && r->raw)
        serve_raw(x, r, &ids);
    else if (r && r->follow)
        serve_follow(x);
    else if (r)
        serve_page(x, r);
    else if (x->target.param_count)
        refuse(x, VV_PROBLEM_BAD_PARAMETER, x->target.params[0].name.p, "there are no parameters here");
    else if (root)
        serve_root(x);
    else {
        *x->rs = asset;
        asset = (vv_response){0};
    }
    vv_response_done(&asset);
}

void vv_server_handle(vv_server *s, const vv_request *rq, vv_response *rs)
{
    exchange x = {.server = s, .rq = rq, .rs = rs};
    vv_problem problem;
    if (!vv_guard_check(&s->guard, rq, &problem) || !vv_target_parse(rq->target, &x.target, &problem)) {
        vv_problem_respond(rs, &problem);
    } else {
        switch (vv_token_check(&s->token, rq, &x.target)) {
        case VV_TOKEN_GOOD:
            serve(&x);
            break;
        case VV_TOKEN_TRADE:
            vv_token_trade(&s->token, rq, rs);
            break;
        case VV_TOKEN_BAD:
            refuse(&x, VV_PROBLEM_UNAUTHORIZED, NULL, "the request carries no valid token");
            break;
        }
    }
    vv_target_done(&x.target);
    security_headers(rs);
}
