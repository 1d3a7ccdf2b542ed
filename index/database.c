#include "config.h"

#include "index/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUSY_MS = 200,                 /* others hold the database for moments only */
    LOCK_TRIES = 4,                /* each on a file of its own: others remove it only now and then */
    LENGTH_MAX = 256 << 20,        /* of one value: the groups of the largest segment fit */
    PAGE_BYTES = 4096,
};

static const struct {
    const char *name, *sql;
} tables[] = {
    {"store", "CREATE TABLE store (one INTEGER PRIMARY KEY CHECK (one = 1), identity BLOB NOT NULL) STRICT"},
    {"file", "CREATE TABLE file (stream BLOB NOT NULL, plane INTEGER NOT NULL, sequence INTEGER NOT NULL, "
             "size INTEGER NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
             "ctime_ns INTEGER NOT NULL, groups BLOB NOT NULL, sum BLOB NOT NULL, "
             "PRIMARY KEY (stream, plane, sequence)) STRICT, WITHOUT ROWID"},
    {"summary", "CREATE TABLE summary (root BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL, sum BLOB NOT NULL) "
                "STRICT, WITHOUT ROWID"},
};

static const char *const sqls[VV_SQLS] = {
    [VV_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [VV_SQL_COMMIT] = "COMMIT",
    [VV_SQL_ROLLBACK] = "ROLLBACK",
    [VV_SQL_FILES] = ("SELECT sequence, size, device, inode, mtime_ns, ctime_ns, groups, sum FROM file "
                      "WHERE stream = ?1 AND plane = ?2 ORDER BY sequence"),
    [VV_SQL_PUT_FILE] = "INSERT OR REPLACE INTO file VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [VV_SQL_DROP_FILE] = "DELETE FROM file WHERE stream = ?1 AND plane = ?2 AND sequence = ?3",
    [VV_SQL_SUMMARY] = "SELECT body, sum FROM summary WHERE root = ?1",
    [VV_SQL_PUT_SUMMARY] = "INSERT OR REPLACE INTO summary VALUES (?1, ?2, ?3)",
    [VV_SQL_NEXT_FILE_STREAM] = "SELECT stream FROM file WHERE stream > ?1 ORDER BY stream LIMIT 1",
    [VV_SQL_NEXT_SUMMARY_STREAM] = "SELECT substr(root, 1, 16) FROM summary WHERE root > ?1 ORDER BY root LIMIT 1",
    [VV_SQL_DROP_STREAM_FILES] = "DELETE FROM file WHERE stream = ?1",
    [VV_SQL_DROP_STREAM_SUMMARIES] = "DELETE FROM summary WHERE root BETWEEN ?1 AND ?2",
};

void vv_database_say(const vv_database *d, const char *fmt, ...)
{
    if (!d->say)
        return;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    d->say(d->say_state, line);
}

static void close_db(vv_database *d)
{
    for (unsigned i = 0; i < VV_SQLS; i++) {
        sqlite3_finalize(d->stmts[i]);
        d->stmts[i] = NULL;
    }
    sqlite3_close(d->db);
    d->db = NULL;
}

void vv_database_close(vv_database *d)
{
    close_db(d);
    vv_close(&d->lock_fd); /* and with it the lock */
    d->writes = false;
}

static char *beside(const vv_database *d, const char *tail)
{
    char *p = NULL;
    return asprintf(&p, "%s%s", d->path, tail) < 0 ? NULL : p;
}

typedef enum { LOCKED, BUSY, REMOVED, NO_LOCK } lock_result;

static lock_result try_lock(const char *path, int *ret_fd, int *ret_errno)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    struct stat st;
    lock_result r = NO_LOCK;
    vv_code rc = fd < 0 ? VV_ERR_IO : vv_lock(fd, true, false, NULL);
    if (rc == VV_ERR_BUSY)
        r = BUSY;
    else if (rc == VV_OK && fstat(fd, &st) == 0)
        r = st.st_nlink ? LOCKED : REMOVED;
    *ret_errno = r == NO_LOCK ? errno : 0;
    if (r != LOCKED)
        vv_close(&fd);
    *ret_fd = fd;
    return r;
}

/*
 * Whoever removes a lock file holds its lock: unused indexes and what lies beside files of others are cleared away. So
 * one that was removed between its opening and its locking locks nothing, and the next one of that name may.
 */
static bool lock(vv_database *d)
{
    char *path = beside(d, ".lock");
    lock_result r = path ? REMOVED : NO_LOCK;
    for (int i = 0; i < LOCK_TRIES && r == REMOVED; i++)
        r = try_lock(path, &d->lock_fd, &d->lock_errno);
    free(path);
    d->locked_out = r == BUSY;
    return r == LOCKED;
}

static bool run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* One number; the SQLite code. */
static int ask(sqlite3 *db, const char *sql, int64_t *ret)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

/*
 * An index names what a user's programs do: it is for that user alone, as are SQLite's files beside it, which have the
 * mode of this one. Only a new file is opened: closing another one would drop SQLite's locks on it.
 */
static void create_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    vv_close(&fd);
}

