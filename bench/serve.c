/*
 * The server beside limits of the same round: opening an execution of 100,000 contexts, an answer that has not changed,
 * a segment's bytes, and a commit on its way to a follower and into an answer. Files are in the page cache.
 */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/inotify.h>

#include "base/sha256.h"
#include "base/text.h"
#include "bench/client.h"
#include "bench/segments.h"
#include "format/segment.h"

enum { CONTEXTS = 100000, PARTS = 5, REQUESTS = 300, COMMITS = 200, RAW_GROUPS = 2000, RAW_REPEAT = 4 };
#define RAW_CONTEXTS 250

typedef struct {
    char dir[64], store[96], raw_file[200], raw_path[200];
    vv_euid wide, raw, live;
    uint64_t opened_bytes, raw_bytes;
} fixture;

static vv_euid euid_of(uint32_t n)
{
    vv_euid e = {{0}};
    vv_put32(e.b, n);
    vv_put32(e.b + 12, n);
    return e;
}

static int by_key(const void *a, const void *b)
{
    return memcmp(((const vv_cct_row *)a)->key.b, ((const vv_cct_row *)b)->key.b, 32);
}

/* A tree with fan-out 4, by key. */
static vv_cct_row *make_rows(uint32_t n)
{
    vv_cct_row *rows = calloc(n, sizeof *rows);
    if (!rows)
        bench_die("no memory");
    for (uint32_t i = 0; i < n; i++) {
        vv_tuple *t = &rows[i].tuple;
        *t = (vv_tuple){.function_id = i % 997 + 1, .edge = i ? VV_EDGE_CALL : VV_EDGE_ROOT, .has_parent = i > 0,
                        .has_site = true, .site = {1, i, i + 1, i % 5000 + 1}};
        if (i)
            t->parent = rows[(i - 1) / 4].key;
        rows[i].defined = true;
        rows[i].counters = (vv_counters){.started = 1, .ok = 1, .inclusive_ns = 10 + i};
        vv_context_key_of(&rows[i].key, t);
    }
    qsort(rows, n, sizeof *rows, by_key);
    return rows;
}

static void write_meta(const char *store, const vv_euid *euid, bool ended, uint64_t segments)
{
    vv_wr w = vv_wr_growing(1 << 16);
    vv_thread_ref root = vv_thread_ref_make(euid, 1, 1);
    vv_meta_begin(&w, euid, 1, 0);
    vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_STREAM_STARTED, .stream_started = {.pid = 1, .zero_unix_ns = 1}});
    vv_meta_add(&w, &(vv_meta_record){.tag = VV_META_ROOT_STARTED,
                                      .root_started = {.root = root, .started_ns = vv_be32(euid->b)}});
    if (ended)
        vv_meta_add(&w, &(vv_meta_record){
                            .tag = VV_META_ROOT_ENDED,
                            .root_ended = {.root = root, .ended_ns = 1000000, .first = 1, .last = segments,
                                           .count = segments}});
    vv_meta_end(&w, 2 + ended);
    bench_segment(store, euid, VV_PLANE_META, 1, &w);
}

/* A segment with groups times the same rows; returns its size. */
static uint64_t write_data(const char *store, const vv_euid *euid, uint64_t sequence, const vv_cct_row *rows,
                           uint32_t n, uint64_t groups)
{
    vv_wr cct = vv_wr_growing((size_t)1 << 28), w = vv_wr_growing((size_t)1 << 30);
    vv_wr_u64(&cct, n);
    for (uint32_t i = 0; i < n; i++)
        vv_cct_encode_row(&cct, &rows[i]);
    vv_wr_u64(&cct, 0);
    vv_data_begin(&w, euid, sequence);
    for (uint64_t g = 1; g <= groups; g++)
        vv_data_add(&w, &(vv_group){.root = vv_thread_ref_make(euid, 1, g), .cct_records = n, .cct = cct.buf,
                                    .cct_len = cct.len});
    vv_data_end(&w, groups);
    uint64_t size = w.len;
    bench_segment(store, euid, VV_PLANE_DATA, sequence, &w);
    vv_wr_done(&cct);
    return size;
}

