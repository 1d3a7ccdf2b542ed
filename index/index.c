#include "config.h"

#include "index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/grow.h"
#include "base/sha256.h"
#include "base/text.h"
#include "index/database.h"
#include "index/litter.h"
#include "index/rows.h"

enum {
    BATCH = 512,                    /* changes in a transaction */
    GATHER_MS = 200,                /* how long the first change waits for others */
    WAITING_BYTES_MAX = 64 << 20,   /* of changes not written yet; more are not taken */
};

typedef enum { PUT_FILE, DROP_FILE, PUT_SUMMARY, RETAIN } change_kind;

typedef struct change {
    struct change *next;
    change_kind kind;
    vv_euid euid;
    vv_plane plane;
    uint64_t sequence;
    vv_file_ident ident;
    vv_thread_ref root;
    uint8_t key[32];
    size_t n;
    uint8_t bytes[]; /* groups, summary, or ids of streams */
} change;

struct vv_index {
    vv_seg_ledger ledger; /* first, so that a vv_seg_ledger is its index */
    const char *path; /* for who asks */
    pthread_mutex_t use; /* guards the database; never held together with lock */
    vv_database database;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;  /* for the writer */
    pthread_cond_t written;  /* for vv_index_flush */
    change *first, **last;
    size_t waiting_bytes, waiting;
    uint64_t told, done; /* changes taken, and written or given up */
    bool hurry, closing;
    bool has_writer;
    pthread_t writer;
};

/* Device, inode and path of the store's root, so that another store in its place gets another index. */
static vv_code identify(uint8_t out[32], vv_source *source, vv_error *err)
{
    char root[PATH_MAX];
    struct stat st;
    int fd = vv_source_dirfd(source);
    if (fd < 0 || fstat(fd, &st) != 0 || !realpath(vv_source_path(source), root))
        return vv_fail_os(err, fd < 0 ? ENOTDIR : errno, "stat %s", vv_source_path(source));
    uint8_t head[32] = "varve-index";
    vv_put64(head + 16, (uint64_t)st.st_dev);
    vv_put64(head + 24, (uint64_t)st.st_ino);
    vv_sha256_ctx c;
    vv_sha256_init(&c);
    vv_sha256_update(&c, head, sizeof head);
    vv_sha256_update(&c, root, strlen(root));
    vv_sha256_final(&c, out);
    return VV_OK;
}

/* "<cache>/varve/<32 hex>.db"; NULL where there is no such place. The directory is made, for its owner alone. */
static char *default_path(const uint8_t identity[32])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char dir[PATH_MAX], hex[33], *path = NULL;
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(dir, sizeof dir, "%s", cache);
    else if (home && home[0] == '/')
        n = snprintf(dir, sizeof dir, "%s/.cache", home);
    if (n < 0 || (size_t)n + sizeof "/varve" > sizeof dir || vv_mkdirs(AT_FDCWD, dir, NULL) != VV_OK)
        return NULL;
    strcat(dir, "/varve");
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return NULL;
    vv_hex(hex, identity, 16);
    return asprintf(&path, "%s/%s.db", dir, hex) < 0 ? NULL : path;
}