/*
 * A file that anybody may have written is opened here. Nothing waits for the disk: what a power failure leaves behind
 * is found out by sums and made anew.
 */
static int open_connection(vv_database *d, bool immutable)
{
    char *name = NULL;
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    flags |= immutable ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
    if (d->writes)
        flags |= SQLITE_OPEN_CREATE;
    if (d->writes && d->path)
        create_private(d->path);
    if (immutable && asprintf(&name, "file:%s?immutable=1", d->path) < 0)
        return SQLITE_NOMEM;
    int rc = sqlite3_open_v2(!d->path ? ":memory:" : name ? name : d->path, &d->db, flags, NULL);
    free(name);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
    sqlite3_limit(d->db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_busy_timeout(d->db, BUSY_MS);
    run(d->db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA synchronous = OFF; "
               "PRAGMA cache_size = -256; PRAGMA temp_store = MEMORY");
    return SQLITE_OK;
}

static bool create(vv_database *d)
{
    char sql[160];
    bool good = run(d->db, "PRAGMA journal_mode = WAL") && run(d->db, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < VV_ARRAY_LEN(tables) && good; i++)
        good = run(d->db, tables[i].sql);
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d", VV_INDEX_APPLICATION,
             VV_INDEX_VERSION);
    sqlite3_stmt *s = NULL;
    good = good && run(d->db, sql)
        && sqlite3_prepare_v2(d->db, "INSERT INTO store VALUES (1, ?1)", -1, &s, NULL) == SQLITE_OK
        && sqlite3_bind_blob(s, 1, d->identity, sizeof d->identity, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_step(s) == SQLITE_DONE;
    sqlite3_finalize(s);
    return good && run(d->db, "COMMIT");
}

typedef enum { OURS, EMPTY, OLD, FOREIGN, DAMAGED, USELESS } finding;

static finding finding_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
        return OURS;
    case SQLITE_NOTADB:
        return FOREIGN;
    case SQLITE_CORRUPT:
        return DAMAGED;
    default:
        return USELESS;
    }
}

/* Are the tables there as we make them, and nothing else? */
static finding check_tables(sqlite3 *db)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL", -1, &s, NULL);
    if (rc != SQLITE_OK)
        return finding_of(rc);
    size_t right = 0, wrong = 0;
    while (wrong <= VV_ARRAY_LEN(tables) && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0), *sql = (const char *)sqlite3_column_text(s, 1);
        bool known = false;
        for (size_t i = 0; i < VV_ARRAY_LEN(tables) && name && sql; i++)
            known |= strcmp(name, tables[i].name) == 0 && strcmp(sql, tables[i].sql) == 0;
        right += known;
        wrong += !known;
    }
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return finding_of(rc);
    return wrong == 0 && right == VV_ARRAY_LEN(tables) ? OURS : OLD;
}

static finding check_store(const vv_database *d)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(d->db, "SELECT identity FROM store", -1, &s, NULL);
    if (rc != SQLITE_OK)
        return finding_of(rc);
    rc = sqlite3_step(s);
    const void *identity = rc == SQLITE_ROW ? sqlite3_column_blob(s, 0) : NULL;
    bool same = identity && sqlite3_column_bytes(s, 0) == (int)sizeof d->identity
        && memcmp(identity, d->identity, sizeof d->identity) == 0;
    sqlite3_finalize(s);
    return rc != SQLITE_ROW && rc != SQLITE_DONE ? finding_of(rc) : same ? OURS : OLD;
}

