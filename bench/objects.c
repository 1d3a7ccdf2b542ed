/*
 * Captured values as content-addressed objects: new ones, many in a cycle and one alone, beside bare files of the same
 * bytes (write, fsync, rename, fsync of the directory); and ones that are there already, the first time in a session
 * and again, beside SHA-256 of the same bytes.
 */
#include "config.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"
#include "bench/bench.h"
#include "format/cas.h"
#include "runtime/objects.h"

enum { BATCH = 32, ROUNDS_MAX = 1000 };

static struct {
    char dir[64], root[80];
    vv_governor governor;
    vv_objects objects;
    vv_wstore *store;
    uint64_t tag; /* of the next body that there was never before */
} b;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench/objects: %s\n", what);
    exit(1);
}

static void open_store(void)
{
    vv_wstore_close(b.store);
    vv_error err = {.code = VV_OK};
    vv_wstore_options o = {.root = b.root, .max_project_bytes = 1ULL << 40, .minimum_free_bytes = 1,
                           .governor = &b.governor};
    must(vv_wstore_open(&b.store, &o, &err) == VV_OK, err.msg);
}

static void fill(uint8_t *p, size_t n, uint64_t tag)
{
    for (size_t i = 0; i < n; i += sizeof tag) {
        uint64_t x = (tag + i) * 0x9e3779b97f4a7c15;
        memcpy(p + i, &x, sizeof x);
    }
}

static vv_body body_of(uint64_t tag, size_t n)
{
    vv_body body = {.len = n, .cap = n, .pool = VV_POOL_GENERAL};
    body.bytes = vv_gov_alloc(&b.governor, body.pool, VV_OWN_VALUES, n);
    must(body.bytes, "no memory");
    fill(body.bytes, n, tag);
    return body;
}

static void is_lost(void *ctx, const vv_cid *cid, unsigned code)
{
    (void)ctx;
    (void)cid;
    (void)code;
    must(false, "a value was lost");
}

/* Hashing and publishing count objects of n bytes, in ns of the clock. */
static double publish(uint64_t tag, unsigned count, size_t n, uint64_t (*now)(void))
{
    vv_body bodies[BATCH];
    for (unsigned i = 0; i < count; i++)
        bodies[i] = body_of(tag + i * 0x100000000, n);
    uint64_t from = now();
    for (unsigned i = 0; i < count; i++) {
        vv_cid cid;
        must(vv_objects_put(&b.objects, &bodies[i], &cid), "no memory");
    }
    must(vv_objects_publish(&b.objects, b.store, is_lost, NULL), "the store is blocked");
    return (double)(now() - from);
}

/* The same files without a store. */
static double write_bare(uint64_t tag, unsigned count, size_t n)
{
    uint8_t *bytes = malloc(n + VV_CAS_FIXED);
    must(bytes, "no memory");
    char dir[96], tmp[96], path[128];
    snprintf(tmp, sizeof tmp, "%s/pending", b.dir);
    uint64_t ns = 0;
    for (unsigned i = 0; i < count; i++) {
        fill(bytes, n, tag + i);
        snprintf(dir, sizeof dir, "%s/bare/%02x", b.dir, (unsigned)((tag + i) * 97 % 256));
        snprintf(path, sizeof path, "%s/%llu", dir, (unsigned long long)(tag + i));
        uint64_t from = bench_now_ns();
        must(vv_mkdirs(AT_FDCWD, dir, NULL) == VV_OK, "no directory");
        int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        must(fd >= 0 && vv_write_all(fd, bytes, n + VV_CAS_FIXED, NULL) == VV_OK && fsync(fd) == 0 && close(fd) == 0 &&
                 rename(tmp, path) == 0,
             "a bare file could not be written");
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(fd >= 0 && fsync(fd) == 0, "a directory could not be synced");
        close(fd);
        ns += bench_now_ns() - from;
    }
    free(bytes);
    return (double)ns;
}

/* SHA-256 of as many bytes, as fresh, in CPU time. */
static double hash_bare(unsigned count, size_t n)
{
    uint8_t *bytes = malloc(count * n), sum[VV_SHA256_BYTES];
    must(bytes, "no memory");
    fill(bytes, count * n, 1);
    uint64_t from = bench_cpu_now_ns();
    for (unsigned i = 0; i < count; i++)
        vv_sha256(bytes + i * n, n, sum);
    double ns = (double)(bench_cpu_now_ns() - from);
    free(bytes);
    return ns;
}

