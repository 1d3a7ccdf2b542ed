/*
 * A content-addressed object of a store (docs/store.md), read in bounded memory: opened by its id, then verified in one
 * pass, keeping the body or only its digest. What is wrong with it is a state of the object, not a failure.
 *
 *     vv_object o;
 *     if (vv_object_open(&o, source, &cid, max, err) == VV_OK && o.state == VV_OBJECT_GOOD)
 *         if (vv_object_verify(&o, NULL, NULL, err) == VV_OK && o.state == VV_OBJECT_GOOD)
 *             vv_object_read(&o, 0, buf, n, err);
 *     vv_object_close(&o);
 *
 * Owned by one thread.
 */
#pragma once

#include "format/cas.h"
#include "reader/source.h"

typedef enum {
    VV_OBJECT_GOOD,       /* so far; wholly once it is verified */
    VV_OBJECT_MISSING,    /* no file of that name */
    VV_OBJECT_DAMAGED,    /* not an object, cut, changed, or another one than its name says: why */
    VV_OBJECT_TOO_LARGE,  /* its body has more bytes than max, and was not read */
    VV_OBJECT_UNREADABLE, /* the system refused, or the name is no regular file's: why */
    VV_OBJECT_STATES,
} vv_object_state;

typedef struct {
    vv_cid cid;
    vv_object_state state;
    const char *why;     /* literal: an error name of vv_cas_decode, "NotRegularFile" or "Io"; else NULL */
    uint16_t codec;      /* of one that is good or too large, as the next */
    uint64_t body_len;
    vv_file_ident ident; /* of the file; zero without one */
    vv_open_file file;
} vv_object;

/* Opens the file and looks at its head. Only failures of our own (NOMEM) are returned. */
VV_MUST_CHECK vv_code vv_object_open(vv_object *ret, vv_source *source, const vv_cid *cid, uint64_t max, vv_error *err);
/*
 * Reads all of a good object once, in steps, and checks it. The body goes to body (body_len bytes), and the SHA-256 of
 * the body alone to body_sum (VV_SHA256_BYTES), unless they are NULL. Failures as above.
 */
VV_MUST_CHECK vv_code vv_object_verify(vv_object *o, uint8_t *body, uint8_t *body_sum, vv_error *err);
/* Bytes of the body of a good object. CORRUPT where the file has shrunk since; IO. */
VV_MUST_CHECK vv_code vv_object_read(const vv_object *o, uint64_t off, void *dst, size_t n, vv_error *err);
void vv_object_close(vv_object *o); /* for VV_CLEANUP; accepts one that was never opened where its file.fd is -1 */
