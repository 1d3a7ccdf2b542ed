/* For benchmarks that read: segment files of a store, written without a writer. What fails ends the benchmark. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "reader/segments.h"

static inline void bench_must(vv_code rc, const vv_error *err)
{
    if (rc == VV_OK)
        return;
    fprintf(stderr, "bench: %s\n", err->msg);
    exit(1);
}

/* Publishes as a writer does, by rename, and takes the bytes. */
static inline void bench_segment(const char *store, const vv_euid *euid, vv_plane plane, uint64_t sequence, vv_wr *w)
{
    vv_error err = {0};
    char rel[VV_STREAM_PATH], dir[256], path[256], tmp[256];
    vv_plane_path(rel, euid, plane);
    snprintf(dir, sizeof dir, "%s/%s", store, rel);
    bench_must(vv_mkdirs(-100, dir, &err), &err);
    snprintf(tmp, sizeof tmp, "%s/tmp", store);
    bench_must(vv_mkdirs(-100, tmp, &err), &err);
    snprintf(tmp, sizeof tmp, "%s/tmp/00000000000000000000000000000000.pending", store);
    vv_segment_path(rel, euid, plane, sequence);
    snprintf(path, sizeof path, "%s/%s", store, rel);
    FILE *f = fopen(tmp, "wb");
    if (!f || fwrite(w->buf, 1, w->len, f) != w->len || fclose(f) != 0 || rename(tmp, path) != 0)
        bench_must(vv_fail(&err, VV_ERR_IO, "can't write %s", path), &err);
    vv_wr_done(w);
}
