/*
 * The flame graph of an execution with 100,000 contexts as JSON, all of them, beside a copy of the same bytes: both as
 * bodies of an answer, read in portions and sent through a socket to a thread that takes them. What is measured is the
 * CPU time of the side that sends, which is also what the graph takes to be made.
 */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/segments.h"
#include "server/body.h"
#include "views/executions.h"

enum { CONTEXTS = 100000, FUNCTIONS = 400, FAN = 6, PORTION = 32 * 1024 };

static int by_key(const void *a, const void *b)
{
    return memcmp(((const vv_cct_row *)a)->key.b, ((const vv_cct_row *)b)->key.b, 32);
}

/* A tree of that fan, each context with times of its own, as a program's would be. */
static void write_contexts(vv_wr *cct)
{
    vv_cct_row *rows = calloc(CONTEXTS, sizeof *rows);
    uint64_t *children = calloc(CONTEXTS, sizeof *children), random = 1;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        rows[i] = (vv_cct_row){.defined = true, .tuple = {.function_id = i % FUNCTIONS + 1}};
        if (i) {
            rows[i].tuple.has_parent = true;
            rows[i].tuple.parent = rows[(i - 1) / FAN].key;
            rows[i].tuple.edge = VV_EDGE_CALL;
            rows[i].tuple.has_site = true;
            rows[i].tuple.site.line = i % 900 + 1;
        }
        vv_context_key_of(&rows[i].key, &rows[i].tuple);
    }
    for (uint32_t i = CONTEXTS; i-- > 0;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t calls = 1 + (random >> 40) % 3000, own = calls * (200 + (random >> 33) % 1000);
        rows[i].counters = (vv_counters){.started = calls, .ok = calls, .inclusive_ns = own + children[i],
                                         .direct_child_ns = children[i]};
        if (i)
            children[(i - 1) / FAN] += own + children[i];
    }
    qsort(rows, CONTEXTS, sizeof *rows, by_key);
    vv_wr_u64(cct, CONTEXTS);
    for (uint32_t i = 0; i < CONTEXTS; i++)
        vv_cct_encode_row(cct, &rows[i]);
    vv_wr_u64(cct, 0);
    free(rows);
    free(children);
}

static void make_store(const char *dir)
{
    vv_euid euid = {{1}};
    vv_thread_ref root = vv_thread_ref_make(&euid, 1, 1);
    vv_wr w = vv_wr_growing(1 << 20), cct = vv_wr_growing((size_t)1 << 30);
    vv_meta_begin(&w, &euid, 1, 0);
    vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_STREAM_STARTED, .stream_started = {.pid = 1, .zero_unix_ns = 1}});
    vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_ROOT_STARTED, .root_started = {.root = root, .started_ns = 1}});
    vv_meta_record end = {.tag = VV_META_ROOT_ENDED};
    end.root_ended = (vv_root_ended){.root = root, .ended_ns = 2, .first = 1, .last = 1, .count = 1};
    vv_meta_add(&w, &end);
    vv_meta_end(&w, 3);
    bench_segment(dir, &euid, VV_PLANE_META, 1, &w);
    write_contexts(&cct);
    w = vv_wr_growing((size_t)1 << 30);
    vv_data_begin(&w, &euid, 1);
    vv_data_add(&w, &(vv_group){.root = root, .cct_records = CONTEXTS, .cct = cct.buf, .cct_len = cct.len});
    vv_data_end(&w, 1);
    bench_segment(dir, &euid, VV_PLANE_DATA, 1, &w);
    vv_wr_done(&cct);
}

static void *take(void *cls)
{
    static char buf[256 * 1024];
    while (read(*(int *)cls, buf, sizeof buf) > 0)
        continue;
    return NULL;
}

/* Sends the body as a server does; frees it. */
static uint64_t send_body(int fd, vv_body *b)
{
    static char buf[PORTION];
    uint64_t sum = 0;
    ssize_t n;
    while ((n = vv_body_read(b, buf, sizeof buf)) > 0) {
        sum += (uint64_t)n;
        for (ssize_t at = 0, put; at < n; at += put)
            if ((put = write(fd, buf + at, (size_t)(n - at))) < 0)
                exit(1);
    }
    vv_body_free(b);
    return sum;
}

