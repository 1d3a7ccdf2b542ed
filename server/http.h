/*
 * The sockets: libmicrohttpd in front of a vv_server. The only file that includes microhttpd.h is http.c.
 *
 *     vv_http_start -> vv_http_url, requests are served by threads of the library -> vv_http_stop
 */
#pragma once

#include "server/log.h"
#include "server/server.h"

typedef struct vv_http vv_http;

typedef struct {
    const char *listen;             /* "ADDR:PORT", "[ADDR6]:PORT" (port 0 = any free one), "unix:PATH"; NULL: a socket
                                       that was handed over, else VV_HTTP_LISTEN */
    const char *const *allow_hosts; /* further names that clients may use */
    size_t allow_host_count;
    bool has_token;                 /* the server asks for one: other addresses than loopback are allowed */
    vv_log *log;                    /* of requests, or NULL; borrowed until the end */
} vv_http_options;

#define VV_HTTP_LISTEN "127.0.0.1:8278"

/*
 * Listens and serves. server is borrowed and gets its guard set. Errors: ARG (an address that is none, or not loopback
 * and no token), EXISTS (the port is occupied), IO.
 */
VV_MUST_CHECK vv_code vv_http_start(vv_http **ret, vv_server *server, const vv_http_options *o, vv_error *err);

/* "http://127.0.0.1:8278/", or "unix:PATH" */
const char *vv_http_url(const vv_http *h);

/* Nanoseconds since the last request ended; 0 while one is served. */
uint64_t vv_http_idle_ns(vv_http *h);

/* Refuses new connections, and further requests of those that there are. */
void vv_http_refuse(vv_http *h);
/* Refuses new connections, lets running requests end (for at most drain_ns), closes. */
void vv_http_stop(vv_http *h, uint64_t drain_ns);
