/*
 * What a benchmark's store holds once its session is closed: bytes of each kind of file, facts, and what was lost of
 * the recording.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "format/health_plane.h"

typedef struct {
    uint64_t facts[VV_FACTS];
    uint64_t fact_bytes; /* with tag and length */
    uint64_t data_bytes, data_files, cas_bytes, cas_files;
    uint64_t lost; /* of selected calls, by the equations' terms */
    char first[64]; /* the first such term */
    bool bad;       /* a file that can't be read */
} bench_stored;

static bench_stored bench_found; /* nftw has no context */

static inline void bench_count_facts(const vv_group *g)
{
    vv_evidence_cursor c;
    vv_fact f;
    vv_error err;
    vv_evidence_open(&c, g->evidence, g->evidence_len, g->evidence_records);
    while (vv_evidence_next(&c, &f))
        bench_found.facts[f.tag]++;
    bench_found.bad |= vv_evidence_finish(&c, &err) != VV_OK;
    bench_found.fact_bytes += g->evidence_len - 8;
}

static inline void bench_count_data(const vv_blob *b)
{
    vv_data_segment s;
    vv_group g;
    vv_error err;
    bool more = vv_data_open(&s, b->p, b->n, NULL, 0, false, &err) == VV_OK;
    bench_found.bad |= !more;
    while (more && vv_data_next(&s, &g, &more, &err) == VV_OK && more)
        if (vv_group_has_evidence(&g))
            bench_count_facts(&g);
    bench_found.bad |= more;
    bench_found.data_bytes += b->n;
    bench_found.data_files++;
}

static inline void bench_count_losses(const vv_blob *b)
{
    vv_health_segment s;
    vv_health_record r;
    vv_error err;
    bool more = vv_health_open(&s, b->p, b->n, NULL, 0, false, &err) == VV_OK;
    bench_found.bad |= !more;
    while (more && vv_health_next(&s, &r, &more, &err) == VV_OK && more) {
        vv_str name;
        uint64_t n;
        while (vv_health_term(&r, &name, &n)) {
            if (!n || !memmem(name.p, name.n, "_lost.", 6))
                continue;
            if (!bench_found.lost)
                snprintf(bench_found.first, sizeof bench_found.first, "%.*s", (int)name.n, name.p);
            bench_found.lost += n;
        }
    }
    bench_found.bad |= more;
}

static inline int bench_count_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    uint64_t sequence;
    bool data = vv_segment_parse(path + at->base, VV_PLANE_DATA, &sequence);
    bool health = vv_segment_parse(path + at->base, VV_PLANE_HEALTH, &sequence);
    size_t n = strlen(path);
    if (kind == FTW_F && n > 10 && strcmp(path + n - 10, ".bamlvalue") == 0) {
        bench_found.cas_bytes += (uint64_t)st->st_size;
        bench_found.cas_files++;
    }
    if (kind != FTW_F || (!data && !health))
        return 0;
    vv_blob b = {0};
    vv_error err;
    if (vv_file_read(AT_FDCWD, path, UINT32_MAX, &b, &err) != VV_OK)
        bench_found.bad = true;
    else if (data)
        bench_count_data(&b);
    else
        bench_count_losses(&b);
    vv_blob_done(&b);
    return 0;
}

static inline bench_stored bench_read_store(const char *dir)
{
    bench_found = (bench_stored){.lost = 0};
    bench_found.bad = nftw(dir, bench_count_file, 16, FTW_PHYS) != 0 || bench_found.bad;
    return bench_found;
}