typedef struct {
    vv_str all;
    size_t at;
} copy;

/* Hands out the bytes a row at a time, as the view does. */
static bool copy_more(void *cls, vv_json *j)
{
    enum { ROW = 64 };
    copy *c = cls;
    size_t n = c->all.n - c->at < ROW ? c->all.n - c->at : ROW;
    vv_wr_bytes(j->out, c->all.p + c->at, n);
    c->at += n;
    return c->at < c->all.n;
}

static vv_answer ask(vv_library *l, const vv_look *look)
{
    static const vv_param params[] = {{{"execution", 9}, {"latest", 6}}, {{"max_nodes", 9}, {"1000000", 7}}};
    vv_query q = {.library = l, .look = look, .params = params, .param_count = VV_ARRAY_LEN(params)};
    vv_error err = {0};
    vv_answer a;
    vv_answer_init(&a);
    bench_must(vv_answer_flame(&a, &q, &err), &err);
    return a;
}

/* The bytes of the answer, to be copied. */
static vv_wr whole(vv_library *l, const vv_look *look)
{
    vv_answer a = ask(l, look);
    vv_wr w = vv_wr_growing((size_t)1 << 30);
    vv_str piece;
    while (vv_answer_next(&a, &piece))
        vv_wr_bytes(&w, piece.p, piece.n);
    vv_answer_done(&a);
    return w;
}

static int measure(vv_library *l, const vv_look *look, int fd)
{
    double flame[1000], made[1000], copied[1000], ratio[1000];
    vv_wr w = whole(l, look);
    int rounds = bench_rounds();
    uint64_t bytes = w.len, sent = 0;
    for (int i = 0; i < rounds; i++) {
        copy c = {.all = {(const char *)w.buf, w.len}};
        vv_answer a;
        vv_answer_init(&a);
        a.more = copy_more;
        a.state = &c;
        uint64_t t = bench_cpu_now_ns();
        sent += send_body(fd, vv_body_new(&a, VV_CODING_IDENTITY));
        copied[i] = (double)(bench_cpu_now_ns() - t) / 1e6;
        t = bench_cpu_now_ns();
        a = ask(l, look);
        made[i] = (double)(bench_cpu_now_ns() - t) / 1e6;
        sent += send_body(fd, vv_body_new(&a, VV_CODING_IDENTITY));
        flame[i] = (double)(bench_cpu_now_ns() - t) / 1e6;
        ratio[i] = flame[i] / copied[i];
    }
    vv_wr_done(&w);
    bench_spread r = bench_summary(ratio, rounds), f = bench_summary(flame, rounds), m = bench_summary(made, rounds),
                 c = bench_summary(copied, rounds);
    printf("flame graph of %d contexts: %.2f of a copy of its %.1f MB [%.2f to %.2f], limit 3; %.1f ms, of which %.1f "
           "make the graph; the copy %.1f (median of %d)\n",
           CONTEXTS, r.median, (double)bytes / 1e6, r.low, r.high, f.median, m.median, c.median, rounds);
    return sent != 2 * bytes * (uint64_t)rounds;
}

int main(void)
{
    char dir[64] = "/var/tmp/varve-bench-flame-XXXXXX", root[96], command[128];
    vv_error err = {0};
    vv_library *l;
    const vv_look *look;
    pthread_t taker;
    int fds[2];
    if (!mkdtemp(dir) || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || pthread_create(&taker, NULL, take, &fds[1]))
        return 1;
    snprintf(root, sizeof root, "%s/profiles-v1", dir);
    make_store(root);
    bench_must(vv_library_open(&l, root, (size_t)1 << 30, 0, &err), &err);
    bench_must(vv_library_look(l, &look, &err), &err);
    int rc = measure(l, look, fds[0]);
    vv_look_release(l, look);
    vv_library_close(l);
    close(fds[0]);
    pthread_join(taker, NULL);
    close(fds[1]);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) != 0 || rc;
}
