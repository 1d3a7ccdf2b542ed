/*
 * What the runtime's tests share: a store in a temporary directory, and a look at what was committed to it, through the
 * reader.
 */
#pragma once

#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/fold.h"
#include "runtime/varve.h"
#include "tests/testing.h"

typedef struct {
    char dir[64], root[96];
} test_store;

static inline test_store store_make_in(const char *base)
{
    test_store s;
    snprintf(s.dir, sizeof s.dir, "%s/varve-test-XXXXXX", base);
    ck_assert_ptr_nonnull(mkdtemp(s.dir));
    snprintf(s.root, sizeof s.root, "%s/profiles-v1", s.dir);
    unsetenv("BAML_PROFILE");
    unsetenv("BAML_PROFILE_DIR");
    unsetenv("BAML_PROFILE_PUBLISH_INTERVAL_MS");
    return s;
}

static inline test_store store_make(void)
{
    return store_make_in("/tmp");
}

/* For small stores with many publications: in memory, where the machine offers that. */
static inline test_store store_make_quick(void)
{
    return store_make_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void store_remove(const test_store *s)
{
    nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* What a session in this store asks for; the interval is the caller's until the session is open. */
static inline varve_options options_in(const test_store *s, const uint64_t *interval_ms)
{
    return (varve_options){.struct_size = sizeof(varve_options),
                           .host_version = "test 1",
                           .store_root = s->root,
                           .minimum_free_bytes = 1,
                           .publish_interval_ms = interval_ms};
}

static inline varve_status status_of(varve_session *v)
{
    varve_status st;
    varve_session_status(v, &st);
    return st;
}

static inline varve_session *session_at(const test_store *s, uint64_t interval_ms)
{
    varve_options o = options_in(s, &interval_ms);
    varve_session *v = varve_session_open(&o);
    varve_status st = status_of(v);
    ck_assert_msg(st.state == VARVE_ACTIVE, "%s", st.reason);
    return v;
}

static inline uint32_t function(varve_engine *e, const char *name)
{
    return varve_function_add(e, &(varve_function_info){.fqn = name});
}

/* A call that returns at once. */
static inline void call_once(varve_thread *t, uint32_t f)
{
    varve_call_begin(t, f, 0);
    varve_call_end(t, VARVE_CALL_OK);
}

/* An execution's usual end: first its thread's, then its root's. */
static inline void execution_end(varve_root *r, varve_thread *t)
{
    varve_thread_end(t, VARVE_THREAD_COMPLETED);
    varve_root_end(r, VARVE_SUCCEEDED);
}

/* A whole execution: calls of f, one after another. */
static inline void record_execution(varve_engine *e, uint32_t f, unsigned calls)
{
    varve_thread *t;
    varve_root *r = varve_root_begin(e, NULL, &t);
    ck_assert_ptr_nonnull(r);
    for (unsigned i = 0; i < calls; i++)
        call_once(t, f);
    execution_end(r, t);
}

/* One execution as a reader sees it now. */
typedef struct {
    vv_source *source;
    vv_store *store;
    const vv_stream *stream;
    const vv_execution *execution;
    vv_fold *fold;
    vv_function_table table;
} look;

static inline look look_store(const char *root)
{
    look l = {NULL, NULL, NULL, NULL, NULL, {0}};
    vv_error err = {0};
    ck_assert_msg(vv_source_open(&l.source, root, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(vv_store_open(&l.store, l.source, NULL, &err) == VV_OK, "%s", err.msg);
    return l;
}

static inline void look_fold(look *l, size_t stream, size_t execution)
{
    vv_error err = {0};
    ck_assert_uint_gt(l->store->stream_count, stream);
    l->stream = &l->store->streams[stream];
    ck_assert_msg(!l->stream->failed, "%s", l->stream->error.msg);
    ck_assert_uint_gt(l->stream->execution_count, execution);
    l->execution = vv_stream_execution_at(l->stream, execution);
    vv_fold_free(l->fold);
    vv_function_table_done(&l->table);
    ck_assert_msg(vv_fold_load(&l->fold, l->store, l->stream, l->execution, NULL, &err) == VV_OK, "%s", err.msg);
    ck_assert_msg(!l->fold->failed, "%s: %s", l->fold->error.name, l->fold->error.msg);
    ck_assert_ptr_nonnull(l->execution->engine);
    ck_assert_msg(vv_engine_table(l->source, l->execution->engine, &l->table, &err) == VV_OK, "%s", err.msg);
}

static inline look look_at(const test_store *s)
{
    look l = look_store(s->root);
    look_fold(&l, 0, 0);
    return l;
}

static inline void look_done(look *l)
{
    vv_fold_free(l->fold);
    vv_function_table_done(&l->table);
    vv_store_free(l->store);
    vv_source_close(l->source);
}

/*
 * A host program in small: a store, a session that records into it, an engine, one execution with its first thread.
 * The order of a test: rig_live (or rig_stepped, of inside.h), rig_begin, what it records, rig_end, rig_close, what it
 * expects of the look, rig_remove.
 */
typedef struct {
    test_store store;
    varve_session *session;
    varve_engine *engine;
    varve_root *root;
    varve_thread *thread;
    look seen;
} rig;

static inline rig rig_of(test_store store, varve_session *session)
{
    return (rig){.store = store, .session = session, .engine = varve_engine_open(session, NULL)};
}

/* The library's own consumer publishes, each interval_ms and at a flush. */
static inline rig rig_live(test_store store, uint64_t interval_ms)
{
    return rig_of(store, session_at(&store, interval_ms));
}

/* Begins the execution; returns its first thread. */
static inline varve_thread *rig_begin(rig *g)
{
    g->root = varve_root_begin(g->engine, NULL, &g->thread);
    ck_assert_ptr_nonnull(g->root);
    return g->thread;
}

static inline void rig_end(rig *g)
{
    execution_end(g->root, g->thread);
}

/* Closes the session; returns the store's first execution as a reader sees it then, valid until rig_remove. */
static inline look *rig_close(rig *g)
{
    varve_session_close(g->session);
    g->seen = look_at(&g->store);
    return &g->seen;
}

static inline void rig_remove(rig *g)
{
    look_done(&g->seen);
    store_remove(&g->store);
}

/* Functions "a", "b", ... of an engine. */
static inline void add_functions(varve_engine *e, uint32_t *ret, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[] = {(char)('a' + i), 0};
        ret[i] = function(e, name);
    }
}

/* A value of the innermost call. */
static inline void give_int(varve_thread *t, varve_role role, int64_t v)
{
    varve_capture *c = varve_value_begin(t, role);
    varve_put_int(c, v);
    varve_capture_end(c);
}

/* An error whose value is a text. */
static inline void throw_text(varve_thread *t, const varve_error *e, const char *text)
{
    varve_capture *c = varve_error_begin(t, e);
    varve_put_text(c, text, strlen(text));
    varve_capture_end(c);
}

/* "main>fib": names from the top, '>' a call, '~' a spawn. */
static inline void path_of(const look *l, uint32_t i, char *out, size_t n)
{
    const vv_fold_context *chain[64];
    unsigned depth = 0;
    for (uint32_t c = i; c != VV_MAP_NONE && depth < VV_ARRAY_LEN(chain); c = l->fold->contexts[c].parent)
        chain[depth++] = &l->fold->contexts[c];
    size_t len = 0;
    out[0] = 0;
    while (depth--) {
        const vv_tuple *t = &chain[depth]->tuple;
        const vv_function *f = vv_function_table_find(&l->table, t->function_id);
        const char *edge = t->edge == VV_EDGE_ROOT ? "" : t->edge == VV_EDGE_CALL ? ">" : "~";
        int k = f ? snprintf(out + len, n - len, "%s%.*s", edge, (int)f->fqn.n, f->fqn.p)
                  : snprintf(out + len, n - len, "%s#%u", edge, t->function_id);
        len += k < 0 || (size_t)k >= n - len ? n - len - 1 : (size_t)k;
    }
}

/* Sum of the contexts of a path, over call sites. */
static inline vv_counters counters_of(const look *l, const char *path)
{
    vv_counters sum = {0};
    char text[512];
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        ck_assert_msg(l->fold->contexts[i].defined, "a context without definition");
        path_of(l, i, text, sizeof text);
        if (strcmp(text, path) == 0)
            vv_counters_add(&sum, &l->fold->contexts[i].counters);
    }
    return sum;
}

static inline uint64_t started(const look *l, const char *path)
{
    return counters_of(l, path).started;
}

static inline vv_counters totals(const look *l)
{
    vv_counters sum = {0};
    for (uint32_t i = 0; i < l->fold->context_count; i++)
        vv_counters_add(&sum, &l->fold->contexts[i].counters);
    return sum;
}

/* Of what had no context of its own. */
static inline vv_counters overflow_totals(const look *l)
{
    vv_counters sum = {0};
    for (unsigned i = 0; i < VV_OVERFLOW_REASONS; i++)
        for (unsigned k = 0; k < VV_EDGES; k++)
            vv_counters_add(&sum, &l->fold->overflow[i][k]);
    return sum;
}

static inline vv_counters totals_with_overflow(const look *l)
{
    vv_counters sum = totals(l), over = overflow_totals(l);
    vv_counters_add(&sum, &over);
    return sum;
}

static inline vv_u128 self_of_all(const look *l)
{
    vv_u128 sum = 0;
    for (uint32_t i = 0; i < l->fold->context_count; i++) {
        bool complete;
        sum += vv_counters_self(&l->fold->contexts[i].counters, &complete);
        ck_assert(complete);
    }
    return sum;
}

/* No loss of any kind, and all that the format promises of a finished execution. */
static inline void assert_whole(const look *l)
{
    ck_assert_int_eq(l->execution->index_state, VV_INDEX_COMPLETE);
    ck_assert(l->fold->complete);
    ck_assert_uint_eq(l->fold->issue_count, 0);
    ck_assert_uint_eq(l->fold->thread_issue_count, 0);
    for (unsigned i = 0; i < VV_HEALTH_COUNT; i++)
        ck_assert_msg(l->execution->health.v[i] == 0, "%s is %" PRIu64, vv_health_name(i), l->execution->health.v[i]);
}

static inline int add_size(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    extern uint64_t size_of_files;
    (void)at;
    const char *name = strrchr(path, '/') + 1;
    if (kind == FTW_F && strcmp(name, "publish.lock") != 0 && strcmp(name, "usage.state") != 0 &&
        strcmp(name, "usage-state.pending") != 0)
        size_of_files += (uint64_t)st->st_size;
    return 0;
}

/* The ledger says what the files weigh. */
static inline void assert_ledger(const char *root)
{
    extern uint64_t size_of_files;
    size_of_files = 48;
    nftw(root, add_size, 16, FTW_PHYS);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/usage.state", root);
    vv_blob b = {0};
    ck_assert_int_eq(vv_file_read(AT_FDCWD, path, 48, &b, NULL), VV_OK);
    ck_assert_uint_eq(vv_be64(b.p + 8), size_of_files);
    vv_blob_done(&b);
}
