/*
 * What lists and summaries say of an execution, small enough to be kept when its profile is not: totals, entry,
 * evidence. Immutable once made; shareable between threads.
 */
#pragma once

#include "views/evidence.h"
#include "views/sieve.h"

/*
 * Sums over all contexts and overflow buckets (docs/http-api.md): inclusive counts Root edges, spawned Spawn edges.
 */
typedef struct {
    vv_u128 calls, errors, cancelled, selected;
    __int128 open;
    vv_u128 inclusive_ns, spawned_inclusive_ns, self_ns, await_ns;
} vv_totals;

typedef struct {
    bool known;          /* false where the fold failed or damage left nothing of it: unknown numbers, not zero */
    vv_totals totals;
    uint64_t contexts, spans, threads, errors_captured;
    bool has_entry;      /* exactly one context of Root edge stands for the entry */
    uint32_t entry_function;
    char *entry_fqn, *entry_display; /* NULL where no table names it; owned */
    bool has_duration;
    uint64_t duration_ns; /* the root call's inclusive time where its span was kept, else ended - started */
    uint8_t cct_health;
    vv_data_state data_state;
    vv_evidence evidence;
    vv_sieve context_sieve; /* by vv_sieve_context */
    vv_sieve text_sieve; /* all that a search finds threads, errors and spans by */
    uint8_t overflow;  /* bit reason * VV_EDGES + edge: that bucket is there */
    void *holder; /* the library's */
} vv_digest;

/* Can what was counted be told: does it fold, and did damage leave anything of it? */
bool vv_counts_known(const vv_fold *f);

VV_MUST_CHECK vv_code vv_digest_new(vv_digest **ret, const vv_execution *execution, const vv_profile *p, vv_error *err);
void vv_digest_free(vv_digest *d);
size_t vv_digest_bytes(const vv_digest *d); /* of memory, about */

/* What stands for a context in vv_digest.context_sieve. */
static inline uint64_t vv_sieve_context(const vv_context_key *k)
{
    return vv_be64(k->b);
}

vv_totals vv_totals_of(const vv_profile *p);
/* The object "totals"; null where known is false. */
void vv_totals_json(vv_json *j, bool known, const vv_totals *t);