static finding examine(const vv_database *d)
{
    int64_t application = 0, version = 0, objects = 0;
    int rc = ask(d->db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = ask(d->db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = ask(d->db, "SELECT count(*) FROM sqlite_schema", &objects);
    if (rc != SQLITE_OK)
        return finding_of(rc) == DAMAGED && application != VV_INDEX_APPLICATION ? FOREIGN : finding_of(rc);
    if (application != VV_INDEX_APPLICATION)
        return application == 0 && version == 0 && objects == 0 ? EMPTY : FOREIGN;
    if (version != VV_INDEX_VERSION)
        return OLD;
    finding f = check_tables(d->db);
    return f == OURS ? check_store(d) : f;
}

/* Puts what is there out of the way, for who wants to look, and its journal with it. Only who writes does that. */
static bool set_aside(vv_database *d)
{
    char *aside = beside(d, ".damaged"), *wal = beside(d, "-wal"), *shm = beside(d, "-shm");
    bool good = aside && wal && shm && (rename(d->path, aside) == 0 || errno == ENOENT);
    if (good) {
        unlink(wal);
        unlink(shm);
    }
    free(aside);
    free(wal);
    free(shm);
    return good;
}

static void give_up(vv_database *d)
{
    close_db(d);
    vv_close(&d->lock_fd);
    d->writes = false;
    d->waits = false;
}

/* Beside a file that is no business of ours nothing stays. */
static void drop_lock_file(const vv_database *d)
{
    char *path = d->writes ? beside(d, ".lock") : NULL;
    if (path)
        unlink(path);
    free(path);
}

static void open_checked(vv_database *d);

static void make_anew(vv_database *d)
{
    close_db(d);
    if (d->made_anew || !d->path || !set_aside(d)) {
        give_up(d);
        return;
    }
    d->made_anew = true;
    open_checked(d);
}

static void set_limit(vv_database *d)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %llu", (unsigned long long)(d->max_bytes / PAGE_BYTES + 1));
    run(d->db, sql);
}

/* Nobody can write in that directory, so what was closed well can be read as it stands. */
static bool open_readonly(vv_database *d)
{
    char *wal = beside(d, "-wal");
    bool quiet = wal && access(wal, F_OK) != 0 && errno == ENOENT && !strpbrk(d->path, "?#%");
    free(wal);
    bool good = quiet && open_connection(d, true) == SQLITE_OK && examine(d) == OURS;
    if (!good)
        close_db(d);
    return good;
}

/* Why what was found is of no use: what the system said, where it did, else what SQLite makes of it. */
static const char *reason_of(const vv_database *d, finding f, char *room, size_t cap)
{
    int system = d->lock_errno ? d->lock_errno : d->db ? sqlite3_system_errno(d->db) : 0;
    if (f == DAMAGED || f == FOREIGN)
        return "it is damaged, or no index of Varve";
    if (f == OLD)
        return "it is of another store or version, and can't be written";
    if (system)
        return strerror_r(system, room, cap);
    return d->db ? sqlite3_errstr(sqlite3_errcode(d->db)) : "no memory";
}

static void open_checked(vv_database *d)
{
    int rc = open_connection(d, false);
    finding f = rc == SQLITE_OK ? examine(d) : finding_of(rc);
    if (f == EMPTY && d->writes)
        f = create(d) ? OURS : USELESS;
    char room[128];
    const char *why = reason_of(d, f, room, sizeof room);
    if (f == OURS && d->writes)
        set_limit(d);
    if (f == OURS) {
        d->waits = false;
        return;
    }
    if (f == FOREIGN && d->named) {
        vv_database_say(d, "index: %s is no index of Varve; going on without one", d->path);
        drop_lock_file(d);
        give_up(d);
    } else if (d->writes && (f == OLD || f == FOREIGN || f == DAMAGED)) {
        if (f != OLD)
            vv_database_say(d, "index: %s was damaged and is made anew; the old one is %s.damaged", d->path, d->path);
        make_anew(d);
    } else {
        close_db(d);
        if (f == USELESS && d->path) {
            /* The lock could be had, but not the files that writing needs beside it: their directory is read-only. */
            d->gave_up_writing = d->gave_up_writing || d->writes;
            d->writes = false;
            vv_close(&d->lock_fd);
            if (open_readonly(d))
                return;
        }
        if (d->locked_out && f != FOREIGN) {
            if (!d->waits)
                vv_database_say(d, "index: %s is another process's for now; going on without one meanwhile", d->path);
            d->waits = true;
            return;
        }
        vv_database_say(d, "index: %s can't be used (%s); going on without one", d->path ? d->path : "memory",
                        why);
        give_up(d);
    }
}

void vv_database_open(vv_database *d)
{
    d->writes = d->path ? lock(d) : true;
    open_checked(d);
}

bool vv_database_try_writing(vv_database *d)
{
    if (d->writes || d->gave_up_writing || !(d->db || d->waits) || !d->path)
        return d->writes;
    bool locked = lock(d);
    if (!locked && !d->waits)
        return false;
    /* Whoever wrote before may have left anything; who made what we wait for may have done so by now. */
    close_db(d);
    d->writes = locked;
    open_checked(d);
    return d->writes;
}

static void is_damaged(vv_database *d)
{
    if (!d->writes || !d->path || d->made_anew) {
        vv_database_say(d, "index: %s is damaged; going on without it", d->path ? d->path : "in memory");
        give_up(d);
        return;
    }
    vv_database_say(d, "index: %s was damaged and is made anew; the old one is %s.damaged", d->path, d->path);
    make_anew(d);
}

/* After a failed call. Reading goes on where only writing is in trouble. */
static void fail(vv_database *d, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
        is_damaged(d);
        return;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
        return;
    default:
        if (d->writes)
            vv_database_say(d, "index: %s can't be written (%s); going on without writing it",
                            d->path ? d->path : "in memory", sqlite3_errstr(rc));
        d->writes = false;
        d->gave_up_writing = true;
        vv_close(&d->lock_fd);
    }
}

sqlite3_stmt *vv_database_stmt(vv_database *d, vv_sql which)
{
    if (!d->db)
        return NULL;
    if (!d->stmts[which]) {
        int rc = sqlite3_prepare_v3(d->db, sqls[which], -1, SQLITE_PREPARE_PERSISTENT, &d->stmts[which], NULL);
        if (rc != SQLITE_OK) {
            fail(d, rc);
            return NULL;
        }
    }
    return d->stmts[which];
}

bool vv_database_end(vv_database *d, sqlite3_stmt *s, int rc)
{
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (rc == SQLITE_DONE || rc == SQLITE_ROW || rc == SQLITE_OK)
        return true;
    fail(d, rc);
    return false;
}