static bool bind_file(sqlite3_stmt *s, const vv_euid *euid, vv_plane plane)
{
    return sqlite3_bind_blob(s, 1, euid->b, sizeof euid->b, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_bind_int(s, 2, (int)plane) == SQLITE_OK;
}

/* The bytes of a column; *ret_n is 0 where there are none, and without memory for them: then no sum is right. */
static const uint8_t *bytes_of(sqlite3_stmt *s, int column, size_t *ret_n)
{
    const uint8_t *p = sqlite3_column_blob(s, column);
    *ret_n = p ? (size_t)sqlite3_column_bytes(s, column) : 0;
    return p;
}

static bool sum_is(sqlite3_stmt *s, int column, const uint8_t want[VV_ROW_SUM])
{
    size_t n;
    const uint8_t *p = bytes_of(s, column, &n);
    return n == VV_ROW_SUM && memcmp(p, want, VV_ROW_SUM) == 0;
}

/* The row that the statement stands on; false where it is void. */
static bool read_file_row(sqlite3_stmt *s, const vv_euid *euid, vv_plane plane, vv_seg_row *ret)
{
    vv_seg_row row = {
        .sequence = (uint64_t)sqlite3_column_int64(s, 0),
        .ident = {.size = (uint64_t)sqlite3_column_int64(s, 1), .device = (uint64_t)sqlite3_column_int64(s, 2),
                  .inode = (uint64_t)sqlite3_column_int64(s, 3), .mtime_ns = sqlite3_column_int64(s, 4),
                  .ctime_ns = sqlite3_column_int64(s, 5)},
    };
    size_t n;
    const uint8_t *groups = bytes_of(s, 6, &n);
    uint8_t want[VV_ROW_SUM];
    vv_file_row_sum(want, euid, plane, row.sequence, &row.ident, groups, n);
    if (!sum_is(s, 7, want) || !vv_groups_get(&row, groups, n))
        return false;
    *ret = row;
    return true;
}

static void recall(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, vv_seg_rows *ret)
{
    vv_index *x = (vv_index *)l;
    vv_seg_rows rows = {NULL, 0};
    size_t cap = 0;
    uint64_t before = 0;
    pthread_mutex_lock(&x->use);
    sqlite3_stmt *s = vv_database_stmt(&x->database, VV_SQL_FILES);
    int rc = s && bind_file(s, euid, plane) ? SQLITE_ROW : SQLITE_NOMEM;
    while (rc == SQLITE_ROW && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        vv_seg_row row;
        /* Ascending without end is impossible, so no cycle of pages keeps us here. */
        if (sqlite3_column_int64(s, 0) <= (int64_t)before) {
            rc = SQLITE_CORRUPT;
            break;
        }
        before = (uint64_t)sqlite3_column_int64(s, 0);
        if (!read_file_row(s, euid, plane, &row))
            continue;
        if (!vv_grow(&rows.rows, &cap, rows.count, sizeof *rows.rows)) {
            free(row.off);
            rc = SQLITE_NOMEM;
            break;
        }
        rows.rows[rows.count++] = row;
    }
    if (s && !vv_database_end(&x->database, s, rc))
        vv_seg_rows_done(&rows);
    pthread_mutex_unlock(&x->use);
    *ret = rows;
}

static change *new_change(change_kind kind, size_t n)
{
    change *c = calloc(1, sizeof *c + n);
    if (c) {
        c->kind = kind;
        c->n = n;
    }
    return c;
}

/* Takes the change. Without a writer, or with too much waiting, it is as if nobody had told. */
static void tell(vv_index *x, change *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&x->lock);
    if (!x->has_writer || x->waiting_bytes + sizeof *c + c->n > WAITING_BYTES_MAX) {
        free(c);
    } else {
        *x->last = c;
        x->last = &c->next;
        x->waiting_bytes += sizeof *c + c->n;
        x->waiting++;
        x->told++;
        if (x->waiting == 1 || x->waiting == BATCH)
            pthread_cond_signal(&x->changed);
    }
    pthread_mutex_unlock(&x->lock);
}

static void keep(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, const vv_seg_row *row)
{
    change *c = row->sequence <= INT64_MAX ? new_change(PUT_FILE, vv_groups_size(row)) : NULL;
    if (!c)
        return;
    c->euid = *euid;
    c->plane = plane;
    c->sequence = row->sequence;
    c->ident = row->ident;
    vv_groups_put(c->bytes, row);
    tell((vv_index *)l, c);
}

static void forget(vv_seg_ledger *l, const vv_euid *euid, vv_plane plane, uint64_t sequence)
{
    change *c = new_change(DROP_FILE, 0);
    if (!c)
        return;
    c->euid = *euid;
    c->plane = plane;
    c->sequence = sequence;
    tell((vv_index *)l, c);
}

