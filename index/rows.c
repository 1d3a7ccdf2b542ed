#include "config.h"

#include "index/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void sum(uint8_t out[VV_ROW_SUM], const uint8_t *head, size_t head_len, const void *body, size_t n)
{
    uint8_t whole[VV_SHA256_BYTES];
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, head, head_len);
    if (n)
        vv_sha256_update(&c, body, n);
    vv_sha256_final(&c, whole);
    memcpy(out, whole, VV_ROW_SUM);
}

void vv_file_row_sum(uint8_t out[VV_ROW_SUM], const vv_euid *euid, vv_plane plane, uint64_t sequence,
                     const vv_file_ident *ident, const uint8_t *groups, size_t n)
{
    uint8_t head[16 + 8 * 8];
    const uint64_t fields[] = {'f', (uint64_t)plane, sequence, ident->size, ident->device, ident->inode,
                               (uint64_t)ident->mtime_ns, (uint64_t)ident->ctime_ns};
    memcpy(head, euid->b, 16);
    for (size_t i = 0; i < VV_ARRAY_LEN(fields); i++)
        vv_put64(head + 16 + 8 * i, fields[i]);
    sum(out, head, sizeof head, groups, n);
}

void vv_summary_row_sum(uint8_t out[VV_ROW_SUM], const vv_thread_ref *root, const uint8_t key[32], const void *body,
                        size_t n)
{
    uint8_t head[8 + 64];
    vv_put64(head, 's');
    memcpy(head + 8, root->b, 32);
    memcpy(head + 40, key, 32);
    sum(out, head, sizeof head, body, n);
}

void vv_groups_put(uint8_t *out, const vv_seg_row *row)
{
    if (!row->off)
        return;
    for (uint32_t i = 0; i <= row->group_count; i++, out += 4)
        vv_put32(out, row->off[i]);
    for (uint32_t i = 0; i < row->group_count; i++, out += 4)
        vv_put32(out, row->key[i]);
}

bool vv_groups_get(vv_seg_row *row, const uint8_t *p, size_t n)
{
    row->group_count = 0;
    row->off = NULL;
    row->key = NULL;
    if (n == 0)
        return true;
    if (n % 8 != 4 || n / 8 > UINT32_MAX)
        return false;
    row->off = malloc(n);
    if (!row->off)
        return false;
    row->group_count = (uint32_t)(n / 8);
    row->key = row->off + row->group_count + 1;
    for (size_t i = 0; i < n / 4; i++, p += 4)
        row->off[i] = vv_be32(p);
    return true;
}