static void make_store(fixture *fx)
{
    char hex[33], rel[VV_STREAM_PATH];
    vv_cct_row *rows = make_rows(CONTEXTS), *few = make_rows(RAW_CONTEXTS);
    fx->wide = euid_of(3);
    fx->raw = euid_of(1);
    fx->live = euid_of(2);
    for (uint32_t k = 0; k < PARTS; k++)
        fx->opened_bytes += write_data(fx->store, &fx->wide, k + 1, rows + k * (CONTEXTS / PARTS), CONTEXTS / PARTS, 1);
    write_meta(fx->store, &fx->wide, true, PARTS);
    fx->raw_bytes = write_data(fx->store, &fx->raw, 1, few, RAW_CONTEXTS, RAW_GROUPS);
    write_meta(fx->store, &fx->raw, true, 1);
    write_meta(fx->store, &fx->live, false, 0);
    vv_segment_path(rel, &fx->raw, VV_PLANE_DATA, 1);
    snprintf(fx->raw_file, sizeof fx->raw_file, "%s", rel);
    vv_hex(hex, fx->raw.b, sizeof fx->raw.b);
    snprintf(fx->raw_path, sizeof fx->raw_path, "/api/v1/streams/%s/data/1", hex);
    free(rows);
    free(few);
}

static bench_child start_server(const fixture *fx, bool pin)
{
    const char *top = getenv("top_builddir");
    char varve[256];
    snprintf(varve, sizeof varve, "%s/varve", top ? top : ".");
    char *argv[] = {varve, "serve", "--no-index", "--listen", "127.0.0.1:0", (char *)fx->store, NULL};
    return bench_start(argv, 0, pin);
}

static void expect(bench_reply r, int status, const char *what)
{
    if (r.status == status)
        return;
    fprintf(stderr, "bench/serve: %s: %d instead of %d\n", what, r.status, status);
    exit(1);
}

/* Ratio and milliseconds of what was measured in rounds, beside a limit (0: none). */
static void print(const char *name, double *ratio, double *ms, int n, const char *of, double limit, bool at_least)
{
    bench_spread r = bench_summary(ratio, n), m = bench_summary(ms, n);
    printf("%s: %.2f of %s [%.2f to %.2f]; %.3f ms", name, r.median, of, r.low, r.high, m.median);
    if (limit > 0)
        printf("; limit: %s %.2f", at_least ? "at least" : "at most", limit);
    printf("\n");
}

/* The least that opening costs: the bytes read once, and their checksums. */
static double read_and_hash_ms(const fixture *fx)
{
    uint8_t sum[VV_SHA256_BYTES];
    uint64_t from = bench_now_ns();
    for (uint64_t k = 1; k <= PARTS; k++) {
        char rel[VV_STREAM_PATH], path[256];
        vv_error err = {0};
        vv_blob b;
        vv_segment_path(rel, &fx->wide, VV_PLANE_DATA, k);
        snprintf(path, sizeof path, "%s/%s", fx->store, rel);
        bench_must(vv_file_read(-100, path, UINT32_MAX, &b, &err), &err);
        vv_sha256(b.p, b.n, sum);
        vv_blob_done(&b);
    }
    return (double)(bench_now_ns() - from) / 1e6;
}

static void bench_open(const fixture *fx, int rounds)
{
    double ratio[1000], ms[1000];
    for (int i = 0; i < rounds; i++) {
        bench_child server = start_server(fx, false);
        bench_conn c;
        bench_connect(&c, server.port);
        double limit = read_and_hash_ms(fx);
        uint64_t from = bench_now_ns();
        expect(bench_get(&c, "/api/v1/executions/00000003.1.1", "", NULL, 0), 200, "an execution");
        ms[i] = (double)(bench_now_ns() - from) / 1e6;
        ratio[i] = ms[i] / limit;
        close(c.fd);
        bench_stop(&server);
    }
    print("open an execution of 100,000 contexts", ratio, ms, rounds, "reading and hashing its bytes", 0, false);
}

static double requests_ms(bench_conn *c, const char *path, const char *headers, int status)
{
    uint64_t from = bench_now_ns();
    for (int i = 0; i < REQUESTS; i++)
        expect(bench_get(c, path, headers, NULL, 0), status, path);
    return (double)(bench_now_ns() - from) / 1e6 / REQUESTS;
}

/* The header that asks whether an answer has changed. */
static void find_tag(bench_conn *c, const char *path, char *out, size_t max)
{
    char line[4096], tag[256] = "";
    uint64_t length = 0;
    bench_send(c, path, "");
    for (bench_line(c, line, sizeof line); line[0]; bench_line(c, line, sizeof line)) {
        if (strncasecmp(line, "ETag: ", 6) == 0)
            snprintf(tag, sizeof tag, "%.200s", line + 6);
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            length = strtoull(line + 15, NULL, 10);
    }
    bench_take(c, length, NULL, 0);
    snprintf(out, max, "If-None-Match: %s\r\n", tag);
}

