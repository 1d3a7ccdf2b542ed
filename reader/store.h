/*
 * Streams and their meta index (docs/store.md): which executions a store holds, without touching data.
 *
 * A vv_store is one consistent look at a source: all its streams as they were when it was opened. It is immutable and
 * may be shared by threads. vv_store_open after a change re-reads only what changed when given the former look (meta
 * segments are immutable).
 */
#pragma once

#include "format/function_table.h"
#include "format/health_plane.h"
#include "reader/changes.h"
#include "reader/extent.h"
#include "reader/source.h"

/*
 * One EngineStarted record. An engine may have several, each with a larger table (the extensions of the store, section
 * 1).
 */
typedef struct {
    uint64_t id;
    vv_program_id program;
    bool has_table;
    vv_cid table;
    vv_opt_str revision, source;
} vv_engine;

typedef enum { VV_INDEX_COMPLETE, VV_INDEX_NO_ROOT_ENDED, VV_INDEX_ROOT_STARTED_LOST, VV_INDEX_CORRUPT } vv_index_state;
/* "Complete" "NoRootEnded" "RootStartedLost" "IndexCorrupt". */
const char *vv_index_state_name(vv_index_state s);

/* The five of vv_exec_status, and Running. */
enum { VV_EXEC_RUNNING = 5 };
const char *vv_exec_status_name(unsigned status);

typedef struct {
    vv_thread_ref root;
    bool has_start, has_end;
    vv_runtime_id runtime_id;
    uint64_t started_ns, ended_ns;
    uint64_t start_sequence, end_sequence; /* meta sequences of the two records */
    uint64_t start_high_water;             /* data_high_water of the segment with RootStarted */
    uint8_t status;                        /* vv_exec_status or VV_EXEC_RUNNING */
    uint8_t flags;
    uint64_t first, last, count;           /* from RootEnded, else 0 */
    vv_health health;                      /* zero without has_end */
    bool has_terms;                        /* of the health plane; false in stores of other writers */
    vv_health_record terms;
    vv_index_state index_state;
    const vv_engine *engine;               /* the newest EngineStarted of it, for names; NULL where there is none */
    const vv_engine *first_engine;         /* the first one, for the program id */
} vv_execution;

typedef struct {
    vv_euid euid;
    bool failed;             /* the index can't be opened: no header, engines, executions */
    /* Why: its name is StreamNotFound, Io, MetaDuplicateRootStarted, MetaDuplicateRootEnded, RangeTooLarge, or
     * LimitExceeded (more files than we list). */
    vv_error error;
    bool alive;    /* a writer holds it */
    bool unprobed; /* whether one does is not known: none is asked for before the first meta segment */
    bool has_header;
    vv_stream_started header;
    uint64_t meta_decoded;   /* highest decoded meta sequence (dump) */
    uint64_t meta_high, data_high; /* highest file names */
    uint64_t meta_contiguous, data_contiguous; /* highest sequence with no missing or undecodable one up to it (API) */
    vv_range *meta_gaps;     /* for index states and dump */
    size_t meta_gap_count;
    vv_range *meta_bad, *data_bad; /* runs of missing or undecodable sequences up to the highest name (generation) */
    size_t meta_bad_count, data_bad_count;
    vv_engine *engines;      /* every EngineStarted in order, as dump lists them */
    size_t engine_count;
    size_t execution_count;
    uint64_t stamp; /* of its segment files, as vv_seg_list_stamp */
    struct vv_stream_core *core; /* owns what the pointers above lead to; shared between looks */
} vv_stream;

typedef struct vv_store {
    vv_source *source; /* borrowed */
    vv_stream *streams; /* by id bytes, each id once */
    size_t stream_count;
    uint8_t generation[32]; /* docs/http-api.md */
    uint64_t stamp; /* of all streams': looks of one generation differ in it where a file became another one */
} vv_store;

/* former may be NULL. Errors only where the store as a whole can't be read; a bad stream is marked failed. */
VV_MUST_CHECK vv_code vv_store_open(vv_store **ret, vv_source *source, const vv_store *former, vv_error *err);
/*
 * The same where it is known what may have changed since former, of the same source: the rest is not looked at. Where
 * changes->all is set it is vv_store_open.
 */
VV_MUST_CHECK vv_code vv_store_update(vv_store **ret, const vv_store *former, const vv_changes *changes, vv_error *err);
void vv_store_free(vv_store *s);

/* Roots found in data segments that have no index entry, in order of first appearance. The caller frees *ret. */
VV_MUST_CHECK vv_code vv_stream_orphans(const vv_store *s, const vv_stream *stream, vv_thread_ref **ret,
                                        size_t *ret_count, vv_error *err);

/* Binary search. NULL where absent. */
const vv_stream *vv_store_stream(const vv_store *s, const vv_euid *euid);
/* Memory that this look holds and another one of the same store (may be NULL) does not; about. */
size_t vv_store_bytes(const vv_store *s, const vv_store *other);
/* Nothing at all was read anew between the two looks. */
bool vv_store_shares_all(const vv_store *a, const vv_store *b);
/* Execution i < execution_count, in order of first appearance. */
const vv_execution *vv_stream_execution_at(const vv_stream *s, size_t i);
/* NULL where the stream has none of that root. */
const vv_execution *vv_stream_execution(const vv_stream *s, const vv_thread_ref *root);

/*
 * Is a writer alive now, whatever the stream holds? vv_stream.alive says so of streams with a meta segment only: the
 * probe takes a shared lock for an instant, which could fail the open of a writer that is just starting. False for
 * archives.
 */
bool vv_stream_probe(const vv_store *s, const vv_euid *euid);

/* Wall clock of a tick time; false without a header. Saturating. */
bool vv_stream_unix_ns(const vv_stream *s, uint64_t ns, uint64_t *ret_unix_ns);

/*
 * Reads and decodes an execution's function table. VV_OK and an empty table where the engine names none; NOTFOUND where
 * the object is missing, CORRUPT named FunctionTableCodecMismatch or FunctionTableInvalid.
 */
VV_MUST_CHECK vv_code vv_engine_table(vv_source *source, const vv_engine *engine, vv_function_table *ret,
                                      vv_error *err);
