#include "config.h"

#include "server/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/text.h"

vv_guard vv_guard_init(unsigned port)
{
    return (vv_guard){.port = port, .hosts = {"localhost", "127.0.0.1", "[::1]"}, .host_count = 3};
}

bool vv_guard_allow(vv_guard *g, const char *host)
{
    if (g->host_count == VV_GUARD_HOSTS)
        return false;
    g->hosts[g->host_count++] = host;
    return true;
}

bool vv_guard_is_host(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    bool bracketed = *host == '[';
    const char *p = host + bracketed;
    size_t n = 0;
    while (p[n] && (strchr(letters, p[n]) || strchr(bracketed ? ":." : "-._", p[n])))
        n++;
    return n && strcmp(p + n, bracketed ? "]" : "") == 0;
}

/* Exactly one of our names, and our port or (where it may be left out) none. */
static bool is_ours(const vv_guard *g, const char *authority, bool portless)
{
    char port[8];
    snprintf(port, sizeof port, ":%u", g->port);
    for (size_t i = 0; i < g->host_count; i++) {
        size_t n = strlen(g->hosts[i]);
        if (strncasecmp(authority, g->hosts[i], n) != 0)
            continue;
        if ((portless && authority[n] == 0) || (g->port && strcmp(authority + n, port) == 0))
            return true;
    }
    return false;
}

static bool origin_is_ours(const vv_guard *g, const char *origin)
{
    static const char scheme[] = "http://";
    size_t n = strlen(scheme);
    return strncasecmp(origin, scheme, n) == 0 && is_ours(g, origin + n, g->port == 80);
}

static bool contains_escape(const char *path, size_t n, const char *escape)
{
    for (size_t i = 0; i + 3 <= n; i++)
        if (strncasecmp(path + i, escape, 3) == 0)
            return true;
    return false;
}

/* The length of a dot at p, plain or encoded; 0 where there is none. */
static size_t dot_length(const char *p)
{
    return *p == '.' ? 1 : strncasecmp(p, "%2e", 3) == 0 ? 3 : 0;
}

/* The reason a raw target is refused, or NULL. */
static const char *target_fault(const char *raw)
{
    static const char *const escapes[] = {"%00", "%2f", "%5c"};
    if (!raw || *raw != '/')
        return "the target must be a path that starts with /";
    for (const char *p = raw; *p; p++)
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
            return "the target holds a byte that is not printable ASCII";
    size_t n = strcspn(raw, "?");
    for (size_t i = 0; i < VV_ARRAY_LEN(escapes); i++)
        if (contains_escape(raw, n, escapes[i]))
            return "the path holds an encoded slash, backslash or NUL";
    for (size_t i = 0; i < n; i++)
        if (dot_length(raw + i) && dot_length(raw + i + dot_length(raw + i)))
            return "the path holds ..";
    if (memchr(raw, '\\', n))
        return "the path holds a backslash";
    return NULL;
}

bool vv_guard_check(const vv_guard *g, const vv_request *rq, vv_problem *ret)
{
    if (rq->stopping) {
        vv_problem_set(ret, VV_PROBLEM_STOPPING, "the server ends");
        return false;
    }
    if (rq->fault) {
        vv_problem_set(ret, VV_PROBLEM_BAD_REQUEST, "%s", rq->fault);
        return false;
    }
    if (rq->stranger) {
        vv_problem_set(ret, VV_PROBLEM_STRANGER, "the request is another user's");
        return false;
    }
    if (rq->host_count != 1 || !is_ours(g, rq->host, true)) {
        vv_problem_set(ret, VV_PROBLEM_MISDIRECTED, "%s",
                       rq->host_count == 1 ? "the Host header names another host or port"
                       : rq->host_count    ? "the request has several Host headers"
                                           : "the request has no Host header");
        return false;
    }
    if (rq->origin_count > 1 || (rq->origin_count && !origin_is_ours(g, rq->origin))) {
        vv_problem_set(ret, VV_PROBLEM_BAD_ORIGIN, "the Origin header names another site");
        return false;
    }
    const char *fault = target_fault(rq->target);
    if (fault)
        vv_problem_set(ret, VV_PROBLEM_BAD_TARGET, "%s", fault);
    return fault == NULL;
}

