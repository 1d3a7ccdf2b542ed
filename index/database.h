/*
 * Inside of vv_index: the database file. Owned by one thread at a time.
 *
 * Opening decides once whether this process writes (it holds the lock file "<path>.lock") and whether what is there is
 * ours. What is ours but older, of another store or damaged is made anew by who writes; what is somebody else's is
 * never touched where the user named the path.
 */
#pragma once

#include <sqlite3.h>

#include "index/index.h"

enum {
    VV_INDEX_APPLICATION = 0x56525645, /* "VRVE" */
    VV_INDEX_VERSION = 5,              /* of tables, of rows, and of all bytes in them, the views' too */
};

typedef enum { VV_SQL_BEGIN, VV_SQL_COMMIT, VV_SQL_ROLLBACK, VV_SQL_FILES, VV_SQL_PUT_FILE, VV_SQL_DROP_FILE,
               VV_SQL_SUMMARY, VV_SQL_PUT_SUMMARY, VV_SQL_NEXT_FILE_STREAM, VV_SQL_NEXT_SUMMARY_STREAM,
               VV_SQL_DROP_STREAM_FILES, VV_SQL_DROP_STREAM_SUMMARIES, VV_SQLS } vv_sql;

typedef struct {
    char *path;                     /* NULL: in memory */
    bool named;                     /* by the user */
    uint8_t identity[32];           /* of the store */
    uint64_t max_bytes;
    void (*say)(void *state, const char *line);
    void *say_state;

    sqlite3 *db;                    /* NULL: no use, or not yet (waits) */
    sqlite3_stmt *stmts[VV_SQLS];   /* prepared when first used */
    int lock_fd;
    int lock_errno;                 /* when it was tried for last; 0: it was had, or is held by another process */
    bool writes;
    bool locked_out;                /* another process held the lock when it was tried for last */
    bool waits;                     /* without a db until that process lets go: what is there is of no use to us */
    bool gave_up_writing;           /* the disk is full, or may not be written */
    bool made_anew;                 /* once is enough for one process */
} vv_database;

/* path, named, identity, max_bytes and say are set, the rest is zero but lock_fd, which is -1. Never fails: see db. */
void vv_database_open(vv_database *d);
void vv_database_close(vv_database *d); /* keeps path and what else was set */

/* Not holding the writer's lock: tries for it again. Where there is no db yet, tries to read too. */
bool vv_database_try_writing(vv_database *d);

/* Bound to nothing and reset; NULL on failure, which has been dealt with. */
sqlite3_stmt *vv_database_stmt(vv_database *d, vv_sql which);
/*
 * Ends the use of a statement; rc is what stepping it gave last, or SQLITE_CORRUPT for a row that no database of ours
 * can hold. Deals with failures, and no statement is valid after one: true for DONE, ROW and OK.
 */
bool vv_database_end(vv_database *d, sqlite3_stmt *s, int rc);
VV_PRINTF(2, 3) void vv_database_say(const vv_database *d, const char *fmt, ...);
