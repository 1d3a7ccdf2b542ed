/* The body of a large answer: pieces of JSON, compressed where the client takes that, handed out in any portions. */
#pragma once

#include <sys/types.h>

#include "server/compress.h"
#include "views/answer.h"

typedef struct vv_body vv_body;

/* Takes the answer over (on success). NULL without memory. Owned by one thread at a time. */
vv_body *vv_body_new(vv_answer *answer, vv_coding coding);
void vv_body_free(vv_body *b); /* accepts NULL */

/* Up to cap (> 0) bytes: their count, 0 at the end, -1 where the answer can't be finished. */
ssize_t vv_body_read(vv_body *b, char *buf, size_t cap);