/* Decodes n characters into out and ends it with NUL; -1 for a broken escape or a NUL. */
static ptrdiff_t decode(char *out, const char *s, size_t n, bool query)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c == '%') {
            if (n - i < 3 || !vv_unhex(&c, 1, (vv_str){s + i + 1, 2}) || c == 0)
                return -1;
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        out[len++] = (char)c;
    }
    out[len] = 0;
    return (ptrdiff_t)len;
}

static bool bad_parameter(vv_problem *problem, const char *name, const char *what)
{
    vv_problem_set(problem, VV_PROBLEM_BAD_PARAMETER, "%s", what);
    problem->parameter = name;
    return false;
}

static bool add_param(vv_target *t, const vv_param *p, vv_problem *problem)
{
    size_t most = vv_query_repeats(p->name), same = 0, single = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        same += vv_str_eq(t->params[i].name, p->name);
        single += vv_query_repeats(t->params[i].name) == 1;
    }
    if (same == most)
        return bad_parameter(problem, p->name.p,
                             most == 1 ? "the parameter is given more than once" : "the parameter is given too often");
    if (most == 1 && single == VV_TARGET_PARAMS)
        return bad_parameter(problem, NULL, "the query holds too many parameters");
    if ((t->param_count & (t->param_count + 1)) == 0) { /* 1, 3, 7: full */
        vv_param *bigger = realloc(t->params, (2 * t->param_count + 1) * sizeof *bigger);
        if (!bigger) {
            vv_problem_set(problem, VV_PROBLEM_BUSY, "no memory for the request");
            return false;
        }
        t->params = bigger;
    }
    t->params[t->param_count++] = *p;
    return true;
}

/* One name=value of the query into t; *at moves past what was written. */
static bool parse_param(vv_target *t, char **at, const char *s, size_t n, vv_problem *problem)
{
    const char *equals = memchr(s, '=', n);
    size_t name_len = equals ? (size_t)(equals - s) : n;
    ptrdiff_t len = decode(*at, s, name_len, true);
    if (len <= 0 || !vv_utf8_valid((vv_str){*at, (size_t)len}))
        return bad_parameter(problem, NULL, "the query holds a parameter without a readable name");
    vv_param p = {.name = {*at, (size_t)len}};
    *at += len + 1;
    len = equals ? decode(*at, equals + 1, n - name_len - 1, true) : decode(*at, "", 0, true);
    if (len < 0 || !vv_utf8_valid((vv_str){*at, (size_t)len}))
        return bad_parameter(problem, p.name.p, "the value has a broken escape, a NUL, or is not UTF-8");
    p.value = (vv_str){*at, (size_t)len};
    *at += len + 1;
    return add_param(t, &p, problem);
}

static size_t count_params(const char *query)
{
    size_t n = 1;
    for (; *query; query++)
        n += *query == '&';
    return n;
}

bool vv_target_parse(const char *raw, vv_target *ret, vv_problem *problem)
{
    size_t n = strcspn(raw, "?"), whole = strlen(raw);
    /* Decoding never lengthens; each text gets a NUL, of which separators pay all but two, and a valueless name one. */
    char *at = malloc(whole + count_params(raw + n) + 4);
    *ret = (vv_target){.owned = at};
    if (!at) {
        vv_problem_set(problem, VV_PROBLEM_BUSY, "no memory for the request");
        return false;
    }
    ret->path = at;
    ptrdiff_t len = decode(at, raw, n, false);
    if (len < 0) {
        vv_problem_set(problem, VV_PROBLEM_BAD_TARGET, "the path holds a broken escape");
        return false;
    }
    at += len + 1;
    if (n == whole || n + 1 == whole)
        return true;
    for (const char *p = raw + n + 1;; p++) {
        size_t part = strcspn(p, "&");
        if (!parse_param(ret, &at, p, part, problem))
            return false;
        p += part;
        if (!*p)
            return true;
    }
}

void vv_target_done(vv_target *t)
{
    free(t->owned);
    free(t->params);
    *t = (vv_target){0};
}
