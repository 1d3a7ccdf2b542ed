/*
 * The reader from streams to the dump. The input is a row of pseudo-files:
 *
 *   kind u8   bits 0-1: 0, 1 meta; 2 data; 3 a file of a name made from the content
 *             bits 2-3: which of four streams; bit 4: leave header and seal as they are
 *   sequence u8, length u16, content
 *
 * Unless told otherwise a segment gets the stream's id, the sequence, its own length and a fresh seal, so that
 * mutations reach what lies behind them.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include "cli/dump_document.h"
#include "reader/fold.h"
#include "reader/segments.h"
#include "reader/source_mem.h"

enum { FILES = 32, FOLD_MAX = 64 << 20 };

typedef struct {
    vv_mem_file files[FILES];
    char paths[FILES][128];
    size_t count;
} input;

static uint8_t *segment(const uint8_t *p, size_t n, vv_plane plane, const vv_euid *euid, uint64_t sequence)
{
    uint8_t *copy = fuzz_resealed(p, n);
    static const size_t heads[VV_PLANES] = {VV_META_HEADER, VV_DATA_HEADER, VV_HEALTH_PLANE_HEADER};
    size_t head = heads[plane];
    if (n < head + VV_SEAL_BYTES)
        return copy;
    vv_put64(copy + 10, sequence);
    memcpy(copy + 18, euid->b, sizeof euid->b);
    vv_put64(copy + head - 8, n - head - VV_SEAL_BYTES);
    vv_sha256(copy, n - VV_SEAL_BYTES, copy + n - VV_SEAL_BYTES);
    return copy;
}

static void take_file(input *in, vv_rd *r)
{
    uint8_t kind = vv_rd_u8(r);
    uint64_t sequence = vv_rd_u8(r);
    size_t n = vv_rd_u16(r);
    n = n < vv_rd_left(r) ? n : vv_rd_left(r);
    const uint8_t *p = vv_rd_take(r, n);
    if (!p)
        return;
    if (sequence == 255)
        sequence = UINT64_MAX;
    vv_plane plane = (kind & 3) == 2 ? VV_PLANE_DATA : kind & 32 ? VV_PLANE_HEALTH : VV_PLANE_META;
    vv_euid euid;
    memset(euid.b, 0x10 + (kind >> 2 & 3), sizeof euid.b);
    char *path = in->paths[in->count];
    if ((kind & 3) == 3)
        snprintf(path, sizeof in->paths[0], "streams/%.*s", (int)(n < 64 ? n : 64), (const char *)p);
    else
        vv_segment_path(path, &euid, plane, sequence);
    uint8_t *bytes = kind & 16 ? malloc(n ? n : 1) : segment(p, n, plane, &euid, sequence);
    FUZZ_CHECK(bytes);
    if (kind & 16 && n)
        memcpy(bytes, p, n);
    in->files[in->count++] = (vv_mem_file){path, bytes, n};
}

static void check_execution(const vv_store *store, const vv_stream *s, const vv_execution *e)
{
    vv_fold *f;
    vv_error err = {0};
    vv_budget budget;
    vv_budget_init(&budget, FOLD_MAX);
    vv_code rc = vv_fold_load(&f, store, s, e, &budget, &err);
    FUZZ_CHECK(rc == VV_OK || rc == VV_ERR_LIMIT);
    FUZZ_CHECK(rc == VV_OK || budget.used == 0);
    if (rc != VV_OK)
        return;
    FUZZ_CHECK(!f->failed || f->error.name);
    FUZZ_CHECK(!f->complete || (f->issue_count == 0 && e->has_end));
    FUZZ_CHECK(f->bytes <= FOLD_MAX && budget.used == f->bytes);
    size_t contexts = f->context_count, spans = f->span_count, issues = f->issue_count;
    uint64_t groups = f->groups;
    bool failed = f->failed;
    rc = vv_fold_advance(&f, store, s, e, &err);
    FUZZ_CHECK(rc == VV_OK && f->failed == failed);
    FUZZ_CHECK(failed || (f->context_count == contexts && f->span_count == spans && f->issue_count == issues));
    FUZZ_CHECK(failed || f->groups == groups);
    vv_fold_free(f);
    FUZZ_CHECK(budget.used == 0);
}

static void check_store(vv_source *source)
{
    vv_store *store = NULL, *again = NULL;
    vv_error err = {0};
    FUZZ_CHECK(vv_store_open(&store, source, NULL, &err) == VV_OK || err.code == VV_ERR_CORRUPT);
    if (!store)
        return;
    FUZZ_CHECK(vv_store_open(&again, source, store, NULL) == VV_OK);
    FUZZ_CHECK(memcmp(store->generation, again->generation, sizeof store->generation) == 0);
    vv_store_free(again);
    for (size_t i = 0; i < store->stream_count; i++) {
        const vv_stream *s = &store->streams[i];
        FUZZ_CHECK(!s->failed || (s->error.name && s->execution_count == 0));
        for (size_t k = 0; k < s->execution_count; k++)
            check_execution(store, s, vv_stream_execution_at(s, k));
    }
    vv_cli_out o;
    vv_cli_out_init(&o);
    o.fd = -1;
    vv_code rc = vv_dump_document(&o, store, &err);
    FUZZ_CHECK(rc == VV_OK || rc == VV_ERR_LIMIT);
    FUZZ_CHECK(vv_json_done(&o.j));
    FUZZ_CHECK(vv_cli_out_done(&o, 0) == 0);
    vv_store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input *in = calloc(1, sizeof *in);
    FUZZ_CHECK(in);
    vv_rd r = vv_rd_init(data, size);
    while (vv_rd_left(&r) && in->count < FILES)
        take_file(in, &r);
    vv_source *source = NULL;
    FUZZ_CHECK(vv_source_open_mem(&source, in->files, in->count, NULL) == VV_OK);
    check_store(source);
    vv_source_close(source);
    for (size_t i = 0; i < in->count; i++)
        free((void *)(uintptr_t)in->files[i].p);
    free(in);
    return 0;
}
