/*
 * Fold speed beside its limit: the checksum of the same bytes plus one SHA-256 for each row that defines a context. And
 * for rows whose contexts are known already (deltas), beside the checksum alone.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "bench/bench.h"
#include "reader/fold.h"

/* Eight looks at the same contexts, each cut into segments of the size that the writer's cap of 4 MiB gives. */
enum { CONTEXTS = 100000, PASSES = 8, PARTS = 5, ROWS = CONTEXTS / PARTS, SEGMENTS = PASSES * PARTS };

typedef struct {
    char dir[64];
    uint64_t bytes, defining_rows, rows;
    vv_blob segments[SEGMENTS];
} fixture;

static void must(vv_code rc, const vv_error *err)
{
    if (rc == VV_OK)
        return;
    fprintf(stderr, "bench/fold: %s\n", err->msg);
    exit(1);
}

typedef struct {
    vv_context_key key;
    vv_tuple tuple;
} context;

static int by_key(const void *a, const void *b)
{
    return memcmp(((const context *)a)->key.b, ((const context *)b)->key.b, 32);
}

/* A tree with fan-out 4, deep enough to look like a program. */
static context *make_contexts(void)
{
    context *c = calloc(CONTEXTS, sizeof *c);
    if (!c)
        exit(1);
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        vv_tuple *t = &c[i].tuple;
        t->function_id = i % 997 + 1;
        t->edge = i ? VV_EDGE_CALL : VV_EDGE_ROOT;
        t->has_parent = i > 0;
        if (i)
            t->parent = c[(i - 1) / 4].key;
        t->has_site = true;
        t->site = (vv_site){1, i, i + 1, i % 5000 + 1};
        vv_context_key_of(&c[i].key, t);
    }
    qsort(c, CONTEXTS, sizeof *c, by_key);
    return c;
}

static void write_file(const char *path, const vv_wr *w)
{
    vv_error err = {0};
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(w->buf, 1, w->len, f) != w->len || fclose(f) != 0)
        must(vv_fail(&err, VV_ERR_IO, "can't write %s", path), &err);
}

static void make_store(fixture *fx, const vv_euid *euid, const vv_thread_ref *root, bool define_once)
{
    vv_error err = {0};
    char path[160], name[VV_SEGMENT_NAME];
    for (int plane = 0; plane < 2; plane++) {
        char hex[33];
        for (int i = 0; i < 16; i++)
            snprintf(hex + 2 * i, 3, "%02x", euid->b[i]);
        snprintf(path, sizeof path, "%s/profiles-v1/streams/%s/%s", fx->dir, hex, vv_plane_dir(plane));
        must(vv_mkdirs(-100, path, &err), &err);
        if (plane == VV_PLANE_META) {
            vv_wr w = vv_wr_growing(1 << 20);
            vv_meta_begin(&w, euid, 1, 0);
            vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_ROOT_STARTED, .root_started = {.root = *root}});
            vv_meta_record end = {.tag = VV_META_ROOT_ENDED};
            end.root_ended = (vv_root_ended){.root = *root, .first = 1, .last = SEGMENTS, .count = SEGMENTS};
            vv_meta_add(&w, &end);
            vv_meta_end(&w, 2);
            vv_segment_name(name, VV_PLANE_META, 1);
            snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
            write_file(path, &w);
            vv_wr_done(&w);
        }
    }
    context *c = make_contexts();
    size_t dir_len = strlen(path);
    for (uint64_t seq = 1; seq <= SEGMENTS; seq++) {
        vv_wr cct = vv_wr_growing((size_t)1 << 30), w = vv_wr_growing((size_t)1 << 30);
        const context *part = c + (seq - 1) % PARTS * ROWS;
        vv_wr_u64(&cct, ROWS);
        for (uint32_t i = 0; i < ROWS; i++) {
            vv_cct_row row = {.key = part[i].key, .defined = !define_once || seq <= PARTS, .tuple = part[i].tuple,
                              .counters = {.started = 1, .ok = 1, .inclusive_ns = 10}};
            fx->defining_rows += row.defined;
            fx->rows++;
            vv_cct_encode_row(&cct, &row);
        }
        vv_wr_u64(&cct, 0);
        vv_data_begin(&w, euid, seq);
        vv_data_add(&w, &(vv_group){.root = *root, .cct_records = ROWS, .cct = cct.buf, .cct_len = cct.len});
        vv_data_end(&w, 1);
        vv_segment_name(name, VV_PLANE_DATA, seq);
        snprintf(path + dir_len, sizeof path - dir_len, "/%s", name);
        write_file(path, &w);
        fx->bytes += w.len;
        fx->segments[seq - 1] = (vv_blob){w.buf, w.len};
        vv_wr_done(&cct);
    }
    free(c);
}

