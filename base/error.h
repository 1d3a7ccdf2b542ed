/*
 * The error object: a code for decisions, a text for people, errno and an offset kept.
 *
 * The caller owns the object, so nothing goes stale and nothing is thread-local. A function that can fail
 * returns vv_code and takes `vv_error *err` last; err may be NULL. The first cause wins: filling an error that
 * already has a code changes nothing. Messages are one line without a final period or newline.
 */
#pragma once

#include <stdint.h>

#include "base/attr.h"

/* A code exists only where some caller branches on it. */
typedef enum {
    VV_OK = 0,
    VV_ERR_IO,        /* the system refused: see os (errno) */
    VV_ERR_CORRUPT,   /* the bytes are not what the format says: see name and off */
    VV_ERR_NOTFOUND,  /* no such file, stream, execution, function */
    VV_ERR_EXISTS,    /* the name is taken */
    VV_ERR_LIMIT,     /* a bound of ours was met */
    VV_ERR_BUSY,      /* somebody else holds the lock */
    VV_ERR_CANCELLED, /* asked to stop */
    VV_ERR_NOMEM,
    VV_ERR_ARG,       /* the caller's or user's input is wrong */
    VV_ERR_AMBIGUOUS, /* a short name stands for several things */
} vv_code;

typedef struct {
    vv_code code;
    int os;           /* errno of the failing call, or 0 */
    uint64_t off;     /* byte offset of the fault in its input, or 0 */
    const char *name; /* the format's own error name ("InvalidChecksum"), a literal, or NULL */
    char msg[256];
} vv_error;

/* Fills err (if not NULL and still VV_OK) and returns code, so that `return vv_fail(...)` reads naturally. */
VV_PRINTF(3, 4) vv_code vv_fail(vv_error *err, vv_code code, const char *fmt, ...);

/* The same with errno: os is kept and ": <strerror>" is appended. Code VV_ERR_IO, or NOTFOUND for ENOENT/ENOTDIR. */
VV_PRINTF(3, 4) vv_code vv_fail_os(vv_error *err, int os, const char *fmt, ...);

/* A decode fault: code VV_ERR_CORRUPT, the format's error name and the offset. name must be a literal. */
VV_PRINTF(4, 5) vv_code vv_fail_decode(vv_error *err, const char *name, uint64_t off, const char *fmt, ...);

/* Puts "<context>: " in front of the message, unless it begins so. For what the callee can't know (a path). */
VV_PRINTF(2, 3) void vv_context(vv_error *err, const char *fmt, ...);

/* Makes err reusable. */
void vv_error_clear(vv_error *err);
