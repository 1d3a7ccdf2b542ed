/*
 * Where the server listens: an address, a Unix socket, or a socket that whoever started the program has opened
 * (LISTEN_FDS). Owned by one thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum { VV_LISTEN_PATH = 108, VV_LISTEN_NAME = 8 + 4096 };

typedef struct {
    int fd;                    /* listens; -1: none */
    unsigned port;             /* 0 for a Unix socket */
    bool reachable;            /* by other machines */
    bool local;                /* a Unix socket */
    char literal[64];          /* the address as a URL has it; empty for a Unix socket */
    char name[VV_LISTEN_NAME]; /* "http://127.0.0.1:8278/", "unix:/run/user/1000/varve" */
    char path[VV_LISTEN_PATH]; /* of a socket that vv_listen_close removes; empty: there is none */
    dev_t dev;
    ino_t ino;
} vv_listener;

/* What to listen on is text, for errors: ARG where it is none, EXISTS where somebody listens there, IO. */
VV_MUST_CHECK vv_code vv_listen_open(vv_listener *ret, const char *text, vv_error *err);

/* Whether a socket was handed to this very process (LISTEN_PID, LISTEN_FDS). */
bool vv_listen_is_handed(void);
/* Takes it over, and takes the variables out of the environment. ARG where it is not one socket that listens. */
VV_MUST_CHECK vv_code vv_listen_take(vv_listener *ret, vv_error *err);

/* Removes the file of a socket that this process made: nobody finds it from then on. */
void vv_listen_hide(vv_listener *l);
void vv_listen_close(vv_listener *l); /* hides too; accepts a closed one */