void vv_index_keep_summary(vv_index *x, const vv_thread_ref *root, const uint8_t key[32], const void *p, size_t n)
{
    change *c = n <= VV_SUMMARY_MAX ? new_change(PUT_SUMMARY, n) : NULL;
    if (!c)
        return;
    c->root = *root;
    memcpy(c->key, key, sizeof c->key);
    memcpy(c->bytes, p, n);
    tell(x, c);
}

void vv_index_retain(vv_index *x, const vv_euid *ids, size_t count)
{
    change *c = new_change(RETAIN, count * sizeof *ids);
    if (!c)
        return;
    if (count)
        memcpy(c->bytes, ids, count * sizeof *ids);
    tell(x, c);
}

bool vv_index_summary(vv_index *x, const vv_thread_ref *root, const uint8_t key[32], vv_blob *ret)
{
    bool found = false;
    pthread_mutex_lock(&x->use);
    sqlite3_stmt *s = vv_database_stmt(&x->database, VV_SQL_SUMMARY);
    int rc = s ? sqlite3_bind_blob(s, 1, root->b, sizeof root->b, SQLITE_STATIC) : SQLITE_MISUSE;
    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        size_t n;
        const uint8_t *body = bytes_of(s, 0, &n);
        uint8_t want[VV_ROW_SUM];
        vv_summary_row_sum(want, root, key, body, n);
        if (n && n <= VV_SUMMARY_MAX && sum_is(s, 1, want) && (ret->p = malloc(n)) != NULL) {
            memcpy(ret->p, body, n);
            ret->n = n;
            found = true;
        }
    }
    if (s && !vv_database_end(&x->database, s, rc) && found) {
        vv_blob_done(ret);
        found = false;
    }
    pthread_mutex_unlock(&x->use);
    return found;
}

/* Steps a statement that gives no rows. The statement is done with. */
static bool perform(vv_database *d, sqlite3_stmt *s, bool bound)
{
    if (!s)
        return false;
    return vv_database_end(d, s, bound ? sqlite3_step(s) : SQLITE_NOMEM) && bound;
}

