/*
 * The facts of one execution that wait for its next group, in their encoded form and order, and what each comes to in
 * the equations (accounting.h) once that group is settled.
 *
 * A fact may rest on one that is in an earlier group whose outcome is not known yet: an end on its span's start, a link
 * on its capture. Such needs are noted with it; when the earlier group is lost, the fact is dropped, or says so. Where
 * both are in one group they share its outcome, and a start that is committed holds for good.
 *
 * Owned by the consumer thread.
 */
#pragma once

#include "format/evidence.h"
#include "format/health.h"
#include "runtime/accounting.h"
#include "runtime/governor.h"

typedef enum {
    VV_PART_THREAD, /* starts and ends of threads are in no equation */
    VV_PART_START,
    VV_PART_END,      /* of a span whose start is in an earlier group */
    VV_PART_END_HERE, /* in the same group: where that is lost, the start is what is lost */
    VV_PART_END_LOST_QUEUE, /* an end that there is no fact of, of a start in this group */
    VV_PART_END_LOST_TRANSPORT,
    VV_PART_END_LOST_JOIN,
    VV_PART_RUNTIME_ID,
    VV_PART_VALUE, /* available */
    VV_PART_VALUE_LOST, /* + code */
    VV_PART_ERROR = VV_PART_VALUE_LOST + VV_VALUE_LOSSES,
    VV_PART_ERROR_VALUE,
    VV_PART_ERROR_VALUE_LOST, /* + code */
    VV_PART_LINK = VV_PART_ERROR_VALUE_LOST + VV_VALUE_LOSSES,
    VV_PARTS,
} vv_part;

typedef struct {
    uint32_t n[VV_PARTS];
} vv_parts;

/* A fact that rests on the group in flight: on the start of what it is of, or on what it names (a capture, a thread's
 * parent), which it can do without. */
typedef enum {
    VV_NAMED_SAFE,      /* nothing, or what is not in flight */
    VV_NAMED_IN_FLIGHT,
    VV_NAMED_RESTS,     /* a capture that rests on a start in flight */
} vv_named;

typedef struct {
    size_t at; /* in the queue's bytes */
    bool start;
    vv_named named;
} vv_need;

typedef struct {
    uint8_t *bytes;
    size_t len, cap, last; /* last: where the fact queued last is */
    vv_pool pool;
    uint64_t count;
    vv_parts parts;
    vv_need *needs;
    size_t need_count, need_cap;
    vv_pool need_pool;
} vv_facts;

/* Room for any one fact, with needs where asked; manual: in Manual where General has none. False: memory is denied. */
bool vv_facts_room(vv_facts *q, vv_governor *g, bool manual, bool needs);
/* Queues a fact, for which room was made. */
void vv_facts_add(vv_facts *q, const vv_fact *f, vv_part part);
/* The fact queued last rests on the group in flight. */
void vv_facts_need(vv_facts *q, bool start, vv_named named);
/* The queue starts over; what it held is told in *ret_parts. Memory of Manual is given back. */
void vv_facts_taken(vv_facts *q, vv_governor *g, vv_parts *ret_parts);
void vv_facts_done(vv_facts *q, vv_governor *g);

/* How many of them are facts of each part of the evidence (varve_part). */
void vv_parts_count(const vv_parts *p, uint64_t ret[VV_EVIDENCE_PARTS]);

/* What a group's facts came to, in an execution's accounts and its 26 counters. */
void vv_parts_settle(const vv_parts *p, bool committed, bool disk, vv_accounting *a, vv_health *h);

/* The group in flight is committed: nothing is left to need. Or lost: facts whose start was in it go (their number is
 * returned), links whose capture was in it, or rested on it, name the loss, threads whose parent was name none. */
void vv_facts_flight_committed(vv_facts *q);
uint64_t vv_facts_flight_lost(vv_facts *q, uint8_t link_loss, vv_accounting *a, vv_health *h);

/* Values whose object was lost say so: in n encoded facts at p, counted in parts. lost(ctx, cid, &code) tells. Returns
 * how many bytes there are now; no more than before. */
size_t vv_facts_lose_values(uint8_t *p, size_t n, vv_parts *parts,
                            bool (*lost)(void *ctx, const vv_cid *cid, uint8_t *ret_code), void *ctx);
