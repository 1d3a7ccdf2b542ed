/* What is known of executions, look after look: it is what a fresh look finds, and former looks keep what they had. */
#include "config.h"

#include "reader/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/reader/build.h"

#include "tests/reader/files.h"

#include "tests/reader/commits.h"

#include "tests/reader/denial.h"

enum { FORMER = 5, ROOTS = 400 };

typedef struct {
    char dir[TEST_DIR], root[TEST_DIR + 2];
    vv_source *source;
    test_store t;
    int held; /* the stream's lock, or -1 */
    uint64_t meta, health, data; /* highest sequences */
    uint64_t started;            /* roots, from 1 on */
    bool ended[ROOTS + 1];
    uint64_t bad; /* a meta sequence that is to be mended, or 0 */
} rig;

static void begin(rig *r)
{
    *r = (rig){.held = -1};
    test_make_dir(r->dir);
    snprintf(r->root, sizeof r->root, "%s/s", r->dir);
    test_store_begin(&r->t);
    test_commit_start(r->root, &r->t.euid);
    r->meta = r->started = 1;
    r->held = test_hold(r->root, &r->t.euid);
    ck_assert(vv_source_open(&r->source, r->root, NULL) == VV_OK);
}

static void done(rig *r)
{
    vv_close(&r->held);
    vv_source_close(r->source);
    test_remove_dir(r->dir);
}

static void put(const rig *r, vv_plane plane, uint64_t sequence, vv_wr *w)
{
    char rel[VV_STREAM_PATH];
    vv_segment_path(rel, &r->t.euid, plane, sequence);
    test_commit(r->root, rel, w);
    vv_wr_done(w);
}

static void put_meta(const rig *r, uint64_t sequence, const vv_meta_record *m, size_t n)
{
    vv_wr w = vv_wr_growing(1 << 20);
    vv_meta_begin(&w, &r->t.euid, sequence, r->data);
    for (size_t i = 0; i < n; i++)
        vv_meta_add(&w, &m[i]);
    vv_meta_end(&w, n);
    put(r, VV_PLANE_META, sequence, &w);
}

static void put_bad(const rig *r, vv_plane plane, uint64_t sequence)
{
    vv_wr w = vv_wr_growing(100);
    vv_wr_bytes(&w, "no segment of any kind, but longer than a seal", 46);
    put(r, plane, sequence, &w);
}

static vv_meta_record random_record(rig *r, test_rng *g)
{
    uint64_t root = 1 + test_below(g, r->started);
    if (test_below(g, 25) == 0) {
        vv_meta_record engine = test_engine((uint8_t)test_below(g, 5), test_below(g, 2));
        engine.engine_started.engine_id = 1 + test_below(g, 2);
        return engine;
    }
    if (test_below(g, 3) && !r->ended[root]) {
        vv_meta_record end = test_ended(&r->t, root, 1, r->data, test_below(g, 9));
        end.root_ended.status = (uint8_t)test_below(g, 5);
        r->ended[root] = true;
        return end;
    }
    root = ++r->started;
    if (test_below(g, 20) == 0) { /* its start is not there */
        vv_meta_record end = test_ended(&r->t, root, 1, r->data, 1);
        end.root_ended.flags = test_below(g, 2) ? VV_ROOT_START_LOST : 0;
        r->ended[root] = true;
        return end;
    }
    return test_started(&r->t, root);
}

static void commit_meta(rig *r, test_rng *g)
{
    vv_meta_record m[4];
    size_t n = 1 + (size_t)test_below(g, VV_ARRAY_LEN(m));
    for (size_t i = 0; i < n; i++)
        m[i] = random_record(r, g);
    put_meta(r, ++r->meta, m, n);
}

static void commit_terms(rig *r, test_rng *g)
{
    vv_wr w = vv_wr_growing(1 << 16);
    uint64_t n = 1 + test_below(g, 3);
    vv_health_begin(&w, &r->t.euid, ++r->health);
    for (uint64_t i = 0; i < n; i++) {
        vv_thread_ref root = test_thread(&r->t, 1 + test_below(g, r->started + 2));
        vv_health_add(&w, &root, 1);
        vv_health_add_term(&w, "invocations_attempted", 1 + test_below(g, 1000));
    }
    vv_health_end(&w, n);
    put(r, VV_PLANE_HEALTH, r->health, &w);
}