/* What no reader can do without: the checksum of every byte, and the key of every defining row. */
static double limit_seconds(const fixture *fx)
{
    uint8_t out[32], tuple[90] = {0};
    uint64_t t = bench_cpu_now_ns();
    for (int i = 0; i < SEGMENTS; i++)
        vv_sha256(fx->segments[i].p, fx->segments[i].n - VV_SEAL_BYTES, out);
    for (uint64_t i = 0; i < fx->defining_rows; i++) {
        tuple[0] = out[0];
        vv_sha256(tuple, sizeof tuple, out);
    }
    return (double)(bench_cpu_now_ns() - t) / 1e9;
}

static double fold_seconds(const fixture *fx, uint64_t *ret_contexts)
{
    vv_error err = {0};
    char path[96];
    snprintf(path, sizeof path, "%s/profiles-v1", fx->dir);
    vv_source *source;
    vv_store *store;
    vv_fold *fold;
    must(vv_source_open(&source, path, &err), &err);
    uint64_t t = bench_cpu_now_ns();
    must(vv_store_open(&store, source, NULL, &err), &err);
    const vv_stream *s = &store->streams[0];
    must(vv_fold_load(&fold, store, s, vv_stream_execution_at(s, 0), NULL, &err), &err);
    double seconds = (double)(bench_cpu_now_ns() - t) / 1e9;
    *ret_contexts = fold->failed ? 0 : fold->context_count;
    vv_fold_free(fold);
    vv_store_free(store);
    vv_source_close(source);
    return seconds;
}

static int run(const char *title, bool define_once, double target)
{
    fixture fx = {0};
    snprintf(fx.dir, sizeof fx.dir, "/tmp/varve-bench-fold-XXXXXX");
    if (!mkdtemp(fx.dir))
        return 1;
    vv_euid euid = {{1}};
    vv_thread_ref root = vv_thread_ref_make(&euid, 1, 1);
    make_store(&fx, &euid, &root, define_once);
    int rounds = bench_rounds();
    double *limit = calloc((size_t)rounds, sizeof *limit), *fold = calloc((size_t)rounds, sizeof *fold),
           *ratio = calloc((size_t)rounds, sizeof *ratio);
    uint64_t contexts = 0;
    for (int i = 0; i < rounds; i++) {
        limit[i] = limit_seconds(&fx);
        fold[i] = fold_seconds(&fx, &contexts);
        ratio[i] = limit[i] / fold[i];
    }
    bench_spread l = bench_summary(limit, rounds), f = bench_summary(fold, rounds), r = bench_summary(ratio, rounds);
    printf("%s: %.2f of the limit's speed [%.2f to %.2f], target %.2f; %.0f ns a row against %.0f (%" PRIu64
           " rows, %" PRIu64 " contexts, %.1f MB, median of %d)\n",
           title, r.median, r.low, r.high, target, f.median * 1e9 / (double)fx.rows, l.median * 1e9 / (double)fx.rows,
           fx.rows, contexts, (double)fx.bytes / 1e6, rounds);
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", fx.dir);
    int rc = system(command);
    for (int i = 0; i < SEGMENTS; i++)
        vv_blob_done(&fx.segments[i]);
    free(limit);
    free(fold);
    free(ratio);
    return rc != 0 || contexts != CONTEXTS;
}

int main(void)
{
    return run("fold, every row defines (checksum + one SHA-256 a row)", false, 0.85) |
           run("fold, rows already defined (checksum alone)", true, 0.70);
}