/* Limits: of a new object in a batch over a bare file and two SHA-256 (its name and its checksum); of one that is
 * there, again, over its SHA-256. */
static const struct {
    size_t n;
    double miss_limit, again_limit;
} sizes[] = {{1024, 1.3, 6.0}, {16384, 1.3, 1.5}, {262144, 1.3, 1.3}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void measure_misses(int rounds)
{
    static double ns[SIZES][ROUNDS_MAX], batch[SIZES][ROUNDS_MAX], alone[SIZES][ROUNDS_MAX];
    for (int i = -1; i < rounds; i++)
        for (unsigned k = 0; k < SIZES; k++) {
            int at = i < 0 ? 0 : i;
            size_t n = sizes[k].n;
            double bare = (write_bare(b.tag, BATCH, n) + 2 * hash_bare(BATCH, n)) / BATCH;
            ns[k][at] = publish(b.tag, BATCH, n, bench_now_ns) / BATCH;
            batch[k][at] = ns[k][at] / bare;
            b.tag += BATCH;
            alone[k][at] = publish(b.tag++, 1, n, bench_now_ns) / bare;
        }
    printf("new objects, %d rounds of %d, medians (quartiles), beside a bare file and two SHA-256 of the same bytes\n",
           rounds, BATCH);
    for (unsigned k = 0; k < SIZES; k++) {
        bench_spread m = bench_summary(ns[k], rounds), r = bench_summary(batch[k], rounds);
        printf("  %4zu KiB %9.0f microseconds, %.2f of that (%.2f to %.2f; limit %.2f)%s; alone %.2f\n",
               sizes[k].n / 1024, m.median / 1000, r.median, r.low, r.high, sizes[k].miss_limit,
               r.median > sizes[k].miss_limit ? " MISSED" : "", bench_summary(alone[k], rounds).median);
    }
}

static void measure_hits(int rounds)
{
    static double ns[SIZES][2][ROUNDS_MAX], ratio[SIZES][2][ROUNDS_MAX];
    enum { TAG = 1 << 30 }; /* of bodies that are there before the rounds begin */
    for (unsigned k = 0; k < SIZES; k++)
        publish(TAG, BATCH, sizes[k].n, bench_now_ns);
    for (int i = -1; i < rounds; i++) {
        open_store(); /* a session that knows nothing yet */
        for (unsigned k = 0; k < SIZES; k++)
            for (unsigned again = 0; again < 2; again++) {
                int at = i < 0 ? 0 : i;
                double hash = hash_bare(BATCH, sizes[k].n) / BATCH;
                ns[k][again][at] = publish(TAG, BATCH, sizes[k].n, bench_cpu_now_ns) / BATCH;
                ratio[k][again][at] = ns[k][again][at] / hash;
            }
    }
    printf("objects that are there, CPU time beside SHA-256 of the same bytes\n");
    for (unsigned k = 0; k < SIZES; k++) {
        bench_spread first = bench_summary(ratio[k][0], rounds), again = bench_summary(ratio[k][1], rounds);
        printf("  %4zu KiB first time %8.1f microseconds, %.2f (%.2f to %.2f); again %8.1f microseconds, %.2f "
               "(%.2f to %.2f; limit %.1f)%s\n", sizes[k].n / 1024, bench_summary(ns[k][0], rounds).median / 1000,
               first.median, first.low, first.high, bench_summary(ns[k][1], rounds).median / 1000, again.median,
               again.low, again.high, sizes[k].again_limit, again.median > sizes[k].again_limit ? " MISSED" : "");
    }
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(void)
{
    static const uint64_t limits[VV_POOLS] = {1 << 20, 1 << 20, 256 << 20};
    snprintf(b.dir, sizeof b.dir, "/var/tmp/varve-objects-XXXXXX");
    must(mkdtemp(b.dir), "no directory");
    snprintf(b.root, sizeof b.root, "%s/profiles-v1", b.dir);
    vv_governor_init(&b.governor, limits);
    vv_objects_init(&b.objects, &b.governor);
    b.tag = 1;
    open_store();
    measure_misses(bench_rounds());
    measure_hits(bench_rounds());
    vv_wstore_close(b.store);
    vv_objects_done(&b.objects);
    nftw(b.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
