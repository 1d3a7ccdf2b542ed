#include "config.h"

#include "reader/object.h"

#include <stdlib.h>

enum { STEP = 64 * 1024 };

static vv_code set(vv_object *o, vv_object_state state, const char *why)
{
    o->state = state;
    o->why = why;
    return VV_OK;
}

/* What a failed read of the file says of the object; only a lack of memory is ours. */
static vv_code set_error(vv_object *o, const vv_error *why, vv_error *err)
{
    bool special = why->name && strcmp(why->name, "NotRegularFile") == 0;
    if (why->code == VV_ERR_NOMEM)
        return vv_fail(err, VV_ERR_NOMEM, "%s", why->msg);
    if (why->code == VV_ERR_NOTFOUND)
        return set(o, VV_OBJECT_MISSING, NULL);
    if (why->code == VV_ERR_CORRUPT && !special)
        return set(o, VV_OBJECT_DAMAGED, why->name);
    return set(o, VV_OBJECT_UNREADABLE, special ? why->name : "Io");
}

/* The digests of one pass: of the file up to its seal, of the content id, of the body where that is wanted. */
typedef struct {
    vv_sha256_ctx seal, id, body;
    bool has_body;
} digests;

static vv_code hash_body(const vv_object *o, digests *d, uint8_t *keep, vv_error *err)
{
    uint8_t *step = keep ? NULL : malloc(STEP);
    if (!keep && !step)
        return vv_fail(err, VV_ERR_NOMEM, "no memory to verify an object");
    uint64_t size = o->ident.size - VV_CAS_FIXED;
    vv_code rc = VV_OK;
    for (uint64_t at = 0; at < size && rc == VV_OK;) {
        size_t n = size - at < STEP ? (size_t)(size - at) : STEP;
        uint8_t *to = keep ? keep + at : step;
        rc = vv_open_file_read(&o->file, VV_CAS_HEAD + at, to, n, err);
        if (rc == VV_OK) {
            vv_sha256_update(&d->seal, to, n);
            vv_sha256_update(&d->id, to, n);
            if (d->has_body)
                vv_sha256_update(&d->body, to, n);
        }
        at += n;
    }
    free(step);
    return rc;
}

/* Reads the whole file of at least VV_CAS_FIXED bytes. fault: what is wrong with its head, if the checksum is right. */
static vv_code verify(vv_object *o, uint8_t *body, uint8_t *body_sum, const char *fault, vv_error *err)
{
    uint8_t head[VV_CAS_HEAD], seal[VV_CAS_TAIL], sum[VV_SHA256_BYTES], id[VV_SHA256_BYTES];
    digests d = {.has_body = body_sum};
    vv_error why = {0};
    if (vv_open_file_read(&o->file, 0, head, sizeof head, &why) != VV_OK)
        return set_error(o, &why, err);
    vv_sha256_init(&d.seal);
    vv_sha256_update(&d.seal, head, sizeof head);
    vv_cid_begin(&d.id, o->codec);
    if (body_sum)
        vv_sha256_init(&d.body);
    vv_code rc = hash_body(o, &d, body, &why);
    if (rc == VV_OK)
        rc = vv_open_file_read(&o->file, o->ident.size - VV_CAS_TAIL, seal, sizeof seal, &why);
    vv_sha256_final(&d.seal, sum);
    vv_sha256_final(&d.id, id);
    if (body_sum)
        vv_sha256_final(&d.body, body_sum);
    if (rc != VV_OK)
        return set_error(o, &why, err);
    vv_cas_object named;
    if (memcmp(sum, seal, sizeof sum) != 0)
        return set(o, VV_OBJECT_DAMAGED, "InvalidChecksum");
    if (fault)
        return set(o, VV_OBJECT_DAMAGED, fault);
    /* The head again: it may have changed since the file was opened, and the checksum with it. */
    if (vv_cas_head(&named, head, o->ident.size, NULL) != VV_OK || named.codec != o->codec
        || memcmp(id, &named.cid, sizeof id) != 0)
        return set(o, VV_OBJECT_DAMAGED, "InvalidChecksum");
    if (memcmp(&named.cid, &o->cid, sizeof o->cid) != 0)
        return set(o, VV_OBJECT_DAMAGED, "CasIdentityMismatch");
    return VV_OK;
}

/* A file that is too short for an object. */
static vv_code judge_stub(vv_object *o, vv_error *err)
{
    uint8_t bytes[VV_CAS_FIXED];
    vv_cas_object none;
    vv_error why = {0};
    size_t n = (size_t)o->ident.size;
    vv_code rc = vv_open_file_read(&o->file, 0, bytes, n, &why);
    if (rc == VV_OK)
        rc = vv_cas_decode(&none, bytes, n, NULL, &why);
    return rc == VV_OK ? set(o, VV_OBJECT_DAMAGED, "Truncated") : set_error(o, &why, err);
}

vv_code vv_object_open(vv_object *ret, vv_source *source, const vv_cid *cid, uint64_t max, vv_error *err)
{
    char path[VV_CAS_PATH];
    uint8_t bytes[VV_CAS_HEAD];
    vv_cas_object head = {0};
    vv_error why = {0};
    *ret = (vv_object){.cid = *cid, .file = {.fd = -1}};
    vv_cas_path(path, cid);
    if (vv_source_open_file(source, path, &ret->file, &why) != VV_OK)
        return set_error(ret, &why, err);
    ret->ident = ret->file.ident;
    if (ret->ident.size < VV_CAS_FIXED)
        return judge_stub(ret, err);
    if (vv_open_file_read(&ret->file, 0, bytes, sizeof bytes, &why) != VV_OK)
        return set_error(ret, &why, err);
    bool large = ret->ident.size - VV_CAS_FIXED > max;
    if (vv_cas_head(&head, bytes, ret->ident.size, &why) != VV_OK)
        /* The checksum goes first, but no giant is read to find out which of two faults it has. */
        return large ? set(ret, VV_OBJECT_DAMAGED, why.name) : verify(ret, NULL, NULL, why.name, err);
    ret->codec = head.codec;
    ret->body_len = head.body_len;
    return large ? set(ret, VV_OBJECT_TOO_LARGE, NULL) : VV_OK;
}

vv_code vv_object_verify(vv_object *o, uint8_t *body, uint8_t *body_sum, vv_error *err)
{
    return verify(o, body, body_sum, NULL, err);
}

vv_code vv_object_read(const vv_object *o, uint64_t off, void *dst, size_t n, vv_error *err)
{
    if (off > o->body_len || n > o->body_len - off)
        return vv_fail_decode(err, "Truncated", off, "the body ends before %zu more bytes", n);
    return vv_open_file_read(&o->file, VV_CAS_HEAD + off, dst, n, err);
}

void vv_object_close(vv_object *o)
{
    vv_open_file_close(&o->file);
}