static void bench_unchanged(bench_conn *c, int rounds)
{
    static const char path[] = "/api/v1/functions?execution=00000003.1.1";
    double ratio[1000], ms[1000], page[1000], page_ms[1000];
    char tag[300];
    find_tag(c, path, tag, sizeof tag);
    for (int i = 0; i < rounds; i++) {
        double limit = requests_ms(c, "/api/v1", "", 200);
        ms[i] = requests_ms(c, path, tag, 304);
        page_ms[i] = requests_ms(c, "/api/v1/executions", "", 200);
        ratio[i] = ms[i] / limit;
        page[i] = page_ms[i] / limit;
    }
    print("an answer that has not changed (304)", ratio, ms, rounds, "a static one", 1.5, false);
    print("first page of executions", page, page_ms, rounds, "a static answer", 0, false);
}

static double raw_bytes_per_ns(const bench_child *server, bench_conn *c, const char *path, uint64_t size)
{
    uint64_t from = bench_child_cpu_ns(server);
    for (int i = 0; i < RAW_REPEAT; i++)
        if (bench_get(c, path, "", NULL, 0).bytes != size)
            bench_die("a segment of another length");
    return (double)size * RAW_REPEAT / (double)(bench_child_cpu_ns(server) - from);
}

static bench_child start_nginx(const fixture *fx, const char *nginx, unsigned port)
{
    char conf[128];
    snprintf(conf, sizeof conf, "%s/nginx.conf", fx->dir);
    FILE *f = fopen(conf, "w");
    if (!f)
        bench_die("no configuration for nginx");
    fprintf(f,
            "daemon off; master_process off; pid %s/nginx.pid; error_log stderr crit;\n"
            "events {}\nhttp { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;\n"
            "client_body_temp_path %s/body; proxy_temp_path %s/proxy; fastcgi_temp_path %s/fcgi;\n"
            "uwsgi_temp_path %s/uwsgi; scgi_temp_path %s/scgi;\n"
            "server { listen 127.0.0.1:%u; root %s; } }\n",
            fx->dir, fx->dir, fx->dir, fx->dir, fx->dir, fx->dir, port, fx->store);
    fclose(f);
    char *argv[] = {(char *)nginx, "-c", conf, NULL};
    return bench_start(argv, port, true);
}

/* A port that is free now. */
static unsigned free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) != 0 || getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        bench_die("no free port");
    close(fd);
    return ntohs(a.sin_port);
}

/* Each server on one processor, who reads on the other: what the system does for them depends on who runs where. */
static void bench_raw(const fixture *fx, int rounds)
{
    static const char nginx[] = "/usr/sbin/nginx";
    char path[210];
    double ratio[1000], ms[1000];
    bench_conn conn, other;
    if (access(nginx, X_OK) != 0) {
        printf("a segment's bytes: nginx is not installed, so there is nothing to hold them against\n");
        return;
    }
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    bench_child server = start_server(fx, true), rival = start_nginx(fx, nginx, free_port());
    bench_pin(false);
    bench_connect(&conn, server.port);
    bench_connect(&other, rival.port);
    snprintf(path, sizeof path, "/%s", fx->raw_file);
    raw_bytes_per_ns(&server, &conn, fx->raw_path, fx->raw_bytes); /* its digest is found once */
    for (int i = 0; i < rounds; i++) {
        double theirs = raw_bytes_per_ns(&rival, &other, path, fx->raw_bytes);
        double ours = raw_bytes_per_ns(&server, &conn, fx->raw_path, fx->raw_bytes);
        ratio[i] = ours / theirs;
        ms[i] = (double)fx->raw_bytes / ours / 1e6;
    }
    close(conn.fd);
    close(other.fd);
    bench_stop(&server);
    bench_stop(&rival);
    sched_setaffinity(0, sizeof before, &before);
    print("a segment's bytes a second of CPU", ratio, ms, rounds, "nginx's for the same file", 1.0, true);
}

/* When the last event of a follower came, by its number. */
typedef struct {
    bench_conn conn;
    _Atomic uint64_t events, at_ns;
} follower;

static void *follow(void *cls)
{
    follower *f = cls;
    char line[1 << 16];
    for (;;) {
        bench_line(&f->conn, line, sizeof line);
        if (strncmp(line, "data:", 5) != 0)
            continue;
        atomic_store(&f->at_ns, bench_now_ns());
        atomic_fetch_add(&f->events, 1);
    }
    return NULL;
}

typedef struct {
    int fd;
    _Atomic uint64_t events, at_ns;
} bare_loop;