/* Rare, so that there are many good steps behind each other. */
static void disturb(rig *r, test_rng *g)
{
    uint64_t any = 2 + test_below(g, r->meta);
    switch (test_below(g, 5)) {
    case 0:
        r->meta += any > r->meta;
        r->bad = any;
        put_bad(r, VV_PLANE_META, any);
        break;
    case 1:
        r->bad = ++r->meta; /* a sequence without a file */
        commit_meta(r, g);
        break;
    case 2: /* a file is another one */
        r->meta += any > r->meta;
        put_meta(r, any, (vv_meta_record[]){test_engine(9, false)}, 1);
        break;
    case 3:
        put_bad(r, VV_PLANE_HEALTH, ++r->health);
        break;
    default: /* the writer dies, or another one is there */
        if (r->held < 0)
            r->held = test_hold(r->root, &r->t.euid);
        else
            vv_close(&r->held);
    }
}

static void step(rig *r, test_rng *g)
{
    uint64_t what = test_below(g, 100);
    if (r->bad && what < 25) {
        put_meta(r, r->bad, (vv_meta_record[]){test_engine(9, false)}, 1);
        r->bad = 0;
    } else if (what < 3 && !r->bad) {
        disturb(r, g);
    } else if (what < 30) {
        commit_terms(r, g);
    } else if (what < 45) {
        test_commit_data(r->root, &r->t.euid, ++r->data);
    } else {
        commit_meta(r, g);
    }
}

static void engine_text(FILE *f, const vv_stream *s, const vv_engine *e)
{
    if (!e)
        fputs(" none", f);
    else
        fprintf(f, " %td/%u", e - s->engines, e->program.b[0]);
}

static void execution_text(FILE *f, const vv_stream *s, const vv_execution *x)
{
    uint64_t attempted = 0;
    bool has = x->has_terms && vv_health_find(&x->terms, "invocations_attempted", &attempted);
    const uint64_t numbers[] = {vv_thread_number(&x->root), x->has_start, x->has_end, x->started_ns, x->ended_ns,
                                x->start_sequence, x->end_sequence, x->start_high_water, x->status, x->flags, x->first,
                                x->last, x->count, x->has_terms, has, attempted, x->index_state};
    for (size_t i = 0; i < VV_ARRAY_LEN(numbers); i++)
        fprintf(f, "%" PRIu64 " ", numbers[i]);
    engine_text(f, s, x->first_engine);
    engine_text(f, s, x->engine);
    fputs(vv_stream_execution(s, &x->root) == x ? "\n" : " lost\n", f);
}

/* All that a look says of the stream. */
static char *text_of(const vv_store *store)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(f);
    const vv_stream *s = &store->streams[0];
    fprintf(f, "%d %s alive %d %d header %d %u\n", s->failed, s->failed ? s->error.name : "", s->alive,
            s->unprobed, s->has_header, s->has_header ? s->header.pid : 0);
    fprintf(f, "meta %" PRIu64 " %" PRIu64 " %" PRIu64 " data %" PRIu64 " %" PRIu64 "\n", s->meta_decoded, s->meta_high,
            s->meta_contiguous, s->data_high, s->data_contiguous);
    for (size_t i = 0; i < s->meta_bad_count; i++)
        fprintf(f, "bad %" PRIu64 " %" PRIu64 "\n", s->meta_bad[i].first, s->meta_bad[i].last);
    for (size_t i = 0; i < s->meta_gap_count; i++)
        fprintf(f, "gap %" PRIu64 " %" PRIu64 "\n", s->meta_gaps[i].first, s->meta_gaps[i].last);
    for (size_t i = 0; i < s->engine_count; i++)
        fprintf(f, "engine %" PRIu64 " %u\n", s->engines[i].id, s->engines[i].program.b[0]);
    for (size_t i = 0; i < s->execution_count; i++)
        execution_text(f, s, vv_stream_execution_at(s, i));
    fclose(f);
    return text;
}

typedef struct {
    vv_store *store;
    char *text;
} kept;

static void forget(kept *k)
{
    if (k->store)
        vv_store_free(k->store);
    free(k->text);
    *k = (kept){NULL, NULL};
}

static vv_store *look(const rig *r, const vv_store *former)
{
    vv_store *s = NULL;
    ck_assert(vv_store_open(&s, r->source, former, NULL) == VV_OK);
    return s;
}

