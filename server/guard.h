/*
 * What a request must be before anything looks at it (docs/http-api.md): its Host one of ours, its Origin (where it
 * has one) ours too, its raw target plain. Against pages of other sites that make a browser ask this server (DNS
 * rebinding, cross-site requests), and against addresses that mean one thing here and another elsewhere. Pure
 * functions.
 */
#pragma once

#include "server/problem.h"

/* VV_TARGET_PARAMS: names, a repeated one counted once. */
enum { VV_GUARD_HOSTS = 32, VV_TARGET_PARAMS = 64 };

typedef struct {
    unsigned port;                       /* the one listened on; 0 for a Unix socket, where a Host has none */
    const char *socket;                  /* path of the Unix socket, or NULL. Borrowed */
    const char *hosts[VV_GUARD_HOSTS];   /* names and literals; IPv6 in brackets. Borrowed */
    size_t host_count;
} vv_guard;

/* localhost, 127.0.0.1 and [::1]; more are added to hosts. */
vv_guard vv_guard_init(unsigned port);
/* False where there is no room. host is borrowed. */
bool vv_guard_allow(vv_guard *g, const char *host);
/* Whether it is what a Host header can name: a name or an address without a port, IPv6 in brackets. */
bool vv_guard_is_host(const char *host);

/* False and a problem (503, 421, 403, 400) where the request is refused. */
bool vv_guard_check(const vv_guard *g, const vv_request *rq, vv_problem *ret);

/* A target taken apart. Texts are decoded copies that end in NUL; owned. */
typedef struct {
    char *path;
    vv_param *params;
    size_t param_count;
    void *owned; /* the texts */
} vv_target;

/*
 * Of a target that passed the check. False and a problem for broken escapes, NUL, text that is not UTF-8, and names
 * given more often than any view lets them be.
 */
bool vv_target_parse(const char *raw, vv_target *ret, vv_problem *problem);
void vv_target_done(vv_target *t); /* accepts a zeroed one */
