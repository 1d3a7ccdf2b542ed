/*
 * The token that a server asks for where others can reach it. A browser trades it once for a cookie, as an address may
 * stay in a history; comparisons take the same time wherever the texts differ.
 */
#pragma once

#include "server/guard.h"

typedef struct {
    bool required;
    char digest[65];     /* of the token, in hex */
    char cookie[65];     /* what a browser holds: derived from the token, in hex */
    char cookie_name[24];
} vv_token;

/* text NULL: no token is asked for. port tells servers on one host apart, whose cookies a browser keeps together. */
void vv_token_init(vv_token *t, const char *text, unsigned port);

typedef enum { VV_TOKEN_GOOD, VV_TOKEN_TRADE, VV_TOKEN_BAD } vv_token_verdict;
/* TRADE: the token stands in the query; answer with vv_token_trade. */
vv_token_verdict vv_token_check(const vv_token *t, const vv_request *rq, const vv_target *target);
/* A redirect to the same address without the token, and the cookie. */
void vv_token_trade(const vv_token *t, const vv_request *rq, vv_response *rs);
/* The target without any token parameter, and a NUL. False without room. */
bool vv_token_strip(const char *target, vv_wr *w);