/* Mostly from the newest look on; now and then from an older one. */
START_TEST(looks_that_follow_say_what_fresh_ones_do)
{
    test_rng g = test_seeded("executions");
    unsigned followed = 0, steps = 0;
    for (int round = 0; round < 4; round++) {
        rig r;
        kept looks[FORMER] = {{NULL, NULL}};
        begin(&r);
        for (size_t newest = 0; r.started < ROOTS - 4 && steps < 2000; steps++) {
            step(&r, &g);
            kept *from = &looks[test_below(&g, 30) ? newest : test_below(&g, FORMER)];
            size_t next = (newest + 1 + test_below(&g, FORMER - 1)) % FORMER;
            vv_store *now = look(&r, from->store), *fresh = look(&r, NULL);
            char *text = text_of(now), *wanted = text_of(fresh);
            ck_assert_str_eq(text, wanted);
            const vv_stream *a = from->store ? &from->store->streams[0] : NULL, *b = &now->streams[0];
            followed += a && a->meta_high < b->meta_high
                     && a->core->index->executions.roots == b->core->index->executions.roots;
            free(wanted);
            vv_store_free(fresh);
            forget(&looks[next]);
            looks[next] = (kept){now, text};
            newest = next;
            const kept *any = &looks[test_below(&g, FORMER)];
            char *again = any->store ? text_of(any->store) : NULL;
            ck_assert(!again || strcmp(again, any->text) == 0);
            free(again);
        }
        for (size_t i = 0; i < FORMER; i++)
            forget(&looks[i]);
        done(&r);
    }
    ck_assert_uint_gt(followed, steps / 10);
}
END_TEST

/* A look that finds no memory for something fails, or does without it; the one before says what it said. */
START_TEST(looks_without_memory)
{
    enum { STEPS = 40 };
    test_rng g = test_seeded("executions, without memory");
    rig r;
    begin(&r);
    vv_store *former = look(&r, NULL);
    for (int i = 0; i < STEPS; i++) {
        step(&r, &g);
        char *before = text_of(former), *wanted;
        vv_store *fresh = look(&r, NULL);
        wanted = text_of(fresh);
        vv_store_free(fresh);
        vv_store *now = NULL;
        denials = 1;
        for (int64_t at = 0; denials; at++) {
            denials = 0;
            denied = at;
            vv_code rc = vv_store_open(&now, r.source, former, NULL);
            denied = -1;
            char *again = text_of(former), *text = rc == VV_OK ? text_of(now) : NULL;
            ck_assert(rc == VV_OK || (rc == VV_ERR_NOMEM && denials));
            ck_assert_str_eq(again, before);
            if (text)
                ck_assert_str_eq(text, wanted);
            if (text && denials)
                vv_store_free(now);
            free(text);
            free(again);
        }
        free(before);
        free(wanted);
        vv_store_free(former);
        former = now;
    }
    vv_store_free(former);
    done(&r);
}
END_TEST

/* One thread goes on from look to look, others read what it published last, and let go of it. */
typedef struct {
    pthread_mutex_t lock;
    vv_store *newest;
    unsigned *users; /* of the newest, the publisher's included */
    atomic_bool ends;
} published;

static vv_store *share(published *p, unsigned **ret_users)
{
    pthread_mutex_lock(&p->lock);
    vv_store *s = p->newest;
    *ret_users = p->users;
    ++**ret_users;
    pthread_mutex_unlock(&p->lock);
    return s;
}

static void let_go(published *p, vv_store *s, unsigned *users)
{
    pthread_mutex_lock(&p->lock);
    bool last = --*users == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    vv_store_free(s);
    free(users);
}

static void publish(published *p, vv_store *s)
{
    unsigned *users = malloc(sizeof *users);
    ck_assert_ptr_nonnull(users);
    *users = 1;
    pthread_mutex_lock(&p->lock);
    vv_store *former = p->newest;
    unsigned *former_users = p->users;
    p->newest = s;
    p->users = users;
    pthread_mutex_unlock(&p->lock);
    if (former)
        let_go(p, former, former_users);
}

static void *read_looks(void *state)
{
    published *p = state;
    while (!atomic_load(&p->ends)) {
        unsigned *users;
        vv_store *s = share(p, &users);
        char *text = text_of(s);
        ck_assert_ptr_null(strstr(text, "lost"));
        free(text);
        let_go(p, s, users);
    }
    return NULL;
}

START_TEST(looks_are_read_while_others_follow)
{
    enum { READERS = 3, STEPS = 300 };
    test_rng g = test_seeded("executions, read");
    rig r;
    begin(&r);
    published p = {.lock = PTHREAD_MUTEX_INITIALIZER};
    publish(&p, look(&r, NULL));
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_looks, &p), 0);
    for (int i = 0; i < STEPS && r.started < ROOTS - 4; i++) {
        commit_meta(&r, &g);
        if (i % 3 == 0)
            commit_terms(&r, &g);
        publish(&p, look(&r, p.newest));
    }
    atomic_store(&p.ends, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    let_go(&p, p.newest, p.users);
    done(&r);
}
END_TEST

int main(void)
{
    TCase *t = test_case("meta_index", 300);
    tcase_add_test(t, looks_that_follow_say_what_fresh_ones_do);
    tcase_add_test(t, looks_without_memory);
    tcase_add_test(t, looks_are_read_while_others_follow);
    return test_run();
}
