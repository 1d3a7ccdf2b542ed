/*
 * The bytes of an immutable file as a body: whole or a range of one, as an attachment with a tag of its content, kept
 * for ever by who has it. Where the file has a descriptor the system sends it, and no byte is copied here.
 */
#pragma once

#include "base/sha256.h"
#include "reader/source.h"
#include "server/message.h"

typedef struct {
    vv_open_file *file; /* taken over where its bytes are sent: then it is closed for the caller */
    uint64_t off, len;  /* of the body in it */
    const uint8_t *sum; /* SHA-256 of the body */
    const char *name;   /* to be saved as: letters, digits, "_-." */
} vv_file_body;

/*
 * Answers GET or HEAD with 200, 206, 304 or 416. A file that turns out to be shorter ends the connection. Errors
 * (NOMEM, IO) are the caller's to answer.
 */
VV_MUST_CHECK vv_code vv_file_respond(vv_response *rs, const vv_request *rq, const vv_file_body *b, vv_error *err);