/* What a notification costs by itself. */
static void *notice(void *cls)
{
    bare_loop *b = cls;
    char buf[4096];
    while (read(b->fd, buf, sizeof buf) > 0) {
        atomic_store(&b->at_ns, bench_now_ns());
        atomic_fetch_add(&b->events, 1);
    }
    return NULL;
}

static bool wait_for(_Atomic uint64_t *n, uint64_t more_than)
{
    uint64_t until = bench_now_ns() + 5000000000u;
    while (atomic_load(n) <= more_than && bench_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return atomic_load(n) > more_than;
}

static bool calls_are(bench_conn *c, uint64_t commits)
{
    static char text[1 << 16];
    char wanted[40];
    snprintf(wanted, sizeof wanted, "\"total_calls\":%" PRIu64 ",", commits);
    expect(bench_get(c, "/api/v1/executions/00000002.1.1", "", text, sizeof text), 200, "the live execution");
    return strstr(text, wanted) != NULL;
}

static void bench_fresh(const fixture *fx, const bench_child *server, bench_conn *c, int rounds)
{
    const uint64_t commits = rounds < 10 ? COMMITS / 10 : COMMITS;
    static follower f;
    static bare_loop b;
    double event[COMMITS], answer[COMMITS], bare[COMMITS];
    char rel[VV_STREAM_PATH], dir[256];
    pthread_t threads[2];
    vv_cct_row *one = make_rows(1);
    vv_plane_path(rel, &fx->live, VV_PLANE_DATA);
    snprintf(dir, sizeof dir, "%s/%s", fx->store, rel);
    write_data(fx->store, &fx->live, 1, one, 1, 1);
    b.fd = inotify_init1(IN_CLOEXEC);
    if (inotify_add_watch(b.fd, dir, IN_MOVED_TO) < 0)
        bench_die("no notification");
    bench_connect(&f.conn, server->port);
    bench_send(&f.conn, "/api/v1/follow", "Accept: text/event-stream\r\n");
    pthread_create(&threads[0], NULL, follow, &f);
    pthread_create(&threads[1], NULL, notice, &b);
    bool good = wait_for(&f.events, 0);
    for (uint64_t k = 0; k < commits && good; k++) {
        /* Followers are told of bursts at intervals; a writer's commits are a second apart. */
        nanosleep(&(struct timespec){.tv_nsec = 45000000 + (long)(k * 7919 % 30) * 1000000}, NULL);
        uint64_t events = atomic_load(&f.events), noticed = atomic_load(&b.events);
        uint64_t from = bench_now_ns();
        write_data(fx->store, &fx->live, k + 2, one, 1, 1);
        uint64_t renamed = bench_now_ns();
        good = wait_for(&f.events, events) && wait_for(&b.events, noticed) && calls_are(c, k + 2);
        answer[k] = (double)(bench_now_ns() - from) / 1e6;
        event[k] = atomic_load(&f.at_ns) > renamed ? (double)(atomic_load(&f.at_ns) - renamed) / 1e6 : 0;
        bare[k] = atomic_load(&b.at_ns) > renamed ? (double)(atomic_load(&b.at_ns) - renamed) / 1e6 : 0;
    }
    pthread_cancel(threads[0]);
    pthread_cancel(threads[1]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    free(one);
    if (!good)
        bench_die("a commit was not followed");
    bench_summary(event, (int)commits);
    bench_summary(answer, (int)commits);
    bench_summary(bare, (int)commits);
    size_t p99 = commits * 99 / 100 - 1, half = commits / 2;
    printf("commit to answer, 99th of 100 of %d commits: event %.2f ms (median %.2f), answer with it %.2f ms (%.2f), "
           "a bare notification %.2f ms (%.2f); limit: 100 ms\n",
           (int)commits, event[p99], event[half], answer[p99], answer[half], bare[p99], bare[half]);
}

static fixture made = {.dir = "/var/tmp/varve-bench-serve-XXXXXX"};

static void remove_store(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", made.dir);
    if (system(command) != 0)
        fprintf(stderr, "bench/serve: %s stays\n", made.dir);
}

int main(void)
{
    if (!mkdtemp(made.dir))
        return 1;
    atexit(remove_store);
    snprintf(made.store, sizeof made.store, "%s/profiles-v1", made.dir);
    make_store(&made);
    int rounds = bench_rounds();
    bench_open(&made, rounds);
    bench_child server = start_server(&made, false);
    bench_conn c;
    bench_connect(&c, server.port);
    bench_unchanged(&c, rounds);
    bench_raw(&made, rounds);
    bench_fresh(&made, &server, &c, rounds);
    bench_stop(&server);
    return 0;
}
