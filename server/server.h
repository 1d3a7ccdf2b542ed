/*
 * The server without its sockets: from a request to a response. It owns the library of the store it answers about.
 * vv_server_handle may be called by many threads at once.
 */
#pragma once

#include "index/index.h"
#include "server/guard.h"

typedef struct {
    const char *store;     /* as vv_store_path_of takes it; NULL: the resolver's */
    const char *token;     /* what a client must know, or NULL */
    const char *web_dir;   /* the dashboard's files from there, for development; NULL: the embedded ones */
    size_t memory_bytes;   /* of loaded executions */
    const vv_index_options *index; /* NULL: none; what it points to outlives the server */
} vv_server_options;

typedef struct vv_server vv_server;

/* A store that is not there yet is fine; errors are those of opening one that can't be read. */
VV_MUST_CHECK vv_code vv_server_new(vv_server **ret, const vv_server_options *o, vv_error *err);
/* Whether the store is there now. Any thread. */
bool vv_server_has_store(vv_server *s);
/* At most so many may follow the store at a time. Before the first request. */
void vv_server_limit_followers(vv_server *s, unsigned n);
/* Ends those who follow the store, whose answers would never end, and lets nobody else. Any thread. */
void vv_server_stop(vv_server *s);
void vv_server_free(vv_server *s); /* after all responses are done */

/* Hosts and port are known once the server listens; before the first request. */
void vv_server_set_guard(vv_server *s, const vv_guard *g);

/* Answers into an empty response. */
void vv_server_handle(vv_server *s, const vv_request *rq, vv_response *rs);
