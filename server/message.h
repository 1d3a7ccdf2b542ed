/*
 * A request and a response as plain data, so that everything but http.c works, and is tested, without a socket.
 * A request's texts belong to who made it and live until the response is done.
 */
#pragma once

#include "server/body.h"

typedef struct {
    const char *method;
    const char *target;          /* as it stood in the request line, undecoded; NULL: unknown */
    bool stranger;               /* of another user, at a socket that is this user's */
    const char *fault;           /* why its head is refused, or NULL */
    bool stopping;               /* the server ends: nothing more is answered */
    unsigned host_count;         /* of Host headers */
    const char *host;            /* the last one, or NULL */
    unsigned origin_count;
    const char *origin;
    const char *accept, *accept_encoding, *if_none_match, *authorization, *cookie, *range, *if_range; /* or NULL */
    const char *last_event_id;   /* or NULL */
    const int *socket;           /* of the client, where there is one */
} vv_request;

enum { VV_HEADERS_MAX = 16, VV_HEADER_VALUE = 320 };

typedef struct {
    const char *name; /* a literal */
    char value[VV_HEADER_VALUE];
} vv_header;

typedef struct {
    unsigned status;
    vv_header headers[VV_HEADERS_MAX];
    size_t header_count;
    const uint8_t *bytes; /* the whole body, constant or owned, where body is NULL */
    size_t len;
    bool owned;           /* bytes are to be freed */
    vv_body *body;        /* a body that is produced as it is read */
    bool has_file;        /* the body is body_len bytes of a file from file_off on; its descriptor is owned */
    int file;
    uint64_t file_off;
    bool has_body_len;    /* of body: its length is known before */
    uint64_t body_len;
    unsigned patience_s; /* the connection may be silent for so long; 0: as any other */
} vv_response;

void vv_response_done(vv_response *r); /* frees the body, closes the file; accepts a zeroed one */

/* Adds a header; a value that is too long is left out, as a cut one would lie. */
VV_PRINTF(3, 4) void vv_response_header(vv_response *r, const char *name, const char *fmt, ...);
const char *vv_response_get(const vv_response *r, const char *name); /* NULL where absent */
/* The body's bytes: constant, or taken over from a writer. */
void vv_response_constant(vv_response *r, const void *bytes, size_t n);
void vv_response_take(vv_response *r, vv_wr *w);
