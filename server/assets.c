#include "config.h"

#include "server/assets.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/sha256.h"
#include "base/text.h"
#include "server/etag.h"
#include "web/assets.h"

enum { ASSET_MAX = 16 * 1024 * 1024 };

static const char *type_of(const char *path)
{
    static const struct {
        const char *suffix, *type;
    } types[] = {{".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"}, {".svg", "image/svg+xml"}, {".json", "application/json"},
                 {".png", "image/png"}};
    size_t n = strlen(path);
    for (size_t i = 0; i < VV_ARRAY_LEN(types); i++) {
        size_t k = strlen(types[i].suffix);
        if (n >= k && strcmp(path + n - k, types[i].suffix) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

static void headers(vv_response *r, const vv_request *rq, const char *type, const char *sha256)
{
    vv_response_header(r, "Content-Type", "%s", type);
    vv_response_header(r, "Cache-Control", "no-cache");
    vv_response_header(r, "ETag", "\"%s\"", sha256);
    if (strncmp(type, "text/html", 9) == 0)
        vv_response_header(r, "Content-Security-Policy",
                           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    r->status = vv_etag_matches(rq->if_none_match, sha256) ? 304 : 200;
}

/* Only names of plain letters are looked up, no directory or file that starts with a dot. */
static bool is_plain(const char *path)
{
    for (const char *p = path; *p; p++)
        if ((*p == '.' && p[-1] == '/') || !(isalnum((unsigned char)*p) || strchr("/.-_", *p)))
            return false;
    return true;
}

static bool from_directory(vv_response *r, const char *dir, const char *path, const vv_request *rq)
{
    const char *name = strcmp(path, "/") == 0 ? "/index.html" : path;
    char full[4096], hex[65];
    uint8_t sum[32];
    vv_blob blob;
    if (!is_plain(name) || snprintf(full, sizeof full, "%s%s", dir, name) >= (int)sizeof full)
        return false;
    if (vv_file_read(AT_FDCWD, full, ASSET_MAX, &blob, NULL) != VV_OK)
        return false;
    vv_sha256(blob.p, blob.n, sum);
    vv_hex(hex, sum, sizeof sum);
    headers(r, rq, type_of(name), hex);
    vv_response_constant(r, blob.p, blob.n);
    r->owned = true;
    return true;
}

bool vv_asset_respond(vv_response *r, const char *dir, const char *path, const vv_request *rq)
{
    if (dir)
        return from_directory(r, dir, path, rq);
    for (size_t i = 0; i < vv_asset_count; i++) {
        const vv_asset *a = &vv_assets[i];
        if (strcmp(a->path, path) != 0)
            continue;
        headers(r, rq, a->type, a->sha256);
        vv_response_constant(r, a->bytes, a->len);
        return true;
    }
    return false;
}
