/*
 * Cold start on 1,000 streams with 100,000 executions: from nothing to the summaries of the newest hundred, without an
 * index, while one is filled, and with it; and what of the data is read for that. Files are in the page cache.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/segments.h"
#include "reader/stream.h"
#include "views/executions.h"

enum { STREAMS = 1000, ROOTS = 100, SEGMENTS = 4, CONTEXTS = 4, PAGE = 100 };

static void write_meta(const char *dir, const vv_euid *euid)
{
    vv_wr w = vv_wr_growing(1 << 24);
    vv_meta_begin(&w, euid, 1, 0);
    vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_STREAM_STARTED, .stream_started = {.pid = 1, .zero_unix_ns = 1}});
    for (uint64_t r = 1; r <= ROOTS; r++) {
        vv_thread_ref root = vv_thread_ref_make(euid, 1, r);
        vv_meta_record start = {.tag = VV_META_ROOT_STARTED}, end = {.tag = VV_META_ROOT_ENDED};
        start.root_started = (vv_root_started){.root = root, .started_ns = r + vv_be32(euid->b)};
        end.root_ended = (vv_root_ended){.root = root, .ended_ns = r + 1000000, .first = 1, .last = SEGMENTS,
                                         .count = SEGMENTS};
        vv_meta_add(&w, &start);
        vv_meta_add(&w, &end);
    }
    vv_meta_end(&w, 1 + 2 * ROOTS);
    bench_segment(dir, euid, VV_PLANE_META, 1, &w);
}

static void write_data(const char *dir, const vv_euid *euid, uint64_t sequence, const vv_wr *cct)
{
    vv_wr w = vv_wr_growing(1 << 24);
    vv_data_begin(&w, euid, sequence);
    for (uint64_t r = 1; r <= ROOTS; r++)
        vv_data_add(&w, &(vv_group){.root = vv_thread_ref_make(euid, 1, r), .cct_records = CONTEXTS, .cct = cct->buf,
                                    .cct_len = cct->len});
    vv_data_end(&w, ROOTS);
    bench_segment(dir, euid, VV_PLANE_DATA, sequence, &w);
}

static int by_key(const void *a, const void *b)
{
    return memcmp(((const vv_cct_row *)a)->key.b, ((const vv_cct_row *)b)->key.b, 32);
}

static void make_store(const char *dir)
{
    vv_cct_row rows[CONTEXTS] = {0};
    vv_wr cct = vv_wr_growing(1 << 16);
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        rows[i] = (vv_cct_row){.defined = true,
                               .tuple = {.function_id = i + 1, .edge = i ? VV_EDGE_CALL : VV_EDGE_ROOT},
                               .counters = {.started = 1, .ok = 1, .inclusive_ns = 10}};
        vv_context_key_of(&rows[i].key, &rows[i].tuple);
    }
    qsort(rows, CONTEXTS, sizeof rows[0], by_key);
    vv_wr_u64(&cct, CONTEXTS);
    for (uint32_t i = 0; i < CONTEXTS; i++)
        vv_cct_encode_row(&cct, &rows[i]);
    vv_wr_u64(&cct, 0);
    for (uint32_t i = 0; i < STREAMS; i++) {
        vv_euid euid = {{0}};
        vv_put32(euid.b, i + 1);
        write_meta(dir, &euid);
        for (uint64_t seq = 1; seq <= SEGMENTS; seq++)
            write_data(dir, &euid, seq, &cct);
    }
    vv_wr_done(&cct);
}

typedef struct {
    double look_s, page_s;
    uint64_t data_bytes; /* of both */
    uint64_t sum;        /* of what was seen */
} start;

static uint64_t meta_bytes_of(const vv_store *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->stream_count; i++)
        for (size_t k = 0; k < s->streams[i].core->index->meta.count; k++) {
            vv_seg room;
            n += vv_seg_at(&s->streams[i].core->index->meta, k, &room)->bytes.n;
        }
    return n;
}

static start run(const char *dir, const char *index)
{
    vv_error err = {0};
    vv_library *l;
    const vv_look *look;
    const vv_order *o;
    const vv_index_options options = {.path = index};
    start ret = {0};
    bench_must(vv_library_open(&l, dir, (size_t)512 << 20, 0, &err), &err);
    if (index)
        bench_must(vv_library_use_index(l, &options, &err), &err);
    uint64_t from = bench_now_ns();
    bench_must(vv_library_look(l, &look, &err), &err);
    uint64_t looked = bench_now_ns();
    bench_must(vv_library_order(l, look, &o, &err), &err);
    for (size_t i = 0; i < o->count && i < PAGE; i++) {
        const vv_digest *d;
        bench_must(vv_library_digest(l, look, o->items[i].stream, o->items[i].execution, &d, &err), &err);
        ret.sum = ret.sum * 31 + d->contexts + (uint64_t)d->totals.calls;
        vv_digest_release(l, d);
    }
    ret.page_s = (double)(bench_now_ns() - looked) / 1e9;
    ret.look_s = (double)(looked - from) / 1e9;
    ret.data_bytes = vv_source_bytes_read(look->store->source) - meta_bytes_of(look->store);
    ret.sum += o->count << 32;
    vv_order_unref(o);
    vv_look_release(l, look);
    vv_library_close(l);
    return ret;
}

enum { NONE, FILLING, FILLED, KINDS };

static void print(const char *name, const start *all, int rounds, const double *limit)
{
    double total[1000], look[1000], page[1000], ratio[1000];
    for (int i = 0; i < rounds; i++) {
        look[i] = all[i].look_s * 1e3;
        page[i] = all[i].page_s * 1e3;
        total[i] = look[i] + page[i];
        ratio[i] = total[i] / limit[i];
    }
    bench_spread t = bench_summary(total, rounds), k = bench_summary(look, rounds), p = bench_summary(page, rounds),
                 r = bench_summary(ratio, rounds);
    printf("cold start, %s: %.2f of the one without [%.2f to %.2f]; %.0f ms (look %.0f, page %.1f), %.1f MB of data "
           "read\n",
           name, r.median, r.low, r.high, t.median, k.median, p.median, (double)all[0].data_bytes / 1e6);
}

int main(void)
{
    static const char *const names[KINDS] = {"no index", "filling one", "with it"};
    char dir[64] = "/var/tmp/varve-bench-index-XXXXXX", root[96], index[96], command[200];
    if (!mkdtemp(dir))
        return 1;
    snprintf(root, sizeof root, "%s/profiles-v1", dir);
    snprintf(index, sizeof index, "%s/x", dir);
    make_store(root);
    int rounds = bench_rounds(), bad = 0;
    start *all[KINDS];
    for (int k = 0; k < KINDS; k++)
        all[k] = calloc((size_t)rounds, sizeof *all[k]);
    double *limit = calloc((size_t)rounds, sizeof *limit);
    for (int i = 0; i < rounds; i++) {
        snprintf(command, sizeof command, "rm -f '%s'/x*", dir);
        bad |= system(command) != 0;
        for (int k = 0; k < KINDS; k++)
            all[k][i] = run(root, k == NONE ? NULL : index);
        limit[i] = (all[NONE][i].look_s + all[NONE][i].page_s) * 1e3;
        bad |= all[FILLED][i].data_bytes != 0 || all[FILLED][i].sum != all[NONE][i].sum;
    }
    for (int k = 0; k < KINDS; k++)
        print(names[k], all[k], rounds, limit);
    if (bad)
        printf("cold start: data was read in spite of the index, or the answers differ\n");
    for (int k = 0; k < KINDS; k++)
        free(all[k]);
    free(limit);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) != 0 || bad;
}