static bool put_file(vv_database *d, const change *c)
{
    sqlite3_stmt *s = vv_database_stmt(d, VV_SQL_PUT_FILE);
    uint8_t sum[VV_ROW_SUM];
    vv_file_row_sum(sum, &c->euid, c->plane, c->sequence, &c->ident, c->bytes, c->n);
    const int64_t numbers[] = {(int64_t)c->sequence, vv_row_int(c->ident.size), vv_row_int(c->ident.device),
                               vv_row_int(c->ident.inode), c->ident.mtime_ns, c->ident.ctime_ns};
    bool bound = s && bind_file(s, &c->euid, c->plane);
    for (int i = 0; i < (int)VV_ARRAY_LEN(numbers) && bound; i++)
        bound = sqlite3_bind_int64(s, 3 + i, numbers[i]) == SQLITE_OK;
    bound = bound && sqlite3_bind_blob64(s, 9, c->bytes, c->n, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_bind_blob(s, 10, sum, sizeof sum, SQLITE_STATIC) == SQLITE_OK;
    return perform(d, s, bound);
}

static bool drop_file(vv_database *d, const change *c)
{
    sqlite3_stmt *s = vv_database_stmt(d, VV_SQL_DROP_FILE);
    bool bound = s && bind_file(s, &c->euid, c->plane)
        && sqlite3_bind_int64(s, 3, (int64_t)c->sequence) == SQLITE_OK;
    return perform(d, s, bound);
}

static bool put_summary(vv_database *d, const change *c)
{
    sqlite3_stmt *s = vv_database_stmt(d, VV_SQL_PUT_SUMMARY);
    uint8_t sum[VV_ROW_SUM];
    vv_summary_row_sum(sum, &c->root, c->key, c->bytes, c->n);
    bool bound = s && sqlite3_bind_blob(s, 1, c->root.b, sizeof c->root.b, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_bind_blob64(s, 2, c->bytes, c->n, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_bind_blob(s, 3, sum, sizeof sum, SQLITE_STATIC) == SQLITE_OK;
    return perform(d, s, bound);
}

static bool drop_stream(vv_database *d, vv_sql which, const uint8_t first[32], const uint8_t last[32])
{
    sqlite3_stmt *s = vv_database_stmt(d, which);
    bool files = which == VV_SQL_DROP_STREAM_FILES;
    bool bound = s && sqlite3_bind_blob(s, 1, first, files ? 16 : 32, SQLITE_STATIC) == SQLITE_OK
        && (files || sqlite3_bind_blob(s, 2, last, 32, SQLITE_STATIC) == SQLITE_OK);
    return perform(d, s, bound);
}

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(vv_euid));
}

/* One table's streams, each found by the key after the one before. */
static bool retain_in(vv_database *d, const change *c, vv_sql next, vv_sql drop)
{
    uint8_t first[32] = {0}, last[32];
    for (bool from_start = true;; from_start = false) {
        sqlite3_stmt *s = vv_database_stmt(d, next);
        size_t n = from_start ? 0 : next == VV_SQL_NEXT_FILE_STREAM ? 16 : 32;
        memset(last, 0xff, sizeof last);
        memcpy(last, first, 16);
        if (!s)
            return false;
        int rc = sqlite3_bind_blob(s, 1, last, (int)n, SQLITE_STATIC);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(s);
        uint8_t stream[16];
        bool more = rc == SQLITE_ROW;
        size_t have;
        const uint8_t *id = more ? bytes_of(s, 0, &have) : NULL;
        if (more && have == sizeof stream)
            memcpy(stream, id, sizeof stream);
        else if (more)
            rc = SQLITE_CORRUPT;
        if (rc == SQLITE_ROW && !from_start && memcmp(stream, first, sizeof stream) <= 0)
            rc = SQLITE_CORRUPT;
        if (!vv_database_end(d, s, rc))
            return false;
        if (!more)
            return true;
        memset(first, 0, sizeof first);
        memcpy(first, stream, sizeof stream);
        memset(last, 0xff, sizeof last);
        memcpy(last, stream, sizeof stream);
        if (!bsearch(stream, c->bytes, c->n / sizeof(vv_euid), sizeof(vv_euid), by_id)
            && !drop_stream(d, drop, first, last))
            return false;
    }
}

static bool retain(vv_database *d, const change *c)
{
    return retain_in(d, c, VV_SQL_NEXT_FILE_STREAM, VV_SQL_DROP_STREAM_FILES)
        && retain_in(d, c, VV_SQL_NEXT_SUMMARY_STREAM, VV_SQL_DROP_STREAM_SUMMARIES);
}

/* All of a batch or nothing of it. What is lost here is learnt again by whoever needs it. */
static void write_batch(vv_database *d, const change *c)
{
    static bool (*const writers[])(vv_database *, const change *) = {put_file, drop_file, put_summary, retain};
    bool good = vv_database_try_writing(d) && perform(d, vv_database_stmt(d, VV_SQL_BEGIN), true);
    if (!good)
        return;
    for (; c && good; c = c->next)
        good = writers[c->kind](d, c);
    if (good)
        good = perform(d, vv_database_stmt(d, VV_SQL_COMMIT), true);
    if (!good && d->db && !sqlite3_get_autocommit(d->db)) {
        sqlite3_stmt *s = vv_database_stmt(d, VV_SQL_ROLLBACK);
        if (s) {
            sqlite3_step(s);
            sqlite3_reset(s);
        }
    }
}

/* Waits for changes, and a moment more for others to come along. False at the end. Under the lock. */
static bool await_changes(vv_index *x)
{
    while (!x->first && !x->closing)
        pthread_cond_wait(&x->changed, &x->lock);
    struct timespec until = vv_deadline(CLOCK_MONOTONIC, GATHER_MS);
    while (x->waiting < BATCH && !x->closing && !x->hurry
           && pthread_cond_timedwait(&x->changed, &x->lock, &until) != ETIMEDOUT)
        ;
    return x->first != NULL;
}

/* The first changes, at most BATCH of them, as a list of their own. Under the lock. */
static change *take_batch(vv_index *x, size_t *ret_count)
{
    change *batch = x->first, *c = batch;
    size_t n = 1;
    x->waiting_bytes -= sizeof *c + c->n;
    for (; n < BATCH && c->next; n++) {
        c = c->next;
        x->waiting_bytes -= sizeof *c + c->n;
    }
    x->first = c->next;
    if (!x->first)
        x->last = &x->first;
    c->next = NULL;
    x->waiting -= n;
    *ret_count = n;
    return batch;
}

static void *write_changes(void *state)
{
    vv_index *x = state;
    pthread_mutex_lock(&x->lock);
    while (await_changes(x)) {
        size_t n;
        change *batch = take_batch(x, &n);
        pthread_mutex_unlock(&x->lock);
        pthread_mutex_lock(&x->use);
        write_batch(&x->database, batch);
        pthread_mutex_unlock(&x->use);
        for (change *next; batch; batch = next) {
            next = batch->next;
            free(batch);
        }
        pthread_mutex_lock(&x->lock);
        x->done += n;
        pthread_cond_broadcast(&x->written);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

void vv_index_flush(vv_index *x)
{
    pthread_mutex_lock(&x->lock);
    uint64_t until = x->told;
    x->hurry = true;
    pthread_cond_signal(&x->changed);
    while (x->has_writer && x->done < until)
        pthread_cond_wait(&x->written, &x->lock);
    x->hurry = false;
    pthread_mutex_unlock(&x->lock);
}

/* The thread takes no signals: they are its process's matter. */
static void start_writer(vv_index *x)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    x->has_writer = pthread_create(&x->writer, NULL, write_changes, x) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool is_memory(const char *path)
{
    return path && strcmp(path, ":memory:") == 0;
}

vv_code vv_index_open(vv_index **ret, vv_source *source, const vv_index_options *o, vv_error *err)
{
    vv_index *x = calloc(1, sizeof *x);
    if (!x)
        return vv_fail(err, VV_ERR_NOMEM, "no memory for the index");
    x->ledger = (vv_seg_ledger){recall, keep, forget};
    x->last = &x->first;
    pthread_mutex_init(&x->use, NULL);
    pthread_mutex_init(&x->lock, NULL);
    vv_cond_init(&x->changed);
    pthread_cond_init(&x->written, NULL);
    vv_database *d = &x->database;
    *d = (vv_database){.named = o->path != NULL, .max_bytes = o->max_bytes ? o->max_bytes : VV_INDEX_MAX_BYTES,
                       .say = o->say, .say_state = o->say_state, .lock_fd = -1};
    vv_error why = {0};
    bool known = identify(d->identity, source, &why) == VV_OK;
    if (known && !is_memory(o->path)) {
        d->path = o->path ? strdup(o->path) : default_path(d->identity);
        known = d->path != NULL;
    }
    if (known)
        vv_database_open(d);
    if (d->db || d->waits) {
        x->path = d->path ? d->path : ":memory:";
        if (!o->path && d->writes)
            vv_index_tidy(d->path);
        start_writer(x);
    }
    if (!known)
        vv_database_say(d, "index: no place for one (%s); going on without",
                        why.msg[0] ? why.msg : "no cache directory");
    *ret = x;
    return VV_OK;
}

void vv_index_close(vv_index *x)
{
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->closing = true;
    pthread_cond_signal(&x->changed);
    pthread_mutex_unlock(&x->lock);
    if (x->has_writer)
        pthread_join(x->writer, NULL);
    vv_database_close(&x->database);
    free(x->database.path);
    pthread_cond_destroy(&x->written);
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    pthread_mutex_destroy(&x->use);
    free(x);
}

vv_seg_ledger *vv_index_ledger(vv_index *x)
{
    return &x->ledger;
}

const char *vv_index_path(const vv_index *x)
{
    return x->path;
}

bool vv_index_writes(vv_index *x)
{
    pthread_mutex_lock(&x->use);
    bool writes = x->database.writes && x->database.db;
    pthread_mutex_unlock(&x->use);
    return writes;
}
