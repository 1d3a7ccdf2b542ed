/*
 * What the consumer knows of an execution and of its logical threads. Owned by the consumer thread.
 *
 * An exec lives from admission until its RootEnded was written or lost; its slot is free again long before that.
 */
#pragma once

#include "format/segment.h"
#include "runtime/cct.h"
#include "runtime/execution.h"
#include "runtime/facts.h"

/* An open call. */
typedef struct {
    uint64_t start_ns, call;
    uint64_t inner_ns; /* of its Call children that have ended */
    uint32_t node;
    bool selected; /* the thread's innermost span is its */
} vv_frame;

/* An open selected call. */
typedef struct {
    uint64_t depth; /* of its frame, from 1 */
    uint64_t batch; /* of facts, that its SpanStart is in */
    vv_call_ref call;
    vv_context_ref context;
    uint8_t roles;
    bool manual;
    bool told;        /* its SpanStart is queued or committed */
    uint32_t ordinal; /* of the next runtime id */
    /* An error that will end it. */
    enum { VV_LINK_NONE, VV_LINK_CAPTURE, VV_LINK_LOST } link;
    uint8_t link_loss;
    uint64_t link_ordinal;                 /* of the capture */
    uint64_t link_batch, link_start_batch; /* that the capture is in, and the start that it rests on */
} vv_span;

typedef struct vv_exec vv_exec;
typedef struct vv_lthread vv_lthread;

struct vv_lthread {
    vv_frame *frames; /* frames[0] is the entry call */
    uint64_t depth, cap;
    vv_span *spans; /* of frames, innermost last */
    uint32_t span_count, span_cap;
    vv_pool span_pool;
    uint64_t begins, asides;
    uint32_t rings;  /* where its records are being read */
    uint64_t excess; /* open calls beyond what memory allowed; the innermost ones */
    vv_exec *exec;
    varve_engine *engine;
    uint64_t number;
    bool root, started;
    bool told;               /* its ThreadStart is queued or committed */
    uint64_t batch;          /* of facts, that it is in */
    /* the spawn */
    bool has_parent, has_spawn_call;
    bool parent_told;        /* else its ThreadStart may not name the parent */
    uint64_t parent_batch;
    uint64_t parent_number, spawn_call;
    uint32_t spawn_node; /* a node, an overflow bucket, or VV_NODE_NONE */
    uint32_t spawn_site;
    uint16_t name_len;
    char *name;
    vv_lthread *prev, *next; /* of the execution */
};

struct vv_exec {
    vv_thread_ref root;
    varve_engine *engine;
    vv_slot *slot; /* NULL from hand-off on */
    uint64_t started_ns, ended_ns;
    vv_runtime_id runtime_id;
    uint8_t status;
    bool start_lost; /* the batch with its RootStarted */
    uint64_t first, last, segments; /* data sequences that hold its groups */
    vv_health health;
    varve_execution_state view; /* of checkpoints */
    vv_accounting account;
    uint64_t awaits_decoded; /* intervals that reached a context or bucket */
    vv_cct cct;
    vv_facts facts;
    uint64_t batch;          /* of facts, from 1: that which the queue becomes */
    uint64_t flight_batch;   /* of the group in flight; 0: none, or one without facts */
    vv_parts sent;           /* of the group in flight, or of that encoded at hand-off */
    vv_lthread *threads;
    uint64_t open_spans;     /* of all threads */
    enum { VV_TERMS_OPEN, VV_TERMS_IN_FLIGHT, VV_TERMS_DONE } terms; /* its record of the health plane */
    bool in_flight;  /* a group of it is in the data batch: committed, lost, or not known yet */
    uint64_t rollover_at; /* nodes: a floor of the next rollover, as what is open can't be dropped */
    /* a group that was encoded at hand-off */
    uint8_t *group;
    size_t group_bytes, group_cct, group_evidence; /* allocated; of the two sections, one after the other */
    uint64_t group_rows, group_facts, group_started, group_awaits;
    uint8_t group_health;
    vv_exec *prev, *next; /* of the decoder's list */
    vv_exec *next_admitted, *next_ended; /* of the writer's meta queues */
};

static inline void vv_health_bump(vv_exec *x, unsigned field, uint64_t n)
{
    x->health.v[field] = vv_sat64(x->health.v[field], n);
}

/* A batch that is in flight with facts: what rests on it may have to go. */
static inline bool vv_exec_in_flight(const vv_exec *x, uint64_t batch)
{
    return x->flight_batch && batch == x->flight_batch;
}

/* Threads of an engine by number. */
vv_lthread *vv_lthread_find(const varve_engine *e, uint64_t number);
/* A new one in the map and in the execution's list; NULL: no memory. */
vv_lthread *vv_lthread_new(varve_engine *e, vv_governor *g, vv_exec *x, uint64_t number);
/* Out of both, and freed. */
void vv_lthread_drop(vv_lthread *t, vv_governor *g);
/* Room for one frame more; false: no memory. */
bool vv_lthread_grow(vv_lthread *t, vv_governor *g);
void vv_lthread_map_done(varve_engine *e, vv_governor *g);

/* Room for one span more, in Manual where General has none and it may; false: no memory. */
bool vv_lthread_span_room(vv_lthread *t, vv_governor *g, bool manual);

/* The facts of a batch were lost: threads and spans that started in it count as never told, and captures in it as lost
 * with this code. */
void vv_exec_batch_lost(vv_exec *x, uint64_t batch, uint8_t link_loss);
