/* The body of a large answer: pieces of JSON, compressed where the client takes that, handed out in any portions. */
#pragma once

#include <sys/types.h>

#include "server/compress.h"
#include "views/answer.h"

typedef struct vv_body vv_body;

/* Takes the answer over (on success). NULL without memory. Owned by one thread at a time. */
vv_body *vv_body_new(vv_answer *answer, vv_coding coding);
/* What is made as it is read, by another: read is as vv_body_read, and may block. */
typedef struct {
    ssize_t (*read)(void *state, char *buf, size_t cap);
    void (*free)(void *state);
} vv_body_source;
/* Takes state over (on success). NULL without memory. */
vv_body *vv_body_of(const vv_body_source *source, void *state);
void vv_body_free(vv_body *b); /* accepts NULL */

/* Up to cap (> 0) bytes: their count, 0 at the end, -1 where the answer can't be finished. */
ssize_t vv_body_read(vv_body *b, char *buf, size_t cap);
