#include "config.h"

#include "server/token.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/text.h"

static void digest(char out[65], const char *domain, vv_str text)
{
    uint8_t sum[32];
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, domain, strlen(domain));
    vv_sha256_update(&c, text.p, text.n);
    vv_sha256_final(&c, sum);
    vv_hex(out, sum, sizeof sum);
}

void vv_token_init(vv_token *t, const char *text, unsigned port)
{
    *t = (vv_token){.required = text != NULL};
    if (!text)
        return;
    digest(t->digest, "varve-token", vv_cstr(text));
    digest(t->cookie, "varve-cookie", vv_cstr(text));
    snprintf(t->cookie_name, sizeof t->cookie_name, "varve_%u", port);
}

static bool same(const char *a, const char *b, size_t n)
{
    unsigned differ = 0;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return differ == 0;
}

static bool is_token(const vv_token *t, vv_str text)
{
    char d[65];
    digest(d, "varve-token", text);
    return same(d, t->digest, 64);
}

static bool has_cookie(const vv_token *t, const char *header)
{
    size_t n = strlen(t->cookie_name);
    for (const char *p = header; p && *p;) {
        p += strspn(p, "; ");
        size_t len = strcspn(p, ";");
        if (len == n + 1 + 64 && memcmp(p, t->cookie_name, n) == 0 && p[n] == '=' && same(p + n + 1, t->cookie, 64))
            return true;
        p += len;
    }
    return false;
}

vv_token_verdict vv_token_check(const vv_token *t, const vv_request *rq, const vv_target *target)
{
    static const char bearer[] = "Bearer ";
    if (!t->required)
        return VV_TOKEN_GOOD;
    size_t n = strlen(bearer);
    if (rq->authorization && strncasecmp(rq->authorization, bearer, n) == 0
        && is_token(t, vv_cstr(rq->authorization + n)))
        return VV_TOKEN_GOOD;
    for (size_t i = 0; i < target->param_count; i++)
        if (vv_str_eq(target->params[i].name, vv_cstr("token")))
            return is_token(t, target->params[i].value) ? VV_TOKEN_TRADE : VV_TOKEN_BAD;
    return has_cookie(t, rq->cookie) ? VV_TOKEN_GOOD : VV_TOKEN_BAD;
}

/* Whether a parameter as the client wrote it is the token's: its name may hold escapes. */
static bool is_token_param(const char *s, size_t n)
{
    static const char name[] = "token";
    size_t at = 0;
    for (size_t i = 0; i < n && s[i] != '='; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c == '%' && n - i >= 3 && vv_unhex(&c, 1, (vv_str){s + i + 1, 2}))
            i += 2;
        if (at == sizeof name - 1 || c != (uint8_t)name[at++])
            return false;
    }
    return at == sizeof name - 1;
}

bool vv_token_strip(const char *target, vv_wr *w)
{
    size_t path = strcspn(target, "?");
    vv_wr_bytes(w, target, path);
    char separator = '?';
    for (const char *p = target + path; *p++;) {
        size_t n = strcspn(p, "&");
        if (!is_token_param(p, n)) {
            vv_wr_u8(w, (uint8_t)separator);
            vv_wr_bytes(w, p, n);
            separator = '&';
        }
        p += n;
    }
    vv_wr_u8(w, 0);
    return vv_wr_ok(w);
}

void vv_token_trade(const vv_token *t, const vv_request *rq, vv_response *rs)
{
    char buf[VV_HEADER_VALUE];
    vv_wr w = vv_wr_fixed(buf, sizeof buf);
    rs->status = 303;
    /* A path that starts with two slashes would be another host's. */
    bool plain = vv_token_strip(rq->target, &w) && buf[1] != '/';
    vv_response_header(rs, "Location", "%s", plain ? buf : "/");
    vv_response_header(rs, "Set-Cookie", "%s=%s; Path=/; HttpOnly; SameSite=Strict", t->cookie_name, t->cookie);
    vv_response_header(rs, "Cache-Control", "no-store");
}
